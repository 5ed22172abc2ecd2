// The view for a newcomer, in two halves: the lines that send a first reading, with this server's address and a token, and
// its arrival; and what Roomtide asks for by itself, which comes when it is chosen.

import { choose, chosen } from "../data/address.js";
import { Failure, address, hasToken, ofData, program } from "../data/api.js";
import { editDevice } from "../data/edits.js";
import { deviceName, home, isOfSource } from "../data/home.js";
import { makeToken, sendReading } from "../data/links.js";
import { SENDERS, isLocal, name, server, start } from "../data/senders.js";
import { behind, buttons, card, field, fill, h } from "../parts/dom.js";
import { age, clock, quantity, words } from "../words/format.js";
import { copyable } from "../parts/copyable.js";
import { inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { named, rich, t } from "../words/words.js";
import { shareCard } from "./share.js";

/** @typedef {import("../data/api.js").Device} Device */

const TOKEN = "TOKEN";
/** An id as the server takes it. */
const ID = /^[\w.:-]{1,100}$/;

/** What was made here, for as long as this tab is open: tokens by device. @type {Map<string, string>} */
const made = new Map();
/** What was typed, by sender. @type {Map<string, {device: string, room: string}>} */
const typed = new Map();

/** @param {HTMLElement} main */
export async function connect(main) {
  const halves = h("div");
  const place = h("div");
  fill(main, h("h1", { class: "hidden" }, t("connectDevice")), halves, place);
  /** @type {string | null} */
  let shown = null;
  let show = async () => {};
  return async () => {
    const half = chosen("half");
    if (shown !== half) {
      fill(halves, buttons(t("halves"), [["", t("itSends")], ["asks", t("roomtideAsks")]], half, (half) => choose({ half, kind: "", source: "" })));
      show = half === "asks" ? (await import("./sources.js")).sources(place) : sends(place);
      shown = half;
    }
    return show();
  };
}

/**
 * The half of what sends by itself.
 * @param {HTMLElement} place
 * @returns {() => Promise<any>}
 */
function sends(place) {
  const arrived = h("div", { role: "status" });
  const settle = h("div");
  const since = Date.now();
  /** @type {string | null} */
  let settled = null;
  let shown = "";
  return async () => {
    if (shown !== location.hash) fill(place, empty(h("div", null, arrived, settle)), shareCard(await home(60_000)));
    shown = location.hash;
    const { devices } = await home(1_000);
    const newest = devices
      .filter((it) => it.latest && !isOfSource(it))
      .sort((a, b) => (a.latest?.timestamp ?? "").localeCompare(b.latest?.timestamp ?? ""))
      .at(-1);
    if (!newest?.latest) return fill(arrived, waiting(false, t("waitingFirst")));
    const at = new Date(newest.latest.timestamp).getTime();
    const isNew = at >= since - 60_000;
    const values = Object.entries(newest.latest.metrics).map(([name, { value }]) => `${words(name)} ${quantity(value, newest.metrics[name]?.unit)}`);
    const text = t("arrivedFrom", { device: deviceName(newest), values: values.join(", "), age: age(at), time: clock(at) });
    fill(arrived, waiting(isNew, t(isNew ? "readingReceived" : "waitingNew")), h("p", { class: "note" }, isNew ? text : t("newestSoFar", { text })));
    if (isNew && settled !== newest.device_id) {
      settled = newest.device_id;
      fill(settle, nameForm(newest));
    }
  };
}

/** A small line that turns green. @param {boolean} isThere @param {string} text */
function waiting(isThere, text) {
  return h("p", { class: isThere ? "less" : "note" }, h("span", { class: `dot round ${isThere ? "good" : ""}` }), " ", text);
}

/**
 * Names the device that has just sent its first reading, and puts it in a room.
 * @param {Device} device
 */
function nameForm(device) {
  const title = h("input", { type: "text", value: device.name ?? "", maxlength: 100, autocomplete: "off" });
  const room = h("input", { type: "text", value: device.room ?? "", autocomplete: "off" });
  const said = h("p", { role: "status" });
  const save = async () => {
    const edit = { ...(title.value.trim() && title.value.trim() !== device.name && { name: title.value.trim() }), ...(room.value.trim() && room.value.trim() !== device.room && { room: room.value.trim() }) };
    if (Object.keys(edit).length) await guarded(() => editDevice(device.device_id, edit));
    fill(said, t("named"), " ", h("a", { href: "#now" }, t("seeItNow")));
  };
  return h("form", { class: "controls", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); inPlace(said, save); } },
    field(t("nameOf", { device: device.device_id }), title), field(t("roomId"), room), h("button", { type: "submit" }, t("save")), said);
}

/**
 * The lines to copy.
 * @param {Node} [arrived] where the first reading is told
 */
export function empty(arrived) {
  const sender = SENDERS.find(({ key }) => key === chosen("sender")) ?? SENDERS[0];
  const title = (/** @type {import("../data/senders.js").Sender} */ it) => it.title || t("anyOther");
  const given = typed.get(sender.key) ?? { device: sender.device, room: "study" };
  const device = h("input", { type: "text", value: given.device, autocomplete: "off", spellcheck: "false", pattern: "[\\w.:\\-]{1,100}", oninput: () => changed() });
  const room = h("input", { type: "text", value: given.room, autocomplete: "off", spellcheck: "false", pattern: "[\\w.:\\-]{1,100}", oninput: () => changed() });
  const place = h("div");
  const changed = () => {
    if (!ID.test(room.value) || (sender.device && !ID.test(device.value))) return;
    typed.set(sender.key, { device: device.value, room: room.value });
    const id = sender.device ? device.value : "";
    // Without a token this page could read, so the server needs none. The address for other senders always has one.
    const isAsked = hasToken() || sender.key === "other";
    const token = made.get(id) ?? (isAsked ? TOKEN : "");
    const lines = sender.lines(device.value, room.value, token);
    fill(place, isAsked && tokenPart(id, changed), isLocal && lines.includes(name) && elsewhere(t("addressIs", { name })), copyable(title(sender), lines), sender.key === "curl" && sendButton({ device_id: device.value, room: room.value, temperature: 21.5 }));
  };
  changed();
  return h(
    "div",
    null,
    h("div", { class: "kinds", role: "group", "aria-label": t("sender") }, ...SENDERS.map((it) => h("button", { type: "button", id: `sender-${it.key}`, "aria-pressed": String(it === sender), onclick: () => choose({ sender: it.key }) }, title(it)))),
    card(title(sender),
      h("p", null, named(`sender_${sender.key}`, "")),
      h("div", { class: "controls" }, sender.device && field(t("deviceIdField"), device), sender.device && field(t("room"), room)),
      place,
      arrived ?? h("p", null, ...rich("noDevicesYet", { wait: h("a", { href: "#connect" }, t("waitForFirst")), ask: h("a", { href: "#connect?half=asks" }, t("roomtideAsks")) })),
    ),
    card(t("thisServer"),
      h("p", null, ...rich(server === address.replace(/\/$/, "") ? "itsAddress" : "storedAt", { address: h("code", null, server) })),
      isLocal && elsewhere(t("onlyThisMachine")),
    ),
  );
}

/**
 * The token of the sender: made here by an admin, or by a command.
 * @param {string} device empty for one that sends for many
 * @param {() => void} changed
 */
function tokenPart(device, changed) {
  const said = h("p", { role: "status" });
  if (made.has(device)) return h("p", { class: "note" }, t("tokenMade"));
  const make = async () => {
    made.set(device, await guarded(() => makeToken(device)));
    changed();
  };
  const failed = (/** @type {any} */ error) => error instanceof Failure && [404, 405].includes(error.status) ? fill(said, t("noTokensHere")) : fill(said, h("span", { class: "warn" }, error.message));
  const command = `${program} token create --scope write ${device ? `--device ${device}` : "--any"}${ofData}`;
  return h("div", null,
    device && h("p", null, h("button", { type: "button", onclick: () => make().catch(failed) }, t("makeToken"))),
    said,
    behind("command", t("makeByCommand"), () => h("div", null, h("p", null, h("code", null, command)), h("p", { class: "note" }, `${t("tokenNote", { token: TOKEN })} ${t("commandWhere")}`))),
  );
}

/** Sends the first reading from here. @param {Record<string, string | number>} reading */
function sendButton(reading) {
  const said = h("span", { role: "status" });
  const act = async () => {
    await guarded(() => sendReading(reading), "write");
    fill(said, t("sent"));
  };
  return h("p", null, h("button", { type: "button", onclick: () => act().catch((error) => fill(said, error.message)) }, t("sendFromHere")), " ", said);
}

/**
 * How the server is reached from other machines.
 * @param {string} text
 */
function elsewhere(text) {
  return h("p", { class: "note" }, ...rich("elsewhere", { text, command: h("code", null, start) }));
}
