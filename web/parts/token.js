// The question for a token, in a dialog. Knows no data.

import { Failure, hasToken, ofData, program, setToken } from "../data/api.js";
import { field, fill, h } from "./dom.js";
import { rich, t } from "../words/words.js";

/** @typedef {import("../data/api.js").Use} Use */

/** @type {Record<Use, [import("../words/words.js").Key, import("../words/words.js").Key]>} the title of the question, and why it is asked */
const WORDS = {
  read: ["accessToken", "accessTokenWhy"],
  write: ["writeToken", "writeTokenWhy"],
  admin: ["adminToken", "adminTokenWhy"],
};

/**
 * Asks for a token. Tells whether one was given.
 * @param {Use} use
 * @param {string} refusal the server's words
 * @returns {Promise<boolean>}
 */
export function askForToken(use, refusal) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("token"));
  if (dialog.open) return Promise.resolve(false);
  const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const keep = h("input", { type: "checkbox" });
  const mayOnlyStore = use === "read" && / store /.test(refusal);
  const [title, why] = WORDS[use];
  const create = `${program} token create --scope ${use} ${use === "write" ? "--any " : ""}--name me${ofData}`;
  const again = use === "read" && hasToken();
  return new Promise((resolve) => {
    let given = false;
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: () => {
          given = true;
          setToken(use, input.value.trim(), keep.checked);
        },
      },
      h("h2", { id: "token-title" }, t(title)),
      h("p", null, t(why)),
      // Without a token there was nothing to refuse.
      (use !== "read" || again) && h("p", { class: "warn", role: "alert" }, again ? t("tokenRefused", { why: refusal }) : refusal),
      mayOnlyStore && h("p", null, t("mayOnlyStore")),
      h("p", { class: "note" }, ...rich("createToken", { command: h("code", null, create) }), ` ${t("commandWhere")}`),
      field(t("secret_token"), input),
      use === "read" && h("label", { class: "check" }, keep, t("keepToken")),
      h("div", { class: "buttons" }, h("button", { type: "submit" }, t("useIt")), h("button", { type: "button", onclick: () => dialog.close() }, t("cancel"))),
    );
    fill(dialog, form);
    dialog.onclose = () => resolve(given);
    dialog.showModal();
    input.focus();
  });
}

/**
 * Does an edit; where its token is missing, asks for one and does it again.
 * @template T
 * @param {() => Promise<T>} edit
 * @param {Use} [use]
 * @returns {Promise<T>}
 */
export async function guarded(edit, use = "admin") {
  try {
    return await edit();
  } catch (error) {
    const isRefused = error instanceof Failure && (error.status === 401 || error.status === 403);
    if (!isRefused || !(await askForToken(use, error.message))) throw error;
    return edit();
  }
}
