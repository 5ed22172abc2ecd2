// Numbers, units and times as the reader's browser writes them. Asks nobody.

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
  return value.toLocaleString(undefined, { maximumFractionDigits: most, minimumFractionDigits: digits ?? 0 });
}

/**
 * A value with its unit.
 * @param {number | null | undefined} value
 * @param {string | null | undefined} unit
 * @param {number} [digits]
 */
export function quantity(value, unit, digits) {
  if (value === null || value === undefined) return "none";
  return `${number(shownValue(value, unit), digits)} ${shownUnit(unit)}`.trim();
}

/** @param {number | null | undefined} value */
export function kwh(value) {
  return value === null || value === undefined ? "none" : `${number(value, 2)} kWh`;
}

/**
 * A name whose direction does not turn the text around it.
 * @param {string} name
 */
export function isolated(name) {
  return `\u2068${name}\u2069`;
}

/** @param {string | number | Date} at */
export function moment(at) {
  return new Date(at).toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** @param {string | number | Date} at */
export function day(at) {
  return new Date(at).toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" });
}

/** @param {string | number | Date} at */
export function clock(at) {
  return new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

/** @param {number} millis */
export function duration(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  /** @type {[number, string][]} */
  const units = [[172_800, "day"], [7_200, "hour"], [120, "minute"]];
  for (const [least, name] of units) {
    const length = { day: 86_400, hour: 3_600, minute: 60 }[name] ?? 1;
    if (seconds >= least) return `${Math.round(seconds / length)} ${name}s`;
  }
  return `${seconds} s`;
}

/** @param {string | number | Date} at */
export function age(at) {
  return `${duration(Date.now() - new Date(at).getTime())} ago`;
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
 * The name of a metric in words: `current_w` is "current w".
 * @param {string} metric
 */
export function words(metric) {
  const known = /** @type {Record<string, string>} */ ({
    current_w: "Power", co2: "CO2", pm25: "PM2.5", cumulative_kwh_p: "Meter, bought", cumulative_kwh_n: "Meter, sold",
  })[metric];
  const text = metric.replaceAll("_", " ");
  return known ?? text.charAt(0).toUpperCase() + text.slice(1);
}
