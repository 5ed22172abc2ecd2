// The devices that the sum of energy counts and leaves out, and the question which meter measures all. Adds up
// nothing.

import { patch, path } from "./api.js";
import { card, fill, h, select } from "./dom.js";
import { inPlace } from "./energy.js";
import { deviceName, forget, home } from "./home.js";
import { guarded } from "./token.js";

/** @typedef {import("./api.js").Energy} Energy */

/** The most meters that are named in the question. */
const MAX_NAMED = 5;

/** @type {[string, string][]} */
const ROLES = [["", "as chosen above"], ["consumer", "a consumer of its own"], ["production", "produces, such as solar"], ["export", "measures what is sold"], ["storage", "a battery's"], ["none", "a copy of another: counts as nothing"]];

/**
 * Names what the sum leaves out for its role, and asks for the part of meters that say nothing of it.
 * @param {Element} place
 * @param {Energy} energy
 * @param {() => Promise<unknown>} told
 */
export async function showRoles(place, { devices = [], left_out = [], unsure = [] }, told) {
  const known = await home(60_000);
  const name = (/** @type {string} */ id) => {
    const found = known.devices.find((it) => it.device_id === id);
    return found ? deviceName(found) : id;
  };
  const apart = left_out.filter(({ reason }) => reason !== "behind").map((it) => `${name(it.device_id)} (${it.reason === "none" ? "counts as nothing" : it.reason})`);
  const note = apart.length > 0 && h("p", { class: "note" }, `Not in these sums: ${apart.join(", ")}.`);
  // What somebody is about to answer is left alone.
  if (place.contains(document.activeElement)) return;
  fill(place, note, unsure.length > 0 && question(unsure, devices.map((it) => it.device_id), name, told));
}

/**
 * @param {{device_id: string, metrics: string[]}[]} unsure
 * @param {string[]} counted
 * @param {(id: string) => string} name
 * @param {() => Promise<unknown>} told
 */
function question(unsure, counted, name, told) {
  let main = "";
  /** @type {Record<string, string>} */
  const roles = {};
  const said = h("p", { role: "alert" });
  const names = unsure.slice(0, MAX_NAMED).map((it) => name(it.device_id)).join(", ");
  const more = unsure.length > MAX_NAMED ? ` and ${unsure.length - MAX_NAMED} more` : "";
  const give = (/** @type {{device_id: string, metrics: string[]}} */ it, /** @type {string} */ role) => ({ metrics: Object.fromEntries(it.metrics.map((metric) => [metric, { role }])) });
  const save = async () => {
    const edits = unsure.map((it) => {
      const role = roles[it.device_id] || (main === "each" ? "consumer" : it.device_id === main ? "import" : "");
      return { id: it.device_id, edit: role ? give(it, role) : main && { behind: main } };
    });
    const wanted = edits.filter(({ edit }) => edit);
    if (!wanted.length) return fill(said, "Nothing is chosen.");
    for (const { id, edit } of wanted) await guarded(() => patch(path("devices", id), edit));
    forget();
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    await told();
  };
  return card(
    "Are these counted twice?",
    h("p", null, `The sums add ${names}${more} up. Nothing tells whether one of them measures what the others use, too.`),
    select("The meter of the whole home", [["", "not known"], ...counted.map((id) => /** @type {[string, string]} */ ([id, name(id)])), ["each", "none: each is a consumer of its own"]], "", (value) => { main = value; }),
    h("details", { class: "behind" }, h("summary", null, "One by one"), ...unsure.map((it) => select(name(it.device_id), ROLES, "", (value) => { roles[it.device_id] = value; }))),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => inPlace(said, save) }, "Save")),
    said,
  );
}
