// What of a room is comfortable, and since when it is not. Draws nothing.

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
 * Which side of what is comfortable a value is on.
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
 * When the newest rows that are all beyond the band began: by quarters of an hour, and of what lasts longer by days.
 * A device that sends seldom leaves rows out, which end nothing.
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
