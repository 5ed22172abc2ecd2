// The devices that the sum of energy counts and leaves out, and the question which meter measures all. Adds up
// nothing.

import { editDevice } from "../data/edits.js";
import { card, fill, h, select } from "./dom.js";
import { deviceName, home } from "../data/home.js";
import { listed, named, t } from "../words/words.js";
import { inPlace } from "./place.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/api.js").Energy} Energy */

/** The most meters that are named in the question. */
const MAX_NAMED = 5;

/** @type {[string, string][]} */
const ROLES = [["", t("roleAsAbove")], ["consumer", t("roleConsumer")], ["production", t("roleProduction")], ["export", t("roleExport")], ["storage", t("roleStorage")], ["none", t("roleNone")]];

/**
 * Names the devices that the sum leaves out because of their role, and asks for the role of meters that do not say it.
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
  const apart = left_out.filter(({ reason }) => reason !== "behind").map((it) => `${name(it.device_id)} (${named(`reason_${it.reason}`, it.reason)})`);
  const note = apart.length > 0 && h("p", { class: "note" }, t("notInSums", { names: apart.join(", ") }));
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
  const names = listed(unsure.slice(0, MAX_NAMED).map((it) => name(it.device_id)));
  const more = unsure.length > MAX_NAMED ? t("andMore", { n: unsure.length - MAX_NAMED }) : "";
  const give = (/** @type {{device_id: string, metrics: string[]}} */ it, /** @type {string} */ role) => ({ metrics: Object.fromEntries(it.metrics.map((metric) => [metric, { role }])) });
  const save = async () => {
    const edits = unsure.map((it) => {
      const role = roles[it.device_id] || (main === "each" ? "consumer" : it.device_id === main ? "import" : "");
      return { id: it.device_id, edit: role ? give(it, role) : main && { behind: main } };
    });
    const wanted = edits.filter(({ edit }) => edit);
    if (!wanted.length) return fill(said, t("nothingChosen"));
    for (const { id, edit } of wanted) if (edit) await guarded(() => editDevice(id, edit));
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    await told();
  };
  return card(
    t("countedTwice"),
    h("p", null, t("countedTwiceWhy", { names: names + more })),
    select(t("wholeMeter"), [["", t("notKnown")], ...counted.map((id) => /** @type {[string, string]} */ ([id, name(id)])), ["each", t("eachOwn")]], "", (value) => { main = value; }),
    h("details", { class: "behind" }, h("summary", null, t("oneByOne")), ...unsure.map((it) => select(name(it.device_id), ROLES, "", (value) => { roles[it.device_id] = value; }))),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => inPlace(said, save) }, t("save"))),
    said,
  );
}
