// The devices and rooms that every view shows, and what can be said of them. Draws nothing.

import { get, list } from "./api.js";
import { age, duration, midnight, moment } from "../words/format.js";
import { memory } from "./memory.js";
import { t } from "../words/words.js";

/** @typedef {import("./api.js").Device} Device */
/** @typedef {import("./api.js").Room} Room */
/** @typedef {import("./api.js").Row} Row */
/** @typedef {{devices: Device[], rooms: Room[]}} Home */

/** How long the answer about the last day is used, in milliseconds: it changes slowly. */
const DAY_AGE = 600_000;
/** A device is silent after so many of its usual intervals, but never before ten minutes. */
const SILENT_AFTER = 4;
const LEAST_SILENCE = 600_000;
/** Metrics of events. Their devices send when something happens, and a sign of life once a day. */
const EVENTS = /^(contact|.*_?open|water_leak|smoke|gas|motion|occupancy|presence|vibration)$/;
const EVENTS_SILENCE = 90_000_000;
/** The usual interval of a device if the last day says none. */
const UNKNOWN_INTERVAL = 900_000;

/** @typedef {{rows: Row[], failure: string, lack: import("./lacking.js").Answer}} Day */

/** @type {Day} */
const NO_DAY = { rows: [], failure: "", lack: {} };
/** @type {Map<string, Day>} what is known of the last day: how often devices sent, and a metric of each room */
const days = new Map();
const recent = memory();

/** @type {{at: number, home: Promise<Home>} | null} */
let known = null;

/**
 * The devices with their newest values, and the rooms. Views that ask within some seconds share one answer.
 * @param {number} [maxAge] milliseconds
 * @returns {Promise<Home>}
 */
export function home(maxAge = 5_000) {
  if (!known || Date.now() - known.at > maxAge) {
    const asked = Promise.all([list("devices", { latest: 1 }), list("rooms")]);
    const mine = { at: Date.now(), home: asked.then(([devices, rooms]) => ({ devices, rooms })) };
    known = mine;
    mine.home.catch(() => {
      if (known === mine) known = null;
    });
  }
  return known.home;
}

/** Forgets what is known, after an edit. */
export function forget() {
  known = null;
}

/** The hours of the last day of each device, by which its usual interval is known. */
export function lastDay() {
  return ofLastDay("counts", { fn: "mean,count", devices: 1 });
}

/** A metric of each room by the hours of the last day. @param {string} metric */
export function lastDayOf(metric) {
  return ofLastDay(metric, { metric, fn: "mean,min,max", rooms: 1 });
}

/**
 * @param {string} what
 * @param {import("./api.js").Params} params
 * @returns {Promise<Day>}
 */
async function ofLastDay(what, params) {
  // A day without readings is asked again at the next look.
  const { rows, failure } = days.get(what) ?? NO_DAY;
  const isEmpty = !rows.length && !failure;
  // Beyond 200 devices the server refuses it; then no usual interval is known, and no line is drawn.
  const day = await recent(what, isEmpty ? 0 : DAY_AGE, () => get("series", { every: "1h", from: "-24h", ...params }).then(
    (it) => ({ rows: it.data, failure: "", lack: it }),
    (error) => ({ rows: [], failure: error.message, lack: {} }),
  ));
  days.set(what, day);
  return day;
}

/**
 * The usual interval in milliseconds between a device's readings, or those of one metric.
 * @param {Device} device
 * @param {string} [metric]
 */
function interval(device, metric) {
  const counts = (days.get("counts") ?? NO_DAY).rows
    .filter((row) => row.device_id === device.device_id && !row.partial)
    .map((row) => Math.max(0, ...(metric ? [row[metric]] : Object.values(row)).map((it) => it?.count ?? 0)))
    .filter((count) => count > 0)
    .sort((a, b) => a - b);
  // The upper quartile: in the hours in which it began or fell silent it sent less.
  return counts.length ? 3_600_000 / counts[Math.floor(counts.length * 0.75)] : null;
}

/**
 * Tells whether a device, or one metric of it, is missing for longer than is usual.
 * @param {Device} device
 * @param {string} [metric]
 */
export function isSilent(device, metric) {
  const newest = metric ? device.latest?.metrics[metric] : device.latest;
  if (!newest) return true;
  const isOfEvents = (metric ? [metric] : Object.keys(device.metrics)).some((it) => EVENTS.test(it));
  const limit = Math.max(isOfEvents ? EVENTS_SILENCE : LEAST_SILENCE, SILENT_AFTER * (interval(device, metric) ?? UNKNOWN_INTERVAL));
  return Date.now() - new Date(newest.timestamp).getTime() > limit;
}

/** Since when a device is silent, in words. @param {Device} device */
export function silence(device) {
  if (!device.latest) return t("noNewest");
  const usual = interval(device);
  const said = t("silentSince", { time: moment(device.latest.timestamp), age: age(device.latest.timestamp) });
  return usual ? t("usually", { said, every: duration(usual) }) : said;
}

/**
 * The devices among `devices` whose power is not a part of the power of another of them.
 * @param {Home} known
 * @param {Device[]} devices
 */
export function inFront(known, devices) {
  return devices.filter((device) => {
    let next = device.behind;
    for (let steps = 0; next && steps < known.devices.length; steps += 1) {
      if (devices.some((it) => it.device_id === next)) return false;
      next = known.devices.find((it) => it.device_id === next)?.behind;
    }
    return true;
  });
}

const ENERGY = /^[kM]?Wh?$/;

/** Tells whether a device measures power or energy. @param {Device} device */
export function hasEnergy(device) {
  return Object.values(device.metrics).some(({ unit }) => ENERGY.test(unit ?? ""));
}

/**
 * The newest reading of the energy that is added up, until which today is known.
 * @param {Home} known
 */
export function measuredUntil(known) {
  const times = inFront(known, known.devices).flatMap(({ metrics, latest }) => Object.keys(metrics).filter((it) => ENERGY.test(metrics[it].unit ?? "")).map((it) => latest?.metrics[it]?.timestamp ?? ""));
  const newest = new Date(times.sort().at(-1) || 0);
  return newest > midnight(0) && newest.getTime() < Date.now() ? newest : new Date();
}

/**
 * The parameter that asks for rows of rooms, or of devices for a metric that is not a room's, such as that of a
 * chip.
 * @param {Device[]} devices
 * @param {string} metric
 * @returns {{rooms?: 1, devices?: 1}}
 */
export function rowsBy(devices, metric) {
  const isOfRoom = devices.some((it) => it.metrics[metric] && !it.metrics[metric].not_of_room);
  return isOfRoom ? { rooms: 1 } : { devices: 1 };
}

/**
 * Rows of rooms, and of devices that are in none, as lines.
 * @param {Home} known
 * @param {Row[]} rows
 * @param {string} metric
 */
export function linesOf(known, rows, metric) {
  const devices = new Map(known.devices.map((it) => [it.device_id, it]));
  /** @type {Map<string, {room: string | null, label: string, points: {time: number, mean: number, min?: number, max?: number, coverage?: number}[]}>} */
  const lines = new Map();
  for (const row of rows) {
    if (!row[metric]) continue;
    const device = devices.get(row.device_id ?? "");
    const label = row.room_id ? roomName(known, row.room_id) : device ? deviceName(device) : (row.device_id ?? "");
    const key = row.room_id ? `room ${row.room_id}` : `device ${row.device_id}`;
    const line = lines.get(key) ?? { room: row.room_id ?? null, label, points: [] };
    lines.set(key, line);
    line.points.push({ time: new Date(row.timestamp).getTime() / 1000, coverage: row.coverage, ...row[metric] });
  }
  return [...lines.values()];
}

/** Tells whether a device stands for a source that is asked, and measures nothing in the home. @param {Device} device */
export function isOfSource(device) {
  return device.device_id.startsWith("source:");
}

/** @param {Device} device */
export function deviceName(device) {
  return device.name || device.device_id;
}

/**
 * @param {Home} home
 * @param {string | null | undefined} id
 */
export function roomName(home, id) {
  return home.rooms.find((room) => room.room_id === id)?.name || id || t("noRoom");
}

/**
 * The metrics that any device has, by name, those first that people look at first.
 * @param {Device[]} devices
 * @returns {Map<string, import("./api.js").Metric>}
 */
export function metricsOf(devices) {
  const first = ["temperature", "humidity", "co2", "current_w"];
  /** @type {Map<string, import("./api.js").Metric>} */
  const all = new Map();
  for (const device of devices) {
    for (const [name, metric] of Object.entries(device.metrics)) if (!all.has(name)) all.set(name, metric);
  }
  const place = (/** @type {string} */ name) => (first.indexOf(name) + 1 || 99);
  return new Map([...all].sort(([a], [b]) => place(a) - place(b) || a.localeCompare(b)));
}

/**
 * The power that a device uses now in W, if it measures one: its total, else the sum of its phases. What it
 * produces, sells or stores does not count.
 * @param {Device} device
 */
export function powerOf(device) {
  const powers = Object.entries(device.metrics).flatMap(([name, { kind, unit, role = "consumer" }]) => {
    const value = device.latest?.metrics[name]?.value;
    const scale = unit === "W" || name === "current_w" || name === "power" ? 1 : unit === "kW" ? 1000 : 0;
    const isUsed = kind !== "counter" && scale && /import|consumer/.test(role);
    return value === undefined || !isUsed ? [] : [{ name, watts: value * scale }];
  });
  const phases = powers.filter(({ name }) => /_([a-h]|l?\d)$/.test(name));
  const total = powers.find((it) => !phases.includes(it));
  // If no name stands for the first phase, the name without a phase does, and is no total.
  const isPhase = total && phases.length && !phases.some(({ name }) => /_(a|l?[01])$/.test(name));
  const counted = isPhase ? [total, ...phases] : total ? [total] : phases;
  return counted.length ? counted.reduce((sum, { watts }) => sum + watts, 0) : null;
}

/**
 * The metric with the power of a device, and the factor from its values to W; null where phases are added up.
 * @param {Device} device
 */
export function powerMetric(device) {
  const of = Object.entries(device.metrics).filter(([name, { kind, unit, role = "consumer" }]) => kind !== "counter" && (/^k?W$/.test(unit ?? "") || name === "current_w" || name === "power") && /import|consumer/.test(role));
  return of.length === 1 ? { name: of[0][0], scale: of[0][1].unit === "kW" ? 1000 : 1 } : null;
}

/**
 * The share of a battery in percent, if a device tells it.
 * @param {Device} device
 */
export function battery(device) {
  const value = device.latest?.metrics.battery ?? device.latest?.metrics.battery_percent;
  return value === undefined ? null : value.value;
}

/** Below this a battery is weak, in percent. */
export const WEAK = 20;

/** @param {Device} device */
export function isWeak(device) {
  return (battery(device) ?? WEAK) < WEAK;
}

/** When the history begins: with the first reading of any device. @param {Home} home */
export function beginning(home) {
  const first = home.devices.map((it) => it.first_seen).sort()[0];
  return first ? new Date(first) : null;
}
