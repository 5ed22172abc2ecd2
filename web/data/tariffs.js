// Tariffs as their form sees them: saved, compared, the lines that have a field, new prices. Draws nothing.

import { t } from "../words/words.js";
import { zone } from "../words/format.js";
import { path, send } from "./api.js";

/** @typedef {import("./costs.js").Tariff} Tariff */
/** @typedef {import("./costs.js").SavedTariff} SavedTariff */
/** @typedef {import("./costs.js").Line} Line */
/** @typedef {"standing" | "energy" | "added" | "vat" | "feedIn"} Role what the form asks of a line */
/** @typedef {"flat" | "zones" | "series" | "tiers"} Preset how the energy is priced */

/** @type {Preset[]} */
export const PRESETS = ["flat", "zones", "series", "tiers"];
/** The roles in the order of the bill. What is sold has no VAT, so it stands below. @type {Role[]} */
const ROLES = ["standing", "energy", "added", "vat", "feedIn"];
/** The currencies of time zones; the first that begins like the zone's name holds. */
const CURRENCIES = "Europe/London GBP, Europe/Oslo NOK, Europe/Stockholm SEK, Europe/Copenhagen DKK, Europe/Zurich CHF, Europe/Warsaw PLN, Europe/Prague CZK, Europe/Budapest HUF, Europe/Bucharest RON, Asia/Tokyo JPY, Asia/Seoul KRW, Asia/Kolkata INR, Asia/Calcutta INR, Asia/Shanghai CNY, Asia/Singapore SGD, Australia/ AUD, Pacific/Auckland NZD, America/Toronto CAD, America/Vancouver CAD, America/Sao_Paulo BRL, America/Mexico_City MXN, America/ USD, Africa/Johannesburg ZAR".split(", ").map((pair) => pair.split(" "));
/** A day after all days that people write. */
const LAST = "9999-12-31";

/** The currency of this time zone. */
export function usualCurrency() {
  return CURRENCIES.find(([begin]) => zone.startsWith(begin))?.[1] ?? "EUR";
}

/** @param {string} id @param {Tariff} tariff its version is the one that was edited @returns {Promise<SavedTariff & {warnings?: string[]}>} */
export function putTariff(id, tariff) {
  return send("PUT", path("tariffs", id), tariff);
}

/** @param {string} id */
export function deleteTariff(id) {
  return send("DELETE", path("tariffs", id));
}

/** How a line is priced. @param {Line} line @returns {Preset} */
export function presetOf({ zones, tiers, series }) {
  return series ? "series" : tiers?.length ? "tiers" : zones?.length ? "zones" : "flat";
}

/** Whether the form can show how a line is priced. @param {Line} line */
export function isShowable({ zones = [], tiers = [] }) {
  return zones.length <= 1 && !zones[0]?.months && tiers.length <= 3;
}

/** The line of each name that holds on a day, in the order of the bill. @param {Line[]} lines @param {string} [day] */
export function linesAt(lines, day = LAST) {
  const names = [...new Set(lines.map(({ name }) => name))];
  const isNow = (/** @type {Line} */ { from = "", to = "9999-99" }) => from <= day && to > day;
  const newest = (/** @type {string} */ name) => lines.filter((line) => line.name === name && isNow(line)).sort((a, b) => (b.from ?? "").localeCompare(a.from ?? ""))[0];
  return names.map(newest).filter(Boolean);
}

/** The lines that the form shows, by role: the newest line of each name. @param {Line[]} lines @returns {Partial<Record<Role, Line>>} */
export function linesByRole(lines) {
  const shown = linesAt(lines);
  const used = shown.filter(({ per = "used" }) => per === "used");
  const energy = used.find((line) => presetOf(line) !== "flat") ?? used[0];
  const isFlat = (/** @type {Line} */ line) => presetOf(line) === "flat";
  return {
    standing: shown.find(({ per = "" }) => ["day", "month", "year"].includes(per)),
    energy,
    added: used.find((line) => line !== energy && isFlat(line)),
    vat: shown.findLast(({ per }) => per === "percent"),
    feedIn: shown.find((line) => line.per === "sold" && isFlat(line)),
  };
}

/**
 * The lines with another line of a role, or without one. All other lines are as they were.
 * @param {Line[]} lines
 * @param {Role} role
 * @param {Line | null} line
 */
export function withLine(lines, role, line) {
  const byRole = linesByRole(lines);
  const before = byRole[role];
  if (before) return lines.flatMap((other) => (other !== before ? [other] : line ? [line] : []));
  if (!line) return lines;
  const later = ROLES.slice(ROLES.indexOf(role) + 1).map((next) => lines.findIndex(({ name }) => name === byRole[next]?.name)).filter((place) => place >= 0);
  const place = later.length ? Math.min(...later) : lines.length;
  return [...lines.slice(0, place), line, ...lines.slice(place)];
}

/** The lines, and copies of those that hold on a day, which hold from that day on and get new prices. @param {Line[]} lines @param {string} day */
export function withNewPrices(lines, day) {
  return [...lines, ...linesAt(lines, day).filter(({ from }) => from !== day).map((line) => ({ ...line, from: day }))];
}

/** The name of a line that the form makes. @param {Role} role */
export function nameOf(role) {
  return t(role);
}
