// The power of this minute and of the last hour, which grow while one looks, and the steps in them. Asks every few
// seconds, and only while it is seen.

import { keepNote } from "../data/annotations.js";
import { deviceName } from "../data/home.js";
import { readingsSince } from "../data/series.js";
import { t } from "../words/words.js";
import { fill, h } from "./dom.js";
import { large, smallLine } from "./figures.js";
import { clock, isolated, watts } from "../words/format.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/api.js").Device} Device */
/** @typedef {{at: number, watts: number}} Point milliseconds */

/** Milliseconds between two looks. */
const EVERY = 5_000;
const HOUR = 3_600_000;
/** A step that is told, in W, within so many milliseconds. */
const STEP = 500;
const MAX_GAP = 180_000;
/** The most meters that are asked, and the most steps that are told. */
const MAX_METERS = 3;
const MAX_STEPS = 5;

/** @type {Map<string, Point[]>} the last hour of each meter */
const hours = new Map();

/**
 * @param {Device[]} meters those that are added up
 * @param {(device: Device) => {name: string, scale: number} | null} powerMetric
 */
export function live(meters, powerMetric) {
  const asked = meters.flatMap((device) => { const metric = powerMetric(device); return metric ? [{ device, ...metric }] : []; }).slice(0, MAX_METERS);
  const total = h("div");
  const hour = h("div");
  const steps = h("div");
  const node = h("div", null, h("div", { class: "live" }, total, hour), steps);
  if (!asked.length || meters.length > MAX_METERS) return null;
  let timer = 0;
  const look = async () => {
    if (!node.isConnected) return window.clearInterval(timer);
    if (document.visibilityState !== "visible") return;
    try {
      for (const { device, name, scale } of asked) {
        const points = (hours.get(device.device_id) ?? []).filter((it) => it.at > Date.now() - HOUR);
        const from = points.at(-1)?.at ?? Date.now() - HOUR;
        for (const row of await readingsSince(device.device_id, name, new Date(from + 1))) if (row[name] !== undefined && row[name] !== null) points.push({ at: new Date(row.timestamp).getTime(), watts: row[name] * scale });
        hours.set(device.device_id, points.sort((a, b) => a.at - b.at));
      }
    } catch {
      // The page itself tells what is wrong.
      return;
    }
    show();
  };
  const show = () => {
    const newest = asked.map(({ device }) => hours.get(device.device_id)?.at(-1));
    const last = Math.max(...newest.map((it) => it?.at ?? 0));
    if (!last) return;
    const sum = newest.reduce((sum, it) => sum + (it?.watts ?? 0), 0);
    fill(total, large(sum < 0 ? t("wattsSold", { power: watts(-sum) }) : watts(sum)), h("p", { class: "note" }, t("measuredAt", { time: clock(last) })));
    fill(hour, lastHour());
    showSteps();
  };
  /** The last hour by minutes; a minute without a reading has the value before it. */
  const lastHour = () => {
    const points = Array.from({ length: 60 }, (_, n) => Date.now() - (59 - n) * 60_000).flatMap((time) => {
      const before = asked.flatMap(({ device }) => (hours.get(device.device_id) ?? []).filter(({ at }) => at <= time).at(-1) ?? []);
      return before.length ? [{ time, value: before.reduce((sum, point) => sum + point.watts, 0) }] : [];
    });
    if (!points.length) return null;
    const values = points.map(({ value }) => value);
    const [low, high] = [Math.min(...values), Math.max(...values)].map(watts);
    return h("div", { class: "hour" }, smallLine("", t("lastHour", { low, high }), points), h("span", { class: "note" }, high), low !== high && h("span", { class: "note low" }, low));
  };
  const showSteps = () => {
    const found = asked.flatMap(({ device }) => stepsOf(hours.get(device.device_id) ?? []).map((it) => ({ ...it, device }))).sort((a, b) => b.at - a.at).slice(0, MAX_STEPS);
    if (steps.contains(document.activeElement)) return;
    fill(steps, found.length > 0 && h("h3", null, t("steps")), found.length > 0 && h("ul", { class: "steps-list" }, ...found.map((it) => stepEntry(it.device, it))));
  };
  timer = window.setInterval(look, EVERY);
  queueMicrotask(() => { show(); look(); });
  return node;
}

/**
 * Rises and falls of more than 500 W from one reading to the next.
 * @param {Point[]} points
 */
export function stepsOf(points) {
  return points.flatMap((point, n) => {
    const before = points[n - 1];
    const by = before ? point.watts - before.watts : 0;
    return before && Math.abs(by) >= STEP && point.at - before.at <= MAX_GAP ? [{ at: point.at, by }] : [];
  });
}

/**
 * @param {Device} device
 * @param {{at: number, by: number}} step
 */
function stepEntry(device, { at, by }) {
  const text = t(by > 0 ? "stepUp" : "stepDown", { time: clock(at), power: watts(Math.abs(by)), device: isolated(deviceName(device)) });
  const said = h("span", { role: "status" });
  const name = h("input", { type: "text", maxlength: 200, placeholder: t("stepName"), "aria-label": t("stepNameOf", { step: text }) });
  const keep = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!name.value.trim()) return;
    guarded(() => keepNote(at, { device: device.device_id }, name.value.trim())).then(() => fill(said, t("noted")), (error) => fill(said, error.message));
  };
  return h("li", null, text, " ", h("form", { class: "inline", onsubmit: keep }, name, h("button", { type: "submit", class: "small" }, t("nameIt")), said));
}
