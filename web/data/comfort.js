// The comfortable values of a room's metrics, and since when a room is beyond them. Draws nothing.

import { zone } from "../words/format.js";
import { get, path } from "./api.js";
import { memory } from "./memory.js";

/** @typedef {{below: number, above: number, low: string, high: string}} Band the words are keys of the catalogue */

/** @type {Record<string, Band>} */
export const COMFORT = {
  temperature: { below: 18, above: 25, low: "cool", high: "warm" },
  humidity: { below: 35, above: 65, low: "dry", high: "humid" },
  co2: { below: 0, above: 1000, low: "fresh", high: "stuffy" },
};

/** How long an answer is used, in milliseconds: a quarter of an hour is the least that it tells. */
const MAX_AGE = 300_000;

const known = memory();

/**
 * The side of the comfortable band on which a value is.
 * @param {string} metric
 * @param {number} value
 * @returns {"low" | "high" | "good" | null} null where nothing is judged
 */
export function sideOf(metric, value) {
  const band = COMFORT[metric];
  if (!band) return null;
  return value < band.below ? "low" : value > band.above ? "high" : "good";
}

/**
 * Since when a room has been too low or too high; null if nobody can tell.
 * @param {string} room
 * @param {string} metric
 * @param {"low" | "high"} side
 */
export function sinceWhen(room, metric, side) {
  return known(`${room} ${metric} ${side}`, MAX_AGE, () => begin(room, metric, side).catch(() => null));
}

/**
 * The start of the newest unbroken run of rows beyond the band: by quarters of an hour, or by days if it lasts longer.
 * Missing rows of a device that sends seldom do not end the run.
 * @param {string} room
 * @param {string} metric
 * @param {"low" | "high"} side
 */
async function begin(room, metric, side) {
  const { below, above } = COMFORT[metric];
  const first = async (/** @type {string} */ from, /** @type {string} */ every) => {
    /** @type {import("./api.js").Series} */
    const { data } = await get(path("rooms", room, "series"), { from, metric, every, tz: zone, fn: "mean" });
    const rows = data.filter((row) => row[metric]);
    const good = rows.findLastIndex((row) => (side === "low" ? row[metric].mean >= below : row[metric].mean <= above));
    return { row: rows[good + 1], isAll: good < 0 };
  };
  const { row, isAll } = await first("-2d", "15m");
  if (!row) return null;
  const day = isAll && (await first("-31d", "1d")).row;
  return new Date(day && day.timestamp < row.timestamp ? day.timestamp : row.timestamp);
}
