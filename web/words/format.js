// Numbers, units and times as the reader's country writes them. Asks nobody.

import { locale, named, t } from "./words.js";

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const region = new Intl.Locale(navigator.language).maximize().region ?? "";
const fahrenheit = ["US", "BS", "BZ", "FM", "KY", "LR", "MH", "PW"].includes(region);

/**
 * The unit in which a value is shown.
 * @param {string | null | undefined} unit
 */
export function shownUnit(unit) {
  return isCelsius(unit) ? (fahrenheit ? "°F" : "°C") : (unit ?? "");
}

/**
 * A value in the unit in which it is shown.
 * @param {number} value
 * @param {string | null | undefined} unit
 */
export function shownValue(value, unit) {
  return isCelsius(unit) && fahrenheit ? (value * 9) / 5 + 32 : value;
}

/**
 * A value as it was typed in the unit in which it is shown, in its own unit.
 * @param {number} value
 * @param {string | null | undefined} unit
 */
export function meantValue(value, unit) {
  return isCelsius(unit) && fahrenheit ? ((value - 32) * 5) / 9 : value;
}

/** @param {string | null | undefined} unit */
function isCelsius(unit) {
  return unit === "°C" || unit === "C" || unit === "Cel";
}

/**
 * @param {number} value
 * @param {number} [digits]
 */
export function number(value, digits) {
  const most = digits ?? (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
  return value.toLocaleString(locale, { maximumFractionDigits: most, minimumFractionDigits: digits ?? 0 });
}

/**
 * A value with its unit.
 * @param {number | null | undefined} value
 * @param {string | null | undefined} unit
 * @param {number} [digits]
 */
export function quantity(value, unit, digits) {
  if (value === null || value === undefined) return t("none");
  return `${number(shownValue(value, unit), digits)} ${shownUnit(unit)}`.trim();
}

/** @param {number | null | undefined} value */
export function kwh(value) {
  return value === null || value === undefined ? t("none") : `${number(value, 2)} kWh`;
}

/**
 * An amount of money.
 * @param {number} amount
 * @param {string} currency a code of ISO 4217
 * @param {number} [digits] where the currency's own are too few, as for the price of a kWh
 */
export function money(amount, currency, digits) {
  const options = { style: /** @type {const} */ ("currency"), currency, ...(digits && { maximumFractionDigits: digits }) };
  // An amount that is nearly nothing has no sign.
  return (Math.abs(amount) < 1e-9 ? 0 : amount).toLocaleString(locale, options);
}

/** @param {number} value */
export function watts(value) {
  return `${number(value, 0)} W`;
}

/** @param {number} share of 1 */
export function percent(share) {
  return share.toLocaleString(locale, { style: "percent", maximumFractionDigits: 0 });
}

/**
 * A name whose direction does not turn the text around it.
 * @param {string} name
 */
export function isolated(name) {
  return `\u2068${name}\u2069`;
}

/**
 * @param {string | number | Date} at
 * @param {Intl.DateTimeFormatOptions} parts
 */
export function written(at, parts) {
  return new Date(at).toLocaleString(locale, parts);
}

/** A day and its time, with the year where it is another one. @param {string | number | Date} at */
export function moment(at) {
  const isOther = new Date(at).getFullYear() !== new Date().getFullYear();
  return written(at, { weekday: "short", day: "numeric", month: "short", ...(isOther && { year: "numeric" }), hour: "2-digit", minute: "2-digit" });
}

/** @param {string | number | Date} at */
export function day(at) {
  return written(at, { weekday: "short", day: "numeric", month: "short" });
}

/** @param {string | number | Date} at */
export function fullDay(at) {
  return written(at, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
}

/** @param {string | number | Date} at */
export function month(at) {
  return written(at, { month: "long", year: "numeric" });
}

/** @param {string | number | Date} at */
export function clock(at) {
  return written(at, { hour: "2-digit", minute: "2-digit" });
}

/**
 * A time of today by the clock alone, any other with its day.
 * @param {string | number | Date} at
 */
export function since(at) {
  const date = new Date(at);
  // What is known by whole days has no time.
  if (date < midnight(-1) && !date.getHours() && !date.getMinutes()) return day(at);
  return date >= midnight(0) ? clock(at) : moment(at);
}

/**
 * The word for a state of 0 or 1; empty where a metric has none. What is called open is so at 1, a contact at 0.
 * @param {string} metric
 * @param {number} value
 */
export function stateWord(metric, value) {
  const [of, is] = /open$/.test(metric) ? ["contact", 1 - value] : [metric, value];
  return named(`state_${of}_${is}`, "");
}

/**
 * The unit of a length of time, and how many.
 * @param {number} millis
 * @returns {[number, "day" | "hour" | "minute" | "second"]}
 */
function length(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  if (seconds >= 172_800) return [Math.round(seconds / 86_400), "day"];
  if (seconds >= 7_200) return [Math.round(seconds / 3_600), "hour"];
  if (seconds >= 120) return [Math.round(seconds / 60), "minute"];
  return [seconds, "second"];
}

/** @param {number} millis */
export function duration(millis) {
  const [value, unit] = length(millis);
  return value.toLocaleString(locale, { style: "unit", unit, unitDisplay: unit === "second" ? "short" : "long" }).replace(/ secs?$/, " s");
}

/** @param {string | number | Date} at */
export function age(at) {
  const [value, unit] = length(Date.now() - new Date(at).getTime());
  return new Intl.RelativeTimeFormat(locale, { numeric: "always" }).format(-value, unit);
}

/**
 * The first moment of the local day that is so many days from today.
 * @param {number} days
 */
export function midnight(days) {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
}

/**
 * The first moment of the local month that is so many months from this one.
 * @param {number} months
 */
export function monthStart(months) {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth() + months, 1);
}

/**
 * The name of a metric in words: `soil_moisture` is "Soil moisture" where no catalogue has it. What is called open is a
 * contact, whose word says whether it is open.
 * @param {string} metric
 * @returns {string}
 */
export function words(metric) {
  const of = metric.replace(/(^|_)(is_)?open$/, "");
  if (of !== metric) return words(of || "contact");
  const text = metric.replaceAll("_", " ");
  return named(`metric_${metric}`, text.charAt(0).toUpperCase() + text.slice(1));
}
