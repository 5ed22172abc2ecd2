// The question for a token, in a dialog. Knows no data.

import { Failure, hasToken, setToken } from "./api.js";
import { field, fill, h } from "./dom.js";

/** @typedef {import("./api.js").Use} Use */

/** @type {Record<Use, [string, string]>} the title of the question, and why it is asked */
const WORDS = {
  read: ["Access token", "This server shows its readings only to those who have a token."],
  write: ["Write token", "To store a reading needs a write token. It is forgotten when you close this tab."],
  admin: ["Admin token", "Edits need an admin token. It is forgotten when you close this tab."],
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
  const create = `cargo run -- token create --scope ${use} ${use === "write" ? "--any " : ""}--name me`;
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
      h("h2", { id: "token-title" }, title),
      h("p", null, why),
      // Without a token there was nothing to refuse.
      (use !== "read" || again) && h("p", { class: "warn", role: "alert" }, again ? `The token is refused: ${refusal}` : refusal),
      mayOnlyStore && h("p", null, "Give one that may read. Whoever only sends readings keeps the other."),
      h("p", { class: "note" }, "Create one with ", h("code", null, create), ", and --data-dir if the server was started with it, or --table and --region for a deployed system."),
      field("Token", input),
      use === "read" && h("label", { class: "check" }, keep, "Keep it in this browser"),
      h("div", { class: "buttons" }, h("button", { type: "submit" }, "Use it"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
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
