// The time that a view shows, from what the address says: its ends, the ones before and after, and what it is compared
// with. Asks nobody.

import { midnight } from "../words/format.js";
import { chosen } from "./address.js";

/** @typedef {"24h" | "day" | "week" | "month" | "year"} Span */
/** @typedef {"" | "day" | "weekday" | "month" | "year"} Versus */
/** @typedef {{from: Date, to: Date, shift: (at: Date) => Date}} Other a range that is compared, and where its times are drawn */
/** @typedef {{span: Span, from: Date, to: Date, isNow: boolean, versus: Versus, other: Other | null, before: string, after: string}} Range `to` is not in it; `before` and `after` are days of the neighbours, empty where there is none */

const DAY = 86_400_000;

/** The comparisons that a span offers. @type {Record<Span, Versus[]>} */
export const VERSUS = {
  "24h": ["", "day", "weekday", "month", "year"],
  day: ["", "day", "weekday", "month", "year"],
  week: ["", "weekday", "month", "year"],
  month: ["", "month", "year"],
  year: ["", "year"],
};

/**
 * The range that is chosen.
 * @param {Span} usual the span if none is chosen
 * @param {Span[]} [spans] those that the view has
 * @returns {Range}
 */
export function range(usual, spans = ["24h", "day", "week", "month", "year"]) {
  const wanted = /** @type {Span} */ (chosen("span"));
  const span = spans.includes(wanted) ? wanted : chosen("d") && usual === "24h" ? "day" : usual;
  const versus = /** @type {Versus} */ (VERSUS[span].includes(/** @type {Versus} */ (chosen("vs"))) ? chosen("vs") : "");
  if (span === "24h") {
    const to = new Date();
    const from = new Date(to.getTime() - DAY);
    return { span, from, to, isNow: true, versus, other: otherOf(versus, from, to), before: dayOf(midnight(-1)), after: "" };
  }
  const day = dateOf(chosen("d")) ?? midnight(0);
  const from = startOf(span, day);
  const to = moved(from, span, 1);
  const isNow = to.getTime() > Date.now();
  return { span, from, to, isNow, versus, other: otherOf(versus, from, to), before: dayOf(moved(from, span, -1)), after: isNow ? "" : dayOf(to) };
}

/** The range before one, of the same length. @param {Range} range */
export function previous({ span, from, to }) {
  /** @type {Record<Span, Versus>} */
  const versus = { "24h": "day", day: "day", week: "weekday", month: "month", year: "year" };
  return { versus: versus[span], other: /** @type {Other} */ (otherOf(versus[span], from, to)) };
}

/**
 * @param {Versus} versus
 * @param {Date} from
 * @param {Date} to
 * @returns {Other | null}
 */
function otherOf(versus, from, to) {
  if (!versus) return null;
  const by = (/** @type {Date} */ at, /** @type {number} */ sign) => {
    const date = new Date(at);
    if (versus === "day") date.setDate(date.getDate() + sign);
    if (versus === "weekday") date.setDate(date.getDate() + 7 * sign);
    if (versus === "month") addMonths(date, sign);
    if (versus === "year") addMonths(date, 12 * sign);
    return date;
  };
  return { from: by(from, -1), to: by(to, -1), shift: (at) => by(at, 1) };
}

/**
 * The same day of another month; the last one where that month is shorter.
 * @param {Date} date
 * @param {number} months
 */
function addMonths(date, months) {
  const day = date.getDate();
  date.setDate(1);
  date.setMonth(date.getMonth() + months);
  date.setDate(Math.min(day, new Date(date.getFullYear(), date.getMonth() + 1, 0).getDate()));
}

/**
 * @param {Span} span
 * @param {Date} day
 */
export function startOf(span, day) {
  const [year, month, date] = [day.getFullYear(), day.getMonth(), day.getDate()];
  if (span === "week") return new Date(year, month, date - ((day.getDay() + 6) % 7));
  if (span === "month") return new Date(year, month, 1);
  if (span === "year") return new Date(year, 0, 1);
  return new Date(year, month, date);
}

/**
 * The start of the span that is so many spans after the one that begins at `from`.
 * @param {Date} from
 * @param {Span} span
 * @param {number} spans
 */
export function moved(from, span, spans) {
  const date = new Date(from);
  if (span === "week") date.setDate(date.getDate() + 7 * spans);
  else if (span === "month") date.setMonth(date.getMonth() + spans);
  else if (span === "year") date.setFullYear(date.getFullYear() + spans);
  else date.setDate(date.getDate() + spans);
  return date;
}

/** A day as the address writes it. @param {Date} date */
export function dayOf(date) {
  const two = (/** @type {number} */ it) => String(it).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** @param {string} text */
export function dateOf(text) {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const date = new Date(Number(year), Number(month) - 1, Number(day));
  return year && date.getFullYear() > 1970 ? date : null;
}
