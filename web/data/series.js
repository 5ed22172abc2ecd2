// The rows and readings that charts draw: how long a row is, and where readings answer. Draws nothing.

import { zone } from "../words/format.js";
import { get, list, path, saveCsv } from "./api.js";
import { deviceName, linesOf, roomName, rowsBy } from "./home.js";

/** @typedef {import("./home.js").Home} Home */
/** @typedef {{path: string, params: import("./api.js").Params}} Query */

const DAY = 86_400_000;
/** How far ahead of now prices are drawn, in milliseconds. */
export const AHEAD = 3 * DAY;
/** Up to this range in milliseconds a chart of one room shows its readings. */
const MAX_RAW = DAY / 4;

/** @type {[string, number][]} the lengths of rows, with their seconds */
const UNITS = [["15m", 900], ["30m", 1800], ["1h", 3600], ["6h", 21_600], ["1d", 86_400], ["1w", 604_800], ["1mo", 2_678_400]];
/** The most rows of one line, and of all lines of a chart together, which are some 50 KB. */
const MAX_ROWS = [1_100, 3_300];

/**
 * The length of a row for a range: short enough for a fine chart, and long enough that few rows are sent.
 * @param {number} millis
 * @param {number} lines
 * @returns {[string, number]} name and seconds
 */
function unitOf(millis, lines) {
  const rows = (/** @type {number} */ seconds) => millis / 1000 / seconds;
  const least = millis <= 2 * DAY ? 900 : 3600;
  return UNITS.find(([, seconds]) => seconds >= least && rows(seconds) <= MAX_ROWS[0] && rows(seconds) * lines <= MAX_ROWS[1]) ?? UNITS[UNITS.length - 1];
}

/** Tells whether a metric is a price, which is known ahead. @param {string} metric */
export function isPrice(metric) {
  return /^price(_|$)/.test(metric);
}

/**
 * The lines of a metric of a room, or of every room, by one request. In a short range, a line has single readings.
 * @param {Home} known
 * @param {string} room
 * @param {string} metric
 * @param {number} from milliseconds
 * @param {number} to
 * @param {number} [like] the seconds of the rows to compare with
 * @param {boolean} [isLast] whether these are the last 24 hours, which are asked as that
 */
export async function linesOfRange(known, room, metric, from, to, like, isLast = false) {
  const latest = Date.now() + (isPrice(metric) ? AHEAD : 0);
  const ends = isLast ? { from: "-24h", to: "now" } : { from: new Date(from).toISOString(), to: new Date(Math.min(to, latest)).toISOString() };
  if (from >= latest) return { lines: [], step: undefined, query: { path: "series", params: ends }, answer: {} };
  if (room && to - from <= MAX_RAW) {
    const query = { path: path("rooms", room, "readings"), params: { ...ends, metrics: metric, limit: 10_000 } };
    const rows = await list(query.path, query.params);
    const lines = known.devices.flatMap((device) => {
      const points = rows.filter((row) => row.device_id === device.device_id).map((row) => ({ time: seconds(row), mean: row[metric] ?? null }));
      return points.length ? [{ label: deviceName(device), points }] : [];
    });
    return { lines, step: undefined, query, answer: {} };
  }
  const here = known.devices.filter((it) => it.metrics[metric] && (!room || it.room === room));
  const by = rowsBy(here, metric);
  const isOne = room && by.rooms;
  const [every, step] = UNITS.find(([, it]) => it === like) ?? unitOf(to - from, isOne ? 1 : by.rooms ? known.rooms.length : here.length);
  const params = { ...ends, metric, every, tz: zone, fn: "mean,min,max", ...(isOne ? {} : by) };
  const query = { path: room ? path("rooms", room, "series") : "series", params };
  /** @type {import("./api.js").Series} */
  const answer = await get(query.path, params);
  const { data } = answer;
  const isOutside = (/** @type {string | null} */ id) => known.rooms.find(({ room_id }) => room_id === id)?.outside === true;
  if (!isOne) return { lines: linesOf(known, data, metric).map((line) => ({ ...line, isOutside: isOutside(line.room) })), step, query, answer };
  const points = data.filter((row) => row[metric]).map((row) => ({ time: seconds(row), coverage: row.coverage, ...row[metric] }));
  return { lines: [{ label: roomName(known, room), points }], step, query, answer };
}

/** Saves the rows of a query as a CSV file. @param {Query} query @param {string} name */
export function saveRows(query, name) {
  return saveCsv(query.path, query.params, name);
}

/** The newest readings of a metric. @param {string} device @param {string} metric @param {Date} from @returns {Promise<import("./api.js").Row[]>} */
export async function readingsSince(device, metric, from) {
  const { data } = await get(path("devices", device, "readings"), { from: from.toISOString(), metrics: metric, limit: 1000 });
  return data;
}

/** @param {{timestamp: string}} row */
function seconds({ timestamp }) {
  return new Date(timestamp).getTime() / 1000;
}
