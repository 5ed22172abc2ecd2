// A home of three months with a price for each hour, and what a person enters of four contracts. Opens no browser.

import { sentence } from "./words.mjs";

const HOUR = 3_600_000;
const ZONE = "Europe/Brussels";
/** The hour of the tenth of last month that has no price. */
export const MISSING_HOUR = 13;

const inZone = (at, parts) => Number(new Intl.DateTimeFormat("en-GB", { timeZone: ZONE, hourCycle: "h23", ...parts }).format(at));
const hourOf = (at) => inZone(at, { hour: "numeric" });
const price = (at) => Number((0.1 + hourOf(at) / 500).toFixed(4));

/** The readings until now: half a kWh an hour, and prices with one hour that lacks. */
export function monthsWithPrices() {
  const now = Math.floor(Date.now() / HOUR) * HOUR;
  const begin = new Date(now);
  begin.setUTCMonth(begin.getUTCMonth() - 2, 1);
  const readings = [];
  const lastMonth = inZone(new Date(now).setUTCDate(0), { month: "numeric" });
  for (let [at, kwh] = [begin.setUTCHours(0), 1000]; at <= now; at += HOUR, kwh += 0.5) {
    const timestamp = new Date(at).toISOString();
    readings.push({ device_id: "meter", room: "cellar", timestamp, cumulative_kwh_p: kwh });
    const lacks = inZone(at, { month: "numeric" }) === lastMonth && inZone(at, { day: "numeric" }) === 10 && hourOf(at) === MISSING_HOUR;
    if (!lacks) readings.push({ device_id: "market", room: "cellar", timestamp, price: price(at) });
  }
  return readings;
}

/** The prices of the coming day. */
export function pricesOfTomorrow() {
  const now = Math.floor(Date.now() / HOUR) * HOUR;
  return Array.from({ length: 24 }, (_, n) => now + (n + 1) * HOUR).map((at) => ({ device_id: "market", timestamp: new Date(at).toISOString(), price: price(at) }));
}

const standing = { name: "Standing charge", per: "month", price: 10 };
const vat = { name: "VAT", per: "percent", price: 20 };

/** What is entered of each contract, and the lines that are stored. */
export const PRESETS = [
  { button: "One price", fields: { price: "0.3", standing: "10", vat: "20", feedIn: "0.08" }, lines: [standing, { name: "Energy", per: "used", price: 0.3 }, vat, { name: "Feed-in", per: "sold", price: 0.08 }] },
  { button: "Two prices by time", fields: { price: "0.35", price2: "0.2", hours: "22:00-06:00", days: "", standing: "10", vat: "20" }, lines: [standing, { name: "Energy", per: "used", price: 0.35, zones: [{ name: "Second price", price: 0.2, hours: "22:00-06:00" }] }, vat] },
  { button: "Price of the market", fields: { series: "market price", slot: "1h", holds: "1h", added: "0.05", vat: "20" }, lines: [{ name: "Energy", per: "used", series: { device: "market", metric: "price", slot: "1h" } }, { name: "Added per kWh", per: "used", price: 0.05 }, vat] },
  { button: "Price by amount", fields: { price: "0.2", limit: "120", price2: "0.3", limit2: "300", price3: "0.4", standing: "10", per: "month", vat: "20" }, lines: [standing, { name: "Energy", per: "used", tiers: [{ to: 120, price: 0.2 }, { to: 300, price: 0.3 }, { price: 0.4 }] }, vat] },
];

/** A pump whose power is not known for a day: a quarter of an hour is what a value of it holds. */
export function silentPump() {
  const tenth = new Date();
  tenth.setUTCMonth(tenth.getUTCMonth() - 1, 10);
  const [midnight, day] = [tenth.setUTCHours(0, 0, 0, 0), 24 * HOUR];
  const quarters = (begin) => Array.from({ length: 96 }, (_, n) => begin + (n * HOUR) / 4);
  const times = [...quarters(midnight - day), ...quarters(midnight + day)];
  return times.map((at) => ({ device_id: "pump", room: "cellar", timestamp: new Date(at).toISOString(), current_w: 100 }));
}

/** A tariff that lacks something of each kind but a price, and the sentences that say so. */
export const INCOMPLETE = {
  tariff: {
    name: "Incomplete", currency: "EUR", meters: [{ device: "pump" }, { device: "meter" }, { device: "gone" }],
    days: { holiday: ["2020-12-25"] },
    lines: [{ name: "Energy", price: 0.3, zones: [{ name: "night", hours: "22:30-06:15", price: 0.2 }, { name: "holiday", days: "holiday", price: 0.1 }] }],
  },
  sentences: [
    sentence("lacks_energy"),
    sentence("lacks_spread", { energy: String.raw`[\d.]+ kWh` }),
    sentence("lacks_days", { name: "holiday", year: String.raw`\d{4}` }),
    sentence("lacks_meter", { name: "gone" }),
  ],
};
