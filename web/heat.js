// The view of heat maps: rooms against hours, and a month of days against hours. Draws no line.

import { get, path } from "./api.js";
import { card, fill, h, select } from "./dom.js";
import { day, midnight, number, shownUnit, shownValue, words, zone } from "./format.js";
import { again, inPlace } from "./energy.js";
import { home, linesOf, metricsOf, roomName, rowsBy } from "./home.js";
import { absent, isLacking, lackNote } from "./lack.js";

/** @typedef {{name: string, cells: Map<string, number>}} Line */

/** The number of shades. */
const SHADES = 8;

/** @param {HTMLElement} main */
export async function heat(main) {
  let metric = "";
  let room = "";
  const controls = h("div", { class: "controls" });
  const rooms = h("div");
  const days = h("div");
  fill(main, h("h1", null, "Heat map"), h("section", { class: "card" }, controls), card("Rooms by hour, last 24 hours", rooms), card("Days by hour, last 31 days", days));
  async function show() {
    const known = await home();
    const metrics = [...metricsOf(known.devices)].filter(([, it]) => it.kind !== "counter");
    if (!metrics.length) return fill(controls, h("p", null, "There are no readings yet."));
    metric ||= metrics[0][0];
    const having = known.rooms.filter((it) => known.devices.some((device) => device.room === it.room_id && device.metrics[metric]));
    if (!having.some((it) => it.room_id === room)) room = having[0]?.room_id ?? "";
    const unit = metrics.find(([name]) => name === metric)?.[1].unit ?? null;
    if (!controls.contains(document.activeElement)) {
      fill(
        controls,
        select("Metric", metrics.map(([name]) => [name, words(name)]), metric, (value) => { metric = value; again(main, show); }),
        select("Room of the month", having.map((it) => [it.room_id, it.name || it.room_id]), room, (value) => { room = value; again(days, show); }),
      );
    }
    await Promise.all([
      inPlace(rooms, async () => {
        const from = new Date(Date.now() - 23 * 3_600_000);
        from.setMinutes(0, 0, 0);
        const answer = await get("series", { metric, every: "1h", fn: "mean", ...rowsBy(known.devices, metric), tz: zone, from: from.toISOString(), to: "now" });
        const hours = Array.from({ length: 24 }, (_, n) => new Date(from.getTime() + n * 3_600_000));
        const lines = linesOf(known, answer.data, metric).map(({ label, points }) => ({ name: label, cells: new Map(points.map(({ time, mean }) => [String(time * 1000), mean])) }));
        fill(rooms, map(`${words(metric)} of each room by hour`, unit, hours.map((it) => ({ key: String(it.getTime()), name: String(it.getHours()) })), lines, isLacking(answer)), lackNote(answer));
      }),
      inPlace(days, async () => {
        if (!room) return fill(days);
        const answer = await get(path("rooms", room, "series"), { metric, every: "1h", fn: "mean", tz: zone, from: midnight(-30).toISOString(), to: "now" });
        /** @type {Map<string, Line>} */
        const lines = new Map();
        for (const row of answer.data) {
          if (!row[metric]) continue;
          const at = new Date(row.timestamp);
          const name = day(at);
          if (!lines.has(name)) lines.set(name, { name, cells: new Map() });
          lines.get(name)?.cells.set(String(at.getHours()), row[metric].mean);
        }
        const hours = Array.from({ length: 24 }, (_, n) => ({ key: String(n), name: String(n) }));
        fill(days, map(`${words(metric)} in ${roomName(known, room)} by day and hour`, unit, hours, [...lines.values()].reverse(), isLacking(answer)), lackNote(answer));
      }),
    ]);
  }
  return show;
}

/**
 * A table whose cells are shaded from the lowest to the highest value.
 * @param {string} title
 * @param {string | null} unit
 * @param {{key: string, name: string}[]} columns
 * @param {Line[]} lines
 * @param {boolean} lacks
 */
function map(title, unit, columns, lines, lacks) {
  const all = lines.flatMap(({ cells }) => [...cells.values()]);
  if (!all.length) return h("p", null, absent(lacks, "No values in this range."));
  const low = all.reduce((a, b) => Math.min(a, b));
  const high = all.reduce((a, b) => Math.max(a, b));
  const shade = (/** @type {number} */ value) => Math.min(SHADES - 1, Math.floor(((value - low) / (high - low || 1)) * SHADES));
  const digits = shownValue(high, unit) - shownValue(low, unit) < 10 && high < 100 ? 1 : 0;
  const text = (/** @type {number} */ value) => number(shownValue(value, unit), digits);
  const cell = (/** @type {number | undefined} */ value) => (value === undefined ? h("td", null) : h("td", { class: `s${shade(value)}` }, text(value)));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h(
      "table",
      { class: "heat" },
      h("caption", null, `${title}, ${shownUnit(unit)}: ${text(low)} (light) to ${text(high)} (dark)`),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Hour"), ...columns.map(({ name }) => h("th", { scope: "col" }, name)))),
      h("tbody", null, ...lines.map(({ name, cells }) => h("tr", null, h("th", { scope: "row" }, name), ...columns.map(({ key }) => cell(cells.get(key)))))),
    ),
  );
}
