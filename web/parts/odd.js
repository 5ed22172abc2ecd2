// The steps of counters that were odd, with buttons that judge them. Finds none itself.

import { judgeStep } from "../data/edits.js";
import { deviceName, home, roomName } from "../data/home.js";
import { named, t } from "../words/words.js";
import { fill, h } from "./dom.js";
import { duration, moment, quantity, words } from "../words/format.js";
import { inPlace } from "./place.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/api.js").EventRow} EventRow */

/**
 * Events of counters, with buttons for the verdicts that would change them, and one that takes a verdict back.
 * @param {Element} place
 * @param {EventRow[]} events
 * @param {() => Promise<unknown>} judged
 */
export async function showEvents(place, events, judged) {
  const known = await home(60_000);
  if (!events.length) return fill(place, h("p", null, t("nothingOdd")));
  const entry = (/** @type {EventRow} */ event) => {
    const device = known.devices.find((it) => it.device_id === event.device_id);
    const unit = device?.metrics[event.metric]?.unit;
    const digits = digitsOf(event);
    const problem = h("p", { class: "warn", role: "alert" });
    const judge = (/** @type {string | null} */ verdict, /** @type {string} */ text) => h("button", { type: "button", onclick: () => inPlace(problem, async () => { await guarded(() => judgeStep(event, verdict)); await judged(); }) }, text);
    // A dip cancels by itself, and what nobody doubts needs no acceptance.
    const isOpen = event.events.includes("suspect") || event.events.includes("ambiguous");
    const offered = event.events.includes("dip") ? [] : (event.verdicts ?? []).filter((it) => isOpen || it !== "accept");
    return h(
      "li",
      null,
      h("strong", null, event.events.map((it) => named(`event_${it}`, it)).join(", ")),
      ` ${moment(event.timestamp)}, ${device ? t("deviceInRoom", { device: deviceName(device), room: roomName(known, device.room) }) : event.device_id}, ${words(event.metric)} ${stepText(event, unit)}. `,
      event.events.map((it) => named(`meaning_${it}`, "")).join(" "),
      event.amount_if_wrapped !== undefined && h("p", null, t("eitherAmount", { reset: quantity(event.amount ?? null, unit, digits), wrap: quantity(event.amount_if_wrapped, unit, digits) })),
      event.verdict ? h("div", { class: "buttons" }, judge(null, t("undo"))) : offered.length > 0 && h("div", { class: "buttons" }, ...offered.map((it) => judge(it, named(`verdict_${it}`, it)))),
      problem,
    );
  };
  fill(place, h("ul", null, ...events.map(entry)));
}

/** So many digits that the difference is seen. @param {EventRow} event */
function digitsOf({ from, to }) {
  return from && to ? Math.min(6, Math.max(2, -Math.floor(Math.log10(Math.abs(to.value - from.value))))) : 0;
}

/**
 * From which value to which, and in what time; empty where a step has no ends.
 * @param {EventRow} event
 * @param {string | null | undefined} unit
 */
export function stepText(event, unit) {
  const { from, to } = event;
  if (!from || !to) return "";
  const digits = digitsOf(event);
  return t("step", { from: quantity(from.value, unit, digits), to: quantity(to.value, unit, digits), time: duration(new Date(to.timestamp).getTime() - new Date(from.timestamp).getTime()) });
}
