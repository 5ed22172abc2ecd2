// The view of a year at a glance: a square for each day, of energy or of a room's metric. Edits nothing.

import { addressOf, choose, chosen } from "../data/address.js";
import { energyByDay, metricByDay } from "../data/history.js";
import { beginning, hasEnergy, home, metricsOf, roomName } from "../data/home.js";
import { dayOf, moved, range, startOf } from "../data/range.js";
import { dateBar, titleOf } from "../parts/datebar.js";
import { card, fill, h, select, tableBehind, table } from "../parts/dom.js";
import { fullDay, kwh, quantity, shownUnit, words, written } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { lackNote } from "../parts/lack.js";
import { inPlace } from "../parts/place.js";
import { shadeTable } from "../parts/shades.js";
import { t } from "../words/words.js";

/** @typedef {{day: Date, value: number, low?: number, high?: number, isPart: boolean}} Day */

const DAY = 86_400_000;
/** Fewer days are shown by weeks. */
const MIN_DAYS = 60;

/** @param {HTMLElement} main */
export async function year(main) {
  const bar = h("div");
  const place = h("div");
  fill(main, h("h1", { class: "hidden" }, t("year")), bar, card(t("dayByDay"), place));
  return async () => {
    const known = await home();
    const shown = range("year", ["year"]);
    const isMetered = known.devices.some(hasEnergy);
    const metrics = [...metricsOf(known.devices)].filter(([name, it]) => it.kind !== "counter" && name !== "current_w").map(([name]) => name);
    if (!isMetered && !metrics.length) return fill(place, h("p", null, t("noReadingsYet")));
    const offered = [...(isMetered ? ["energy"] : []), ...metrics];
    const what = offered.includes(chosen("metric")) ? chosen("metric") : offered[0];
    const rooms = known.rooms.filter((it) => known.devices.some((device) => device.room === it.room_id && device.metrics[what]));
    const room = rooms.some((it) => it.room_id === chosen("room")) ? chosen("room") : (rooms.find((it) => it.outside === true) ?? rooms[0])?.room_id ?? "";
    const choices = [
      select(t("what"), offered.map((it) => [it, it === "energy" ? t("energyKwh") : words(it)]), what, (metric) => choose({ metric })),
      what !== "energy" && rooms.length > 0 ? select(t("room"), rooms.map((it) => [it.room_id, `${it.name || it.room_id}${it.outside === true ? `, ${t("outside")}` : ""}`]), room, (value) => choose({ room: value })) : null,
    ];
    dateBar(bar, shown, { spans: ["year"], usual: "year", begins: beginning(known), compares: false, choices });
    await inPlace(place, async () => {
      const unit = what === "energy" ? "kWh" : metricsOf(known.devices).get(what)?.unit ?? null;
      const answer = await (what === "energy" ? energyByDay(shown) : metricByDay(room, what, shown));
      /** @type {Day[]} */
      const days = answer.data.flatMap((/** @type {any} */ row) => {
        const value = what === "energy" ? row.kwh : row[what]?.mean;
        return value === null || value === undefined ? [] : [{ day: new Date(row.timestamp), value, low: row[what]?.min, high: row[what]?.max, isPart: Boolean(row.partial) }];
      });
      const title = what === "energy" ? t("energyOfYear", { year: titleOf(shown) }) : t("metricOfYear", { metric: words(what), room: room ? roomName(known, room) : t("allRooms"), year: titleOf(shown) });
      fill(place, extremesOf(what, unit, days, room), calendar(title, unit, shown.from.getFullYear(), days, isLacking(answer), what, room), lackNote(answer), days.length > 0 && tableBehind(title, () => dayTable(title, what, unit, days)));
    });
  };
}

/**
 * The highest and the lowest day, each a link to it.
 * @param {string} what
 * @param {string | null} unit
 * @param {Day[]} days
 * @param {string} room
 */
function extremesOf(what, unit, days, room) {
  if (!days.length) return null;
  const of = (/** @type {Day} */ it, /** @type {"low" | "high"} */ end) => it[end] ?? it.value;
  const high = days.reduce((best, it) => (of(it, "high") > of(best, "high") ? it : best));
  // Today is not over.
  const whole = days.some((it) => !it.isPart) ? days.filter((it) => !it.isPart || what !== "energy") : days;
  const low = whole.reduce((best, it) => (of(it, "low") < of(best, "low") ? it : best));
  const link = (/** @type {Day} */ it) => h("a", { href: what === "energy" ? addressOf("energy", "", { d: dayOf(it.day), span: "" }) : addressOf("charts", room, { d: dayOf(it.day), span: "day", metric: what }) }, fullDay(it.day));
  // The squares are means.
  const amount = (/** @type {Day} */ it, /** @type {"low" | "high"} */ end) => what === "energy" ? kwh(it.value) : `${quantity(of(it, end), unit, 1)} (${t(end === "high" ? "highestReading" : "lowestReading")})`;
  return h("ul", null, h("li", null, t(what === "temperature" ? "hottestDay" : "highestDayIs"), " ", link(high), `, ${amount(high, "high")}`), h("li", null, t(what === "temperature" ? "coldestDay" : "lowestDayIs"), " ", link(low), `, ${amount(low, "low")}`));
}

/**
 * @param {string} title
 * @param {string | null} unit
 * @param {number} year
 * @param {Day[]} days
 * @param {boolean} lacks
 * @param {string} what
 * @param {string} room
 */
function calendar(title, unit, year, days, lacks, what, room) {
  const isShort = days.length < MIN_DAYS;
  const { columns, lines } = isShort ? weeksOf(days) : monthsOf(year, days);
  const dayAt = (/** @type {any} */ line, /** @type {any} */ column) => new Date(line.from.getFullYear(), line.from.getMonth(), line.from.getDate() + Number(column.key));
  return shadeTable({
    title: what === "energy" ? title : t("labelled", { name: t("mean"), text: title }), corner: t(isShort ? "spanWeek" : "month"), unit, columns, lines, lacks, numbers: isShort,
    when: (line, column) => fullDay(dayAt(line, column)),
    choose: (line, column) => {
      const d = dayOf(dayAt(line, column));
      location.hash = what === "energy" ? addressOf("energy", "", { d, span: "" }) : addressOf("charts", room, { d, span: "day", metric: what });
    },
  });
}

/**
 * The days of a line, by how many days they are after its first.
 * @param {Day[]} days
 * @param {Date} from
 * @param {Date} to
 */
function cellsOf(days, from, to) {
  const here = days.filter(({ day }) => day >= from && day < to);
  return new Map(here.map(({ day, value }) => [String(Math.round((day.getTime() - from.getTime()) / DAY)), value]));
}

/** A line for each month, from the first to the last that has a day. @param {number} year @param {Day[]} days */
function monthsOf(year, days) {
  const columns = Array.from({ length: 31 }, (_, n) => ({ key: String(n), name: String(n + 1), isMajor: n === 0 || n % 10 === 9 }));
  const months = days.map(({ day }) => day.getMonth());
  const first = Math.min(...months);
  const lines = Array.from({ length: Math.max(...months) - first + 1 }, (_, n) => {
    const from = new Date(year, first + n, 1);
    return { name: written(from, { month: "short" }), from, cells: cellsOf(days, from, moved(from, "month", 1)) };
  });
  return { columns, lines };
}

/** A line for each week. @param {Day[]} days */
function weeksOf(days) {
  const weeks = [...new Set(days.map(({ day }) => startOf("week", day).getTime()))].map((time) => new Date(time));
  const columns = Array.from({ length: 7 }, (_, n) => ({ key: String(n), name: written(new Date(2024, 0, 1 + n), { weekday: "short" }), isMajor: true }));
  const lines = weeks.map((from) => ({ name: written(from, { day: "numeric", month: "short" }), from, cells: cellsOf(days, from, moved(from, "week", 1)) }));
  return { columns, lines };
}

/**
 * @param {string} title
 * @param {string} what
 * @param {string | null} unit
 * @param {Day[]} days
 */
function dayTable(title, what, unit, days) {
  const cell = (/** @type {number | undefined} */ it) => (it === undefined ? "" : quantity(it, unit, 1));
  if (what === "energy") return table(title, [t("day"), "kWh"], days.map((it) => [fullDay(it.day), kwh(it.value)]));
  return table(`${title}, ${shownUnit(unit)}`, [t("day"), t("mean"), t("min"), t("max")], days.map((it) => [fullDay(it.day), cell(it.value), cell(it.low), cell(it.high)]));
}
