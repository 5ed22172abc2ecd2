// The energy of a range: its bars, its parts by device and room, the usual energy, and odd steps of counters.
// Draws nothing.

import { midnight, monthStart, zone } from "../words/format.js";
import { get, path } from "./api.js";
import { deviceName, hasEnergy, roomName } from "./home.js";
import { memory } from "./memory.js";
import { moved } from "./range.js";
import { isShared } from "./shared.js";

/** @typedef {import("./api.js").Energy} Energy */
/** @typedef {import("./api.js").EnergyRow} EnergyRow */
/** @typedef {import("./range.js").Range} Range */
/** @typedef {import("./home.js").Home} Home */
/** @typedef {{id: string, name: string, room: string | null, kwh: number, usual: number | null, bars: Map<number, number>}} Part `id` is empty for what is on no plug; bars by their time in seconds */

/** The most devices behind meters whose events are asked. */
const MAX_LEFT_OUT = 5;
/** The most meters whose usual energy and whose energy in each bar are requested: each meter has a row for each bar. */
const MAX_METERS = 60;

/** How long the answer about unjudged steps is used, in milliseconds, and how far back it reaches. */
const ODD_AGE = 600_000;
const ODD_SINCE = "-7d";

/** The days before today that tell what is usual up to a time of the day, and the fewest of them. */
const USUAL_DAYS = 7;
const MIN_USUAL_DAYS = 3;

const odd = memory();

/** The length of a bar and of what is asked for it, by span. @type {Record<string, {bar: string, asked: string}>} */
export const BARS = {
  day: { bar: "1h", asked: "30m" },
  week: { bar: "1d", asked: "1d" },
  month: { bar: "1d", asked: "1d" },
  year: { bar: "1mo", asked: "1mo" },
};

/** How many spans before one tell what is usual in it, and of what length they are. @type {Record<string, {spans: number, every: string}>} */
const USUAL = {
  day: { spans: 28, every: "1d" },
  week: { spans: 4, every: "1w" },
  month: { spans: 3, every: "1mo" },
  year: { spans: 1, every: "1y" },
};

/** @param {Date} from @param {Date} to */
export function ends(from, to) {
  return { from: from.toISOString(), to: (to.getTime() > Date.now() ? new Date() : to).toISOString(), tz: zone };
}

/**
 * The rows of a range and its odd steps, also those of devices behind a meter, which the sum leaves out.
 * @param {Range} range
 * @returns {Promise<Energy>}
 */
export async function energyOf({ span, from, to }) {
  /** @type {Energy} */
  const all = await get("energy", { ...ends(from, to), every: BARS[span].asked, events: 1 });
  const { from: begin, to: end } = ends(from, to);
  return { ...all, ...(await eventsOf(all, { from: begin, to: end })) };
}

/**
 * The odd steps of counters, also those of devices behind a meter, which the sum leaves out.
 * @param {Energy} answer
 * @param {{from: string, to?: string}} range
 */
async function eventsOf({ events = [], events_has_more, left_out = [] }, range) {
  // A link for others shows no device by itself.
  const hidden = isShared() ? [] : left_out.filter(({ reason }) => reason === "behind");
  /** @type {{data: import("./api.js").EventRow[], has_more: boolean}[]} */
  const behind = await Promise.all(hidden.slice(0, MAX_LEFT_OUT).map((it) => get(path("devices", it.device_id, "events"), range)));
  return {
    events: [...events, ...behind.flatMap((it) => it.data)].sort((a, b) => a.timestamp.localeCompare(b.timestamp)),
    events_has_more: events_has_more || hidden.length > MAX_LEFT_OUT || behind.some((it) => it.has_more),
  };
}

/**
 * Rows of half an hour as rows of an hour; rows of other lengths as they are.
 * @param {EnergyRow[]} rows
 * @param {string} span
 */
export function barsOf(rows, span) {
  if (span !== "day") return rows.map((row) => ({ ...row, time: new Date(row.timestamp).getTime() / 1000 }));
  /** @type {Map<number, EnergyRow & {time: number}>} */
  const hours = new Map();
  const sum = (/** @type {number | null | undefined} */ a, /** @type {number | null | undefined} */ b) => (a === null || a === undefined ? b : b === null || b === undefined ? a : Number((a + b).toPrecision(12)));
  for (const row of rows) {
    const at = new Date(row.timestamp);
    const time = (at.getTime() - at.getMinutes() * 60_000) / 1000;
    const hour = hours.get(time);
    if (!hour) {
      hours.set(time, { ...row, time });
      continue;
    }
    hour.kwh = sum(hour.kwh, row.kwh) ?? null;
    const sold = sum(hour.kwh_sold, row.kwh_sold);
    if (sold !== undefined && sold !== null) hour.kwh_sold = sold;
    hour.flags = [...new Set([...hour.flags, ...row.flags])];
    hour.estimated = hour.estimated || row.estimated;
    hour.partial = hour.partial || row.partial;
  }
  return [...hours.values()];
}

/**
 * What each device used in a range, and what is on no plug.
 * @param {Home} known
 * @param {Range} range
 * @returns {Promise<{parts: Part[], total: number | null, answer: Energy}>}
 */
export async function partsOf(known, { from, to, span }) {
  const isByBar = known.devices.filter(hasEnergy).length <= MAX_METERS;
  /** @type {Energy} */
  const answer = await get("energy", { ...ends(from, to), devices: 1, ...(isByBar && { every: BARS[span].bar }) });
  const { devices = [], left_out = [], total_kwh } = answer;
  const meters = new Set(left_out.map((it) => it.behind ?? known.devices.find(({ device_id }) => device_id === it.device_id)?.behind ?? ""));
  const apart = new Set(left_out.filter(({ reason }) => reason !== "behind").map((it) => it.device_id));
  const leaves = devices.filter((it) => !meters.has(it.device_id) && !apart.has(it.device_id) && !it.role && it.total_kwh !== null && it.total_kwh !== undefined);
  const parts = leaves.map((it) => {
    const device = known.devices.find(({ device_id }) => device_id === it.device_id);
    const rows = isByBar ? answer.data.filter(({ device_id }) => device_id === it.device_id) : [];
    const bars = new Map(rows.map((row) => [new Date(row.timestamp).getTime() / 1000, row.kwh ?? 0]));
    return { id: it.device_id, name: device ? deviceName(device) : it.device_id, room: device?.room ?? null, kwh: it.total_kwh ?? 0, usual: null, bars };
  });
  const hasMeter = devices.some((it) => meters.has(it.device_id));
  const counted = parts.reduce((sum, { kwh }) => sum + kwh, 0);
  const rest = answer.rest_kwh !== undefined ? answer.rest_kwh : hasMeter && total_kwh !== null ? total_kwh - counted : null;
  if (rest !== null && rest > 0.005) parts.push({ id: "", name: "", room: null, kwh: rest, usual: null, bars: new Map() });
  return { parts: parts.sort((a, b) => b.kwh - a.kwh), total: total_kwh, answer };
}

/**
 * The usual energy of such a range: the median of earlier days of the same weekday, or of earlier weeks, months or years.
 * @param {Range} range
 * @param {number} meters
 * @returns {Promise<(id: string) => number | null>} by device
 */
export async function usualOf({ span, from }, meters) {
  if (meters > MAX_METERS) return () => null;
  const { spans, every } = USUAL[span];
  const begin = span === "day" ? moved(from, "day", -spans) : moved(from, span, -spans);
  /** @type {Energy} */
  const { data } = await get("energy", { from: begin.toISOString(), to: from.toISOString(), tz: zone, every, devices: 1 });
  const alike = data.filter((row) => row.kwh !== null && (span !== "day" || new Date(row.timestamp).getDay() === from.getDay()));
  return (id) => {
    const values = alike.filter((row) => row.device_id === id).map((row) => row.kwh ?? 0).sort((a, b) => a - b);
    return values.length ? (values[Math.floor((values.length - 1) / 2)] + values[Math.ceil((values.length - 1) / 2)]) / 2 : null;
  };
}

/**
 * Parts of one room as one part.
 * @param {Home} known
 * @param {Part[]} parts
 * @returns {Part[]}
 */
export function byRoom(known, parts) {
  /** @type {Map<string, Part>} */
  const rooms = new Map();
  for (const part of parts) {
    const key = part.id ? `room ${part.room ?? ""}` : "";
    const room = rooms.get(key);
    if (!room) {
      rooms.set(key, part.id ? { ...part, id: key, name: roomName(known, part.room), bars: new Map(part.bars) } : part);
      continue;
    }
    room.kwh += part.kwh;
    room.usual = room.usual === null || part.usual === null ? null : room.usual + part.usual;
    for (const [time, kwh] of part.bars) room.bars.set(time, (room.bars.get(time) ?? 0) + kwh);
  }
  return [...rooms.values()].sort((a, b) => b.kwh - a.kwh);
}

/** The rows of any range of such a span. @param {string} span @param {{from: Date, to: Date}} range @returns {Promise<Energy>} */
export function rowsOf(span, { from, to }) {
  return get("energy", { ...ends(from, to), every: BARS[span].asked });
}

/** The days of this month and of the one before. @returns {Promise<Energy>} */
export function daysOfTwoMonths() {
  return get("energy", { ...ends(monthStart(-1), new Date()), every: "1d" });
}

/** The half hours of the days before yesterday that tell what is usual: with yesterday they are seven. @returns {Promise<Energy>} */
export function daysBeforeYesterday() {
  return get("energy", { ...ends(midnight(-USUAL_DAYS), midnight(-1)), every: "30m" });
}

/** The half hours of yesterday and today. @returns {Promise<Energy>} */
export async function lastTwoDays() {
  return get("energy", { ...ends(midnight(-1), new Date()), every: "30m" });
}

/** The half hours of a night, from midnight to six. @param {Date} night its midnight */
export async function halvesOf(night) {
  /** @type {Energy} */
  const { data } = await get("energy", { ...ends(night, morningOf(night)), every: "30m" });
  return data;
}

/** @param {Date} night */
function morningOf(night) {
  return new Date(night.getFullYear(), night.getMonth(), night.getDate(), 6);
}

/**
 * The mean power in W of the lowest half hour of a night; null if nothing was measured.
 * @param {EnergyRow[]} halves
 * @param {Date} night its midnight
 */
export function baseLoad(halves, night) {
  const rows = rowsIn(halves, night, morningOf(night)).filter((row) => row.kwh !== null && !row.partial && !row.estimated);
  return rows.length ? Math.min(...rows.map((row) => row.kwh ?? 0)) * 2000 : null;
}

/** The rows that begin in a range. @param {EnergyRow[]} rows @param {Date} from @param {Date} to */
export function rowsIn(rows, from, to) {
  return rows.filter(({ timestamp }) => new Date(timestamp) >= from && new Date(timestamp) < to);
}

/** The sum of rows; null if nothing was measured. @param {EnergyRow[]} rows @param {"kwh" | "kwh_sold"} of */
export function totalOf(rows, of = "kwh") {
  const values = rows.map((row) => row[of]).filter((value) => value !== null && value !== undefined);
  return values.length ? values.reduce((sum, value) => sum + value, 0) : null;
}

/**
 * The energy of rows until a moment; a row that contains the moment counts by its share. Null before the first row.
 * @param {EnergyRow[]} rows
 * @param {Date} until
 * @param {Date} end of the last row
 */
export function totalUntil(rows, until, end) {
  const measured = rows.filter((row) => row.kwh !== null);
  const begin = (/** @type {number} */ n) => (measured[n] ? new Date(measured[n].timestamp) : end).getTime();
  const shares = measured.map((_, n) => Math.min(1, (until.getTime() - begin(n)) / (begin(n + 1) - begin(n))));
  return shares[0] > 0 ? measured.reduce((sum, row, n) => sum + (row.kwh ?? 0) * Math.max(0, shares[n]), 0) : null;
}

/**
 * What a day used up to a moment of today; null if nothing was measured until then.
 * @param {EnergyRow[]} halves
 * @param {number} day the days from today, such as -1 for yesterday
 * @param {Date} until
 */
export function usedUntil(halves, day, until) {
  const [begin, end] = [midnight(day), midnight(day + 1)];
  return totalUntil(rowsIn(halves, begin, end), new Date(begin.getTime() + until.getTime() - midnight(0).getTime()), end);
}

/**
 * What the last days used up to a moment of today, as their mean. Days count that were measured from midnight on; too
 * few tell nothing.
 * @param {EnergyRow[]} halves
 * @param {Date} until
 */
export function usualUntil(halves, until) {
  const days = Array.from({ length: USUAL_DAYS }, (_, n) => -1 - n).filter((day) => halves.some((row) => row.kwh !== null && new Date(row.timestamp).getTime() === midnight(day).getTime()));
  const used = days.map((day) => usedUntil(halves, day, until) ?? 0);
  return days.length < MIN_USUAL_DAYS ? null : { days: days.length, kwh: used.reduce((sum, kwh) => sum + kwh, 0) / days.length };
}

/** The steps of the last seven days that count nothing until somebody judges them. A link for others judges none. */
export async function unjudgedSteps() {
  if (isShared()) return [];
  const { events } = await odd("", ODD_AGE, async () => eventsOf(await get("energy", { from: ODD_SINCE, every: "1d", tz: zone, events: 1 }), { from: ODD_SINCE }));
  const isOpen = (/** @type {import("./api.js").EventRow} */ it) => !it.verdict && it.events.some((event) => event === "suspect" || event === "ambiguous");
  return events.filter(isOpen);
}

/** Forgets the unjudged steps, after a verdict. */
export function forgetSteps() {
  odd.forget();
}
