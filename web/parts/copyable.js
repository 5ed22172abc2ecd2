// Lines to copy, and their QR code. Makes none.

import { t } from "../words/words.js";
import { behind, fill, h } from "./dom.js";
import { qrCode } from "./qr.js";

/**
 * @param {string} name
 * @param {string} lines
 */
export function copyable(name, lines) {
  const said = h("span", { role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(lines);
    fill(said, t("copied"));
  };
  const label = t("linesFor", { name });
  return h(
    "div",
    null,
    h("pre", { tabindex: 0, "aria-label": label }, lines),
    // Browsers give the clipboard to pages of https and of this machine only.
    navigator.clipboard && h("button", { type: "button", "aria-label": t("copyLinesFor", { name }), onclick: () => copy().catch(() => fill(said, t("cannotCopy"))) }, t("copy")),
    " ",
    said,
    behind(`qr-${name}`, t("asQr"), () => qrCode(lines, t("qrOf", { name })) ?? h("p", null, t("tooLongQr"))),
  );
}
