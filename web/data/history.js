// Requests of single views about the past: hours of rooms, days of a year, the history of a device. Draws nothing.

import { zone } from "../words/format.js";
import { get, list, path } from "./api.js";
import { ends } from "./consumption.js";
import { hasEnergy, rowsBy } from "./home.js";

/** @typedef {import("./api.js").Series} Series */
/** @typedef {import("./api.js").Energy} Energy */
/** @typedef {import("./range.js").Range} Range */
/** @typedef {{room: string, since: string, until?: string | null}} Stay */

/** A metric by the hours of each room. @param {import("./home.js").Home} known @param {string} metric @param {Date} from @param {Date} to @returns {Promise<Series>} */
export function hoursOfRooms(known, metric, from, to) {
  return get("series", { ...hours(metric, from, to), ...rowsBy(known.devices, metric) });
}

/** A metric by the hours of one room. @param {string} room @param {string} metric @param {Date} from @param {Date} to @returns {Promise<Series>} */
export function hoursOfRoom(room, metric, from, to) {
  return get(path("rooms", room, "series"), hours(metric, from, to));
}

/** @param {string} metric @param {Date} from @param {Date} to */
function hours(metric, from, to) {
  return { metric, every: "1h", fn: "mean", tz: zone, from: from.toISOString(), to: to.toISOString() };
}

/** The energy of all devices by day. @param {Range} range @returns {Promise<Energy>} */
export function energyByDay({ from, to }) {
  return get("energy", { ...ends(from, to), every: "1d" });
}

/** A metric of a room by day, or of all rooms. @param {string} room @param {string} metric @param {Range} range @returns {Promise<Series>} */
export function metricByDay(room, metric, { from, to }) {
  return get(room ? path("rooms", room, "series") : "series", { ...ends(from, to), every: "1d", metric, fn: "mean,min,max" });
}

/** The rooms in which a device was. @param {string} id @returns {Promise<Stay[]>} */
export function staysOf(id) {
  return list(path("devices", id, "stays"));
}

/** The notable steps of a device's counters. @param {string} id @param {Date} from @returns {Promise<{data: import("./api.js").EventRow[], has_more: boolean}>} */
export function stepsSince(id, from) {
  return get(path("devices", id, "events"), { from: from.toISOString() });
}

/**
 * The question about a metric of a device.
 * @param {string} id
 * @param {{metric: string, fn: string, every: string}} rows
 * @param {{from: Date, to: Date}} range
 */
export function queryOf(id, rows, { from, to }) {
  return { path: path("devices", id, "series"), params: { ...rows, ...ends(from, to) } };
}

/** @param {import("./series.js").Query} query @returns {Promise<Series>} */
export function answerTo(query) {
  return get(query.path, query.params);
}

/** What a device used in a range; null if it measures no energy. @param {import("./api.js").Device} device @param {Range} range @returns {Promise<Energy | null>} */
export async function usedBy(device, { from, to }) {
  return hasEnergy(device) ? get(path("devices", device.device_id, "energy"), ends(from, to)) : null;
}
