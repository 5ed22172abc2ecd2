// The view of this moment: what is alive, each room, and power. Draws no history but a line of the last day.

import { card, fill, h, states, svg } from "./dom.js";
import { age, isolated, number, quantity, shownUnit, shownValue, words } from "./format.js";
import { deviceName, home, inFront, isOutside, isSilent, lastDay, lastTemperatures, linesOf, powerOf, roomName, rowsBy, silence } from "./home.js";
import { empty } from "./connect.js";
import { linkTo } from "./device.js";
import { lackNote } from "./lack.js";

/** @typedef {import("./home.js").Home} Home */
/** @typedef {import("./api.js").Device} Device */
/** @typedef {{time: number, mean: number}[]} Points */

/** The most meters that are named where their power is added up. */
const MAX_PARTS = 5;

/** @type {Record<string, {below: number, above: number, low: string, good: string, high: string}>} */
const COMFORT = {
  temperature: { below: 18, above: 25, low: "cool", good: "comfortable", high: "warm" },
  humidity: { below: 35, above: 65, low: "dry", good: "comfortable", high: "humid" },
  co2: { below: 0, above: 1000, low: "", good: "fresh", high: "stuffy" },
};

/** @param {HTMLElement} main */
export async function now(main) {
  const alive = h("div");
  const rooms = h("div", { class: "tiles" });
  const power = h("div");
  const said = h("p", { class: "summary" });
  const behind = h("div");
  const state = states(main);
  return async () => {
    const known = await home();
    if (known.devices.length === 0) return state("empty", () => [empty()]);
    state("home", () => [h("h1", null, "Now"), said, h("div", { class: "two" }, card("Devices", alive), card("Power", power)), rooms, behind]);
    const { failure, lack } = await lastDay();
    const hasRoomTemperature = rowsBy(known.devices, "temperature").rooms;
    const { rows, lack: ofLines } = hasRoomTemperature ? await lastTemperatures() : { rows: [], lack: {} };
    fill(behind, lackNote(lack, ofLines));
    fill(alive, ...health(known, failure));
    fill(power, ...powerNow(known));
    const tiles = known.rooms.map((room) => ({ room, devices: known.devices.filter((it) => it.room === room.room_id) })).filter(({ devices }) => devices.length);
    fill(said, extremes(known, tiles));
    const lines = linesOf(known, rows, "temperature");
    fill(rooms, ...tiles.map(({ room, devices }) => tile(known, room, devices, lines.find((it) => it.room === room.room_id)?.points ?? [])));
  };
}

/**
 * How many devices report, which are silent, and weak batteries.
 * @param {Home} known
 * @param {string} failure why usual intervals are unknown
 */
function health(known, failure) {
  const silent = known.devices.filter((it) => isSilent(it));
  const weak = known.devices.filter((it) => (battery(it) ?? 100) < 20);
  const link = (/** @type {Device} */ it, /** @type {string} */ text) => h("li", null, linkTo(it), ` ${text}`);
  return [
    h("p", { class: "big" }, `${known.devices.length - silent.length} of ${known.devices.length} report`),
    silent.length
      ? h("div", null, h("h3", null, "Silent"), h("ul", null, ...silent.map((it) => link(it, silence(it)))))
      : h("p", null, "No device is silent."),
    weak.length
      ? h("div", null, h("h3", null, "Battery below 20 %"), h("ul", null, ...weak.map((it) => link(it, `${number(battery(it) ?? 0)} %`))))
      : known.devices.some((it) => battery(it) !== null) && h("p", null, "No battery is below 20 %."),
    failure && h("p", { class: "note" }, `Usual intervals are unknown: ${failure}`),
    h("p", null, h("a", { href: "#device" }, "All devices")),
  ];
}

/** @param {Device} device */
function battery(device) {
  const value = device.latest?.metrics.battery ?? device.latest?.metrics.battery_percent;
  return value === undefined ? null : value.value;
}

/** @param {Home} known */
function powerNow(known) {
  const all = known.devices.filter((it) => powerOf(it) !== null);
  if (!all.length) return [h("p", null, "No device measures power in W.")];
  const watts = (/** @type {Device} */ it) => powerOf(it) ?? 0;
  const meters = all.filter((it) => !isSilent(it)).sort((a, b) => watts(b) - watts(a));
  if (!meters.length) return [h("p", { class: "warn" }, "Each device that measures power is silent.")];
  const added = inFront(known, meters);
  const total = added.reduce((sum, it) => sum + watts(it), 0);
  // A meter with others behind it consumes nothing itself.
  const biggest = meters.find((it) => !meters.some(({ behind }) => behind === it.device_id)) ?? meters[0];
  const oldest = added.map((it) => it.latest?.timestamp ?? "").sort()[0];
  const parts = meters.slice(0, MAX_PARTS).flatMap((it, place) => [place ? "; " : "", linkTo(it), `, ${number(watts(it), 0)} W`]);
  return [
    h("p", { class: "big" }, total < 0 ? `${number(-total, 0)} W sold` : `${number(total, 0)} W`),
    all.length > 1 && h("p", null, "Biggest consumer: ", linkTo(biggest), `, ${number(watts(biggest), 0)} W`),
    meters.length > 1 && !all.some(({ behind }) => behind) && h("p", null, "Added up: ", ...parts, meters.length > MAX_PARTS && `; ${meters.length - MAX_PARTS} more`, ". Is one of these behind another? Then say so in its settings."),
    h("p", { class: "note" }, `measured ${age(oldest)}`, meters.length < all.length && `; ${all.length - meters.length} silent, not counted`),
  ];
}

/**
 * The mean of the newest values of a metric among devices, without those that are silent.
 * @param {Device[]} devices
 * @param {string} metric
 */
function valueNow(devices, metric) {
  const all = devices.filter((it) => it.latest?.metrics[metric] && !it.metrics[metric]?.not_of_room);
  const fresh = all.filter((it) => !isSilent(it, metric));
  const sum = fresh.reduce((total, it) => total + (it.latest?.metrics[metric].value ?? 0), 0);
  return { value: fresh.length ? sum / fresh.length : null, unit: all[0]?.metrics[metric]?.unit, fresh: fresh.length, all: all.length };
}

/**
 * @param {Home} known
 * @param {{room: {room_id: string}, devices: Device[]}[]} tiles
 */
function extremes(known, tiles) {
  const values = tiles
    .map(({ room, devices }) => ({ room: room.room_id, ...valueNow(devices, "temperature") }))
    .filter((it) => it.value !== null)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0));
  if (values.length < 2) return "";
  const text = (/** @type {any} */ it) => `${isolated(roomName(known, it.room))}, ${quantity(it.value, it.unit, 1)}`;
  const inside = values.filter((it) => !isOutside(it.room));
  const coldest = inside.length && inside[0] !== values[0] ? `; inside ${text(inside[0])}` : "";
  return `Coldest: ${text(values[0])}${coldest}. Warmest: ${text(values.at(-1))}.`;
}

/**
 * @param {Home} known
 * @param {import("./api.js").Room} room
 * @param {Device[]} devices
 * @param {Points} points the temperature of its last day
 */
function tile(known, { room_id: id, name }, devices, points) {
  const judged = isOutside(`${id} ${name}`) ? {} : COMFORT;
  const row = (/** @type {string} */ title, /** @type {string} */ sensors, /** @type {(Node | string | null)[]} */ ...value) => h("div", { class: "value" }, h("dt", null, title, sensors && h("span", { class: "note" }, ` ${sensors} sensors`)), h("dd", null, ...value));
  const rows = ["temperature", "humidity", "co2"].flatMap((metric) => {
    const { value, unit, fresh, all } = valueNow(devices, metric);
    const apart = devices.filter((it) => it.metrics[metric]?.not_of_room && it.latest?.metrics[metric]).map((it) => h("div", { class: "value" }, h("dt", null, deviceName(it), h("span", { class: "note" }, " not the room's")), h("dd", null, isSilent(it, metric) ? "silent" : quantity(it.latest?.metrics[metric].value, it.metrics[metric].unit, metric === "temperature" ? 1 : 0))));
    if (!all) return apart;
    const sensors = all < 2 ? "" : fresh < all ? `${fresh} of ${all}` : `mean of ${all}`;
    return [row(words(metric), sensors, value === null ? "silent" : quantity(value, unit, metric === "temperature" ? 1 : 0), value === null ? null : comfort(judged[metric], value)), ...apart];
  });
  const meters = devices.filter((it) => powerOf(it) !== null && !isSilent(it));
  if (meters.length) rows.push(row("Power", "", `${number(inFront(known, meters).reduce((sum, it) => sum + (powerOf(it) ?? 0), 0), 0)} W`));
  const at = devices.map((it) => it.latest?.timestamp ?? "").sort().at(-1);
  return h(
    "section",
    { class: "card tile" },
    h("h2", null, h("a", { id: `tile-${id}`, href: `#charts/${encodeURIComponent(id)}` }, name || id)),
    rows.length ? h("dl", null, ...rows) : h("p", null, devices.map(deviceName).join(", ")),
    spark(points, valueNow(devices, "temperature").unit),
    at ? h("p", { class: devices.every((it) => isSilent(it)) ? "warn" : "note" }, devices.every((it) => isSilent(it)) ? `⚠ silent, last ${age(at)}` : age(at)) : h("p", { class: "warn" }, "⚠ no readings"),
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
 * @param {Points} points
 * @param {string | null | undefined} unit
 */
function spark(points, unit) {
  if (points.length < 3) return null;
  const means = points.map(({ mean }) => mean);
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const [from, to] = [points[0].time, points[points.length - 1].time];
  const places = points.map(({ time, mean }) => `${(((time - from) * 100) / (to - from)).toFixed(1)},${(28 - ((mean - low) * 26) / (high - low || 1)).toFixed(1)}`);
  const label = `Last 24 hours: ${number(shownValue(low, unit), 1)} to ${number(shownValue(high, unit), 1)} ${shownUnit(unit)}`;
  const line = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("polyline", { points: places.join(" ") }));
  return h("div", null, line, h("p", { class: "note" }, label));
}

