// The view of this moment: what is alive, each room, and power. Draws no history but a line of the last day.

import { get } from "./api.js";
import { card, fill, h } from "./dom.js";
import { age, duration, isolated, moment, number, quantity, shownUnit, shownValue, words } from "./format.js";
import { deviceName, home, isOutside, powerOf, roomName } from "./home.js";
import { empty } from "./connect.js";

/** @typedef {import("./home.js").Home} Home */
/** @typedef {import("./api.js").Device} Device */
/** @typedef {import("./api.js").Row} Row */

/** How long the answer about the last day is used, in milliseconds: it changes slowly. */
const DAY_AGE = 600_000;
/** A device is silent after so many of its usual intervals, but never before ten minutes. */
const SILENT_AFTER = 4;
const LEAST_SILENCE = 600_000;
/** The usual interval of a device of which the last day says none. */
const UNKNOWN_INTERVAL = 900_000;

/** @type {Record<string, {below: number, above: number, low: string, good: string, high: string}>} */
const COMFORT = {
  temperature: { below: 18, above: 25, low: "cool", good: "comfortable", high: "warm" },
  humidity: { below: 35, above: 65, low: "dry", good: "comfortable", high: "humid" },
  co2: { below: 0, above: 1000, low: "", good: "fresh", high: "stuffy" },
};

/** @type {{at: number, rows: Row[], failure: string}} */
let lastDay = { at: 0, rows: [], failure: "" };

/** @param {HTMLElement} main */
export async function now(main) {
  const alive = h("div");
  const rooms = h("div", { class: "tiles" });
  const power = h("div");
  const said = h("p", { class: "summary" });
  fill(main, h("h1", null, "Now"), said, h("div", { class: "two" }, card("Devices", alive), card("Power", power)), rooms);
  return async () => {
    const known = await home();
    if (known.devices.length === 0) {
      fill(main, empty());
      return;
    }
    if (Date.now() - lastDay.at > DAY_AGE) {
      const asked = get("series", { fn: "mean,count", every: "1h", devices: 1, from: "-24h" });
      // Beyond 200 devices the server refuses it; then no usual interval is known.
      const { data, failure } = await asked.then((it) => ({ data: it.data, failure: "" }), (error) => ({ data: [], failure: error.message }));
      lastDay = { at: Date.now(), rows: data, failure };
    }
    fill(alive, ...health(known));
    fill(power, ...powerNow(known));
    const tiles = known.rooms.map((room) => ({ room, devices: known.devices.filter((it) => it.room === room.room_id) })).filter(({ devices }) => devices.length);
    fill(said, extremes(known, tiles));
    fill(rooms, ...tiles.map(({ room, devices }) => tile(room.room_id, room.name || room.room_id, devices)));
  };
}

/**
 * How many devices report, which are silent, and weak batteries.
 * @param {Home} known
 */
function health(known) {
  const silent = known.devices.filter(isSilent);
  const weak = known.devices.filter((it) => (battery(it) ?? 100) < 20);
  const link = (/** @type {Device} */ it, /** @type {string} */ text) =>
    h("li", null, h("a", { href: `#device/${encodeURIComponent(it.device_id)}` }, deviceName(it)), ` ${text}`);
  return [
    h("p", { class: "big" }, `${known.devices.length - silent.length} of ${known.devices.length} report`),
    silent.length
      ? h("div", null, h("h3", null, "Silent"), h("ul", null, ...silent.map((it) => link(it, silence(it)))))
      : h("p", null, "No device is silent."),
    weak.length
      ? h("div", null, h("h3", null, "Battery below 20 %"), h("ul", null, ...weak.map((it) => link(it, `${number(battery(it) ?? 0)} %`))))
      : known.devices.some((it) => battery(it) !== null) && h("p", null, "No battery is below 20 %."),
    lastDay.failure && h("p", { class: "note" }, `Usual intervals are unknown: ${lastDay.failure}`),
    h("p", null, h("a", { href: "#device" }, "All devices")),
  ];
}

/** @param {Device} device */
function battery(device) {
  const value = device.latest?.metrics.battery ?? device.latest?.metrics.battery_percent;
  return value === undefined ? null : value.value;
}

/**
 * The usual interval between a device's readings in milliseconds, from the hours of the last day.
 * @param {Device} device
 */
function interval(device) {
  const counts = lastDay.rows
    .filter((row) => row.device_id === device.device_id && !row.partial)
    .map((row) => Math.max(0, ...Object.values(row).map((it) => it?.count ?? 0)))
    .filter((count) => count > 0)
    .sort((a, b) => a - b);
  // The upper quartile: in the hours in which it began or fell silent it sent less.
  return counts.length ? 3_600_000 / counts[Math.floor(counts.length * 0.75)] : null;
}

/** @param {Device} device */
function isSilent(device) {
  if (!device.latest) return true;
  const limit = Math.max(LEAST_SILENCE, SILENT_AFTER * (interval(device) ?? UNKNOWN_INTERVAL));
  return Date.now() - new Date(device.latest.timestamp).getTime() > limit;
}

/** @param {Device} device */
function silence(device) {
  if (!device.latest) return "has no newest reading";
  const usual = interval(device);
  return `since ${moment(device.latest.timestamp)}, ${age(device.latest.timestamp)}${usual ? ` (usually every ${duration(usual)})` : ""}`;
}

/** @param {Home} known */
function powerNow(known) {
  const meters = known.devices.map((device) => ({ device, watts: powerOf(device) })).filter((it) => it.watts !== null);
  if (!meters.length) return [h("p", null, "No device measures power in W.")];
  // What is behind another meter is counted there.
  const total = meters.filter(({ device }) => !device.behind).reduce((sum, { watts }) => sum + (watts ?? 0), 0);
  const parts = meters.some(({ device }) => device.behind) ? meters.filter(({ device }) => device.behind) : meters;
  const biggest = parts.reduce((best, it) => ((it.watts ?? 0) > (best.watts ?? 0) ? it : best));
  const newest = meters.map(({ device }) => device.latest?.timestamp ?? "").sort().at(-1);
  return [
    h("p", { class: "big" }, total < 0 ? `${number(-total, 0)} W sold` : `${number(total, 0)} W`),
    h("p", null, "Biggest consumer: ", h("a", { href: `#device/${encodeURIComponent(biggest.device.device_id)}` }, deviceName(biggest.device)), `, ${number(biggest.watts ?? 0, 0)} W`),
    newest && h("p", { class: "note" }, `measured ${age(newest)}`),
  ];
}

/**
 * The newest value of a metric among devices.
 * @param {Device[]} devices
 * @param {string} metric
 */
function newest(devices, metric) {
  const found = devices.filter((it) => it.latest?.metrics[metric]);
  found.sort((a, b) => (a.latest?.metrics[metric].timestamp ?? "").localeCompare(b.latest?.metrics[metric].timestamp ?? ""));
  const device = found.at(-1);
  const value = device?.latest?.metrics[metric];
  return device && value ? { ...value, unit: device.metrics[metric]?.unit ?? null } : null;
}

/**
 * @param {Home} known
 * @param {{room: {room_id: string}, devices: Device[]}[]} tiles
 */
function extremes(known, tiles) {
  const values = tiles
    .map(({ room, devices }) => ({ room: room.room_id, value: newest(devices, "temperature") }))
    .filter((it) => it.value !== null)
    .sort((a, b) => (a.value?.value ?? 0) - (b.value?.value ?? 0));
  if (values.length < 2) return "";
  const text = (/** @type {any} */ it) => `${isolated(roomName(known, it.room))}, ${quantity(it.value.value, it.value.unit, 1)}`;
  const inside = values.filter((it) => !isOutside(it.room));
  const coldest = inside.length && inside[0] !== values[0] ? `; inside ${text(inside[0])}` : "";
  return `Coldest: ${text(values[0])}${coldest}. Warmest: ${text(values.at(-1))}.`;
}

/**
 * @param {string} id
 * @param {string} name
 * @param {Device[]} devices
 */
function tile(id, name, devices) {
  const judged = isOutside(`${id} ${name}`) ? {} : COMFORT;
  const rows = ["temperature", "humidity", "co2"].flatMap((metric) => {
    const value = newest(devices, metric);
    return value ? [h("div", { class: "value" }, h("dt", null, words(metric)), h("dd", null, quantity(value.value, value.unit, metric === "temperature" ? 1 : 0), comfort(judged[metric], value.value)))] : [];
  });
  const watts = devices.map(powerOf).filter((it) => it !== null);
  if (watts.length) rows.push(h("div", { class: "value" }, h("dt", null, "Power"), h("dd", null, `${number(watts.reduce((a, b) => (a ?? 0) + (b ?? 0), 0) ?? 0, 0)} W`)));
  const at = devices.map((it) => it.latest?.timestamp ?? "").sort().at(-1);
  return h(
    "section",
    { class: "card tile" },
    h("h2", null, h("a", { id: `tile-${id}`, href: `#charts/${encodeURIComponent(id)}` }, name)),
    rows.length ? h("dl", null, ...rows) : h("p", null, devices.map(deviceName).join(", ")),
    spark(devices),
    at ? h("p", { class: devices.every(isSilent) ? "warn" : "note" }, devices.every(isSilent) ? `silent, last ${age(at)}` : age(at)) : h("p", { class: "warn" }, "no readings"),
  );
}

/**
 * @param {{below: number, above: number, low: string, good: string, high: string} | undefined} band
 * @param {number} value
 */
function comfort(band, value) {
  if (!band) return null;
  const [kind, text] = value < band.below ? ["low", band.low] : value > band.above ? ["high", band.high] : ["good", band.good];
  return h("span", { class: `band ${kind}` }, text);
}

/**
 * The temperature of the last day as a line, from its lowest to its highest.
 * @param {Device[]} devices
 */
function spark(devices) {
  const device = devices.find((it) => it.metrics.temperature);
  const rows = lastDay.rows.filter((row) => row.device_id === device?.device_id);
  const means = rows.map((row) => row.temperature?.mean).filter((it) => it !== undefined);
  if (!device || means.length < 3) return null;
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const unit = device.metrics.temperature.unit;
  const points = rows
    .map((row, x) => (row.temperature ? `${((x * 100) / (rows.length - 1)).toFixed(1)},${(28 - ((row.temperature.mean - low) * 26) / (high - low || 1)).toFixed(1)}` : ""))
    .filter(Boolean);
  const svg = (/** @type {string} */ tag, /** @type {Record<string, string>} */ attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };
  const label = `Last 24 hours: ${number(shownValue(low, unit), 1)} to ${number(shownValue(high, unit), 1)} ${shownUnit(unit)}`;
  const line = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label });
  line.append(svg("polyline", { points: points.join(" ") }));
  return h("div", null, line, h("p", { class: "note" }, label));
}

