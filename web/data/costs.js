// What energy cost in a range, by the tariffs that have meters. Draws nothing, and asks nothing for a shared link.

import { midnight, money, monthStart, zone } from "../words/format.js";
import { get, path, saveCsv } from "./api.js";
import { BARS, ends } from "./consumption.js";
import { memory } from "./memory.js";
import { dayOf } from "./range.js";
import { isShared } from "./shared.js";

/** @typedef {{name: string, price: number, months?: string, days?: string, hours?: string}} Zone */
/** @typedef {{name: string, from?: string, to?: string, per?: string, price?: number, zones?: Zone[], tiers?: {to?: number, price: number}[], series?: {device: string, metric: string, slot: string, holds?: string}, times?: number}} Line */
/** @typedef {{name: string, currency: string, meters?: {device: string, metric?: string}[], lines: Line[]} & Record<string, any>} Tariff */
/** @typedef {Tariff & {id: string, version: number, edited: string}} SavedTariff */
/** @typedef {{name: string, zone?: string, per: string, quantity?: number, amount: number}} BillLine */
/** @typedef {{tariff: string, name: string, currency: string, unit: string, used: number | null, amount: number, due?: string, lines: BillLine[]}} Bill */
/** @typedef {{timestamp: string, tariff: string, used: number | null, amount: number, incomplete?: boolean}} CostRow */
/** @typedef {{what: string, tariff: string, line?: string, name?: string, from: string, to: string, kwh?: number}} Missing */
/** @typedef {{data: CostRow[], bills: Bill[], incomplete: Missing[], incomplete_count: number, tz: string, rollups_lack?: Record<string, any>}} Cost */
/** @typedef {{amount: number, currency: string, isIncomplete: boolean}} Sum */

/** How long the tariffs are used, in milliseconds; an edit here forgets them. */
const TARIFFS_AGE = 60_000;
const known = memory();

/** All tariffs; none for a link for others. @returns {Promise<SavedTariff[]>} */
export function tariffs() {
  if (isShared()) return Promise.resolve([]);
  return known("tariffs", TARIFFS_AGE, () => get("tariffs").then(({ data }) => data));
}

/** Forgets the tariffs, after an edit. */
export function forgetTariffs() {
  known.forget();
}

/** Tells whether a tariff bills meters of its own; any other is an offer. @param {Tariff} tariff */
export function isOwn({ meters = [] }) {
  return meters.length > 0;
}

/**
 * The parameters that ask what a range cost, in rows as long as its bars. Whole days and months are asked in the tariffs'
 * time zone: a month of another zone has nothing that is due.
 * @param {import("./range.js").Range} range
 */
function asked({ span, from, to }) {
  const { bar: every } = BARS[span];
  return span === "day" ? { ...ends(from, to), every } : { from: dayOf(from), to: dayOf(to), every };
}

/** Saves the lines of a bill as a CSV file. @param {import("./range.js").Range} range @param {string} tariff */
export function saveBill(range, tariff) {
  return saveCsv("cost", { ...asked(range), tariff, lines: 1 }, `${tariff}.csv`);
}

/**
 * Prices of a series, also those ahead, and the energy that was used beside them.
 * @param {{device: string, metric: string, every: string}} prices
 * @param {Date} from
 * @param {Date} to
 * @returns {Promise<[import("./api.js").Series, import("./api.js").Energy]>}
 */
export function pricesAndUse({ device, metric, every }, from, to) {
  const range = { from: from.toISOString(), to: to.toISOString(), tz: zone };
  return Promise.all([
    get(path("devices", device, "series"), { metric, fn: "mean", every, ...range }),
    get("energy", { ...ends(from, to), every }),
  ]);
}

/** What days or months cost. @param {Record<string, any>} params @returns {Promise<Cost>} */
async function costOfDates(params) {
  /** @type {Cost} */
  const cost = await get("cost", params);
  const date = new Intl.DateTimeFormat("en-CA", { timeZone: cost.tz });
  const here = (/** @type {string} */ timestamp) => new Date(`${date.format(new Date(timestamp))}T00:00`).toISOString();
  return { ...cost, data: cost.data.map((row) => ({ ...row, timestamp: here(row.timestamp) })) };
}

/** Tells whether there is a tariff with meters, without which nothing cost anything. */
async function isBilled() {
  return (await tariffs()).some(isOwn);
}

/**
 * What a range cost, in rows as long as its bars; null without a tariff that has meters.
 * @param {import("./range.js").Range} range
 * @returns {Promise<Cost | null>}
 */
export async function costOf(range) {
  if (!(await isBilled())) return null;
  return range.span === "day" ? get("cost", asked(range)) : costOfDates(asked(range));
}

/** The days of this month, and yesterday. @returns {Promise<Cost | null>} */
export async function costOfDays() {
  const from = new Date(Math.min(monthStart(0).getTime(), midnight(-1).getTime()));
  return (await isBilled()) ? costOfDates({ from: dayOf(from), to: dayOf(midnight(1)), every: "1d" }) : null;
}

/**
 * What the same months cost by one tariff and another, both by the meters of the first.
 * @param {string[]} ids
 * @param {Date} from
 * @param {Date} to
 */
export function compareMonths(ids, from, to) {
  return costOfDates({ from: dayOf(from), to: dayOf(to), every: "1mo", tariff: ids.join(",") });
}

/**
 * The money of the rows from one time to another, by all bills of kWh in the currency of the first; null without any.
 * @param {Cost | null} cost
 * @param {Date | number} [from]
 * @param {Date | number} [to]
 * @returns {Sum | null}
 */
export function sumOf(cost, from = -Infinity, to = Infinity) {
  const bills = (cost?.bills ?? []).filter(({ unit }) => unit === "kWh");
  const { currency } = bills[0] ?? {};
  if (!cost || !currency) return null;
  const ids = bills.filter((bill) => bill.currency === currency).map(({ tariff }) => tariff);
  const isIn = (/** @type {number} */ at) => at >= Number(from) && at < Number(to);
  const rows = cost.data.filter(({ tariff, timestamp }) => ids.includes(tariff) && isIn(new Date(timestamp).getTime()));
  return { amount: rows.reduce((sum, row) => sum + row.amount, 0), currency, isIncomplete: rows.some((row) => row.incomplete) };
}

/** Money as it is shown; what is incomplete has a dot. @param {Sum} sum */
export function shownSum({ amount, currency, isIncomplete }) {
  return `${money(amount, currency)}${isIncomplete ? " •" : ""}`;
}
