// The notes of a chart in words, and the form of a new one. Draws none.

import { dropNote, keepNote } from "../data/annotations.js";
import { deviceName, roomName } from "../data/home.js";
import { t } from "../words/words.js";
import { behind, field, fill, h, select } from "./dom.js";
import { moment } from "../words/format.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/annotations.js").Note} Note */

/** Shows the view again, after a change. */
function changed() {
  // A view leaves a form alone while somebody writes in it. This form is done, so it gives up the focus.
  /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  window.dispatchEvent(new Event("changed"));
}

/**
 * @param {Home} known
 * @param {string} room empty for all
 * @param {Note[]} marks
 * @param {{from: number, to: number}} ends in milliseconds
 */
export function notes(known, room, marks, ends) {
  const shown = marks.filter((it) => !room || it.room === room || known.devices.some((device) => device.device_id === it.device && device.room === room));
  const said = h("span", { class: "warn", role: "alert" });
  const failed = (/** @type {any} */ error) => fill(said, error.message);
  const about = (/** @type {Note} */ it) => it.room ? roomName(known, it.room) : deviceName(known.devices.find((device) => device.device_id === it.device) ?? /** @type {any} */ ({ device_id: it.device ?? "" }));
  const drop = (/** @type {Note} */ it) => guarded(() => dropNote(it.id)).then(changed).catch(failed);
  return behind("notes", t("notesOf", { n: shown.length, count: shown.length }), () => h("div", null,
    h("ul", null, ...shown.map((it) => h("li", null, t("labelled", { name: `${moment(it.from * 1000)}, ${about(it)}`, text: it.text }), " ", h("button", { type: "button", class: "small", onclick: () => drop(it) }, t("delete"))))),
    newNote(known, room, Math.min(ends.to, Date.now())),
    said,
  ));
}

/**
 * @param {Home} known
 * @param {string} room
 * @param {number} at in milliseconds
 */
function newNote(known, room, at) {
  let about = room || (known.rooms[0]?.room_id ?? "");
  const date = new Date(at);
  const time = h("input", { type: "datetime-local", required: true, value: new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16) });
  const text = h("input", { type: "text", required: true, maxlength: 200, autocomplete: "off" });
  const said = h("span", { class: "warn", role: "alert" });
  const keep = (/** @type {Event} */ event) => {
    event.preventDefault();
    guarded(() => keepNote(new Date(time.value).getTime(), { room: about }, text.value.trim())).then(changed).catch((error) => fill(said, error.message));
  };
  return h("form", { class: "controls", onsubmit: keep },
    field(t("time"), time),
    !room && select(t("room"), known.rooms.map((it) => [it.room_id, it.name || it.room_id]), about, (value) => { about = value; }),
    field(t("note"), text),
    h("button", { type: "submit" }, t("addNote")),
    said,
  );
}
