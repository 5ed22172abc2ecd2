// What of a room is comfortable, and since when it is not. Draws nothing.

import { get, path } from "./api.js";

/** @typedef {{below: number, above: number, low: string, high: string}} Band the words are keys of the catalogue */

/** @type {Record<string, Band>} */
export const COMFORT = {
  temperature: { below: 18, above: 25, low: "cool", high: "warm" },
  humidity: { below: 35, above: 65, low: "dry", high: "humid" },
  co2: { below: 0, above: 1000, low: "fresh", high: "stuffy" },
};

/** How long an answer is used, in milliseconds: a quarter of an hour is the least that it tells. */
const MAX_AGE = 300_000;
/** The longest gap between the end of an episode and now in which it lasts. */
const LASTS = 2_700_000;

/** @type {Map<string, {at: number, since: Promise<Date | null>}>} */
const known = new Map();

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
  const key = `${room} ${metric} ${side}`;
  const old = known.get(key);
  if (old && Date.now() - old.at < MAX_AGE) return old.since;
  const { below, above } = COMFORT[metric];
  const since = get(path("rooms", room, "conditions"), { from: "-2d", [metric]: side === "low" ? `..${below}` : `${above}..` }).then(
    ({ data }) => {
      const lasting = data.filter((/** @type {any} */ it) => Date.now() - new Date(it.to).getTime() < LASTS);
      const first = lasting.map((/** @type {any} */ it) => it.from).sort()[0];
      return first ? new Date(first) : null;
    },
    () => null,
  );
  known.set(key, { at: Date.now(), since });
  return since;
}
