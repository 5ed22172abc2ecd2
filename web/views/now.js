// The view of this moment: what needs attention and since when, power, and each room. Draws no history but lines of the
// last day and the power of the last hour.

import { alertsOrNone } from "../data/rules.js";
import { addressOf, choose, chosen } from "../data/address.js";
import { patch, path } from "../data/api.js";
import { COMFORT, sideOf, sinceWhen } from "../data/comfort.js";
import { baseLoad, unjudgedSteps } from "../data/consumption.js";
import { WEAK, battery, beginning, deviceName, forget, hasEnergy, home, inFront, isOfSource, isSilent, isWeak, lastDay, lastDayOf, linesOf, powerMetric, powerOf, roomName, rowsBy, silence } from "../data/home.js";
import { memory } from "../data/memory.js";
import { isShared } from "../data/shared.js";
import { card, fill, h, states, svg } from "../parts/dom.js";
import { age, isolated, midnight, moment, number, quantity, shownUnit, shownValue, since, stateWord, watts, words } from "../words/format.js";
import { dayOf } from "../data/range.js";
import { lackNote } from "../parts/lack.js";
import { live } from "../parts/live.js";
import { stepText } from "../parts/odd.js";
import { inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { listed, named, rich, t } from "../words/words.js";
import { empty } from "./connect.js";
import { linkTo } from "./device.js";

/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/api.js").Device} Device */
/** @typedef {import("../data/api.js").Room} Room */
/** @typedef {{time: number, mean: number, min?: number, max?: number}[]} Points */
/** @typedef {{room: Room, devices: Device[], troubles: {metric: string, side: "low" | "high"}[], isSilent: boolean}} Place a room and what is wrong in it */

/** The most meters that are named where their power is added up. */
const MAX_PARTS = 5;
/** The most rooms of which it is asked since when. */
const MAX_SINCE = 6;
/** The most of a kind that are named at once; the others are behind a word. */
const MAX_NAMED = 8;
/** What a room shows first, and what it does not show: it is told elsewhere. */
const FIRST = ["temperature", "humidity", "co2"];
const ELSEWHERE = /^(battery|battery_percent|linkquality|link_quality|voltage|rssi|lqi|battery_low|uptime|power|current_w.*|current_a.*|current)$/;
/** What a link to this moment takes back. */
const LAST_DAY = { d: "", span: "", vs: "" };

/** The base load of nights, and how long it is used, in milliseconds: it is over. */
const nights = memory();
const NIGHT_AGE = 86_400_000;

/** @param {HTMLElement} main */
export async function now(main) {
  const said = h("div");
  const rooms = h("div");
  const power = h("div");
  const base = h("div");
  const behind = h("div");
  const state = states(main);
  /** @type {HTMLElement | null} */
  let shownLive = null;
  let liveOf = "";
  return async () => {
    const all = await home();
    // Whether a source is asked is told on Connect.
    const known = { ...all, devices: all.devices.filter((it) => !isOfSource(it)) };
    if (known.devices.length === 0) return state("empty", () => [h("h1", null, t("connectDevice")), empty()]);
    state("home", () => [h("h1", null, t("now")), card(t("attention"), said), card(t("metric_current_w"), power), rooms, behind]);
    const [{ failure, lack }, rules] = await Promise.all([lastDay(), alertsOrNone()]);
    const places = placesOf(known);
    const drawn = [...new Set(places.map(drawnOf))].filter((it) => rowsBy(known.devices, it).rooms);
    const days = await Promise.all(drawn.map(lastDayOf));
    const lines = new Map(drawn.map((it, n) => [it, linesOf(known, days[n].rows, it)]));
    const points = (/** @type {Place} */ it) => lines.get(drawnOf(it))?.find(({ room }) => room === it.room.room_id)?.points ?? [];
    fill(behind, lackNote(lack, ...days.map((it) => it.lack)));
    const wrong = places.filter((it) => isLoud(it) || chosen("edit") === it.room.room_id);
    const quiet = places.filter((it) => !wrong.includes(it));
    if (!rooms.querySelector(".marks")?.contains(document.activeElement)) {
      fill(
        rooms,
        h("p", { class: "summary" }, extremes(known, places)),
        h("div", { class: "tiles" }, ...wrong.map((it) => tile(known, it, points(it)))),
        quiet.length > 0 && h("section", { class: "card quiet", "aria-label": t("quietRooms") }, ...quiet.map((it) => line(known, it, points(it)))),
      );
    }
    const meters = inFront(known, known.devices.filter((it) => powerOf(it) !== null && !isSilent(it)));
    const asked = meters.map((it) => it.device_id).join(" ");
    if (asked !== liveOf) [shownLive, liveOf] = [isShared() ? null : live(meters, powerMetric), asked];
    fill(power, ...powerNow(known, shownLive), base);
    await Promise.all([
      showAttention(said, known, places, rules, failure),
      inPlace(base, () => showBase(base, known)),
    ]);
  };
}

/** The metric whose line a room has. @param {Place} place */
function drawnOf({ troubles }) {
  return troubles[0]?.metric ?? "temperature";
}

/** @param {Place} place */
function isLoud({ troubles, isSilent }) {
  return troubles.length > 0 || isSilent;
}

/**
 * The rooms with devices, those first that need attention.
 * @param {Home} known
 * @returns {Place[]}
 */
function placesOf(known) {
  const all = known.rooms.flatMap((room) => {
    const devices = known.devices.filter((it) => it.room === room.room_id);
    if (!devices.length) return [];
    const troubles = room.outside === true ? [] : Object.keys(COMFORT).flatMap((metric) => {
      const { value } = valueNow(devices, metric);
      const side = value === null ? null : sideOf(metric, value);
      return side === "low" || side === "high" ? [{ metric, side }] : [];
    });
    return [{ room, devices, troubles, isSilent: devices.every((it) => isSilent(it)) }];
  });
  const weight = (/** @type {Place} */ it) => (it.isSilent ? 10 : 0) + it.troubles.length;
  return all.sort((a, b) => weight(b) - weight(a));
}

/**
 * What needs attention, in sentences.
 * @param {Element} place
 * @param {Home} known
 * @param {Place[]} places
 * @param {import("../data/rules.js").Alerts | null} rules
 * @param {string} failure why usual intervals are unknown
 */
async function showAttention(place, known, places, rules, failure) {
  const silent = known.devices.filter((it) => isSilent(it));
  const weak = known.devices.filter(isWeak);
  const firing = (rules?.data ?? []).filter((it) => it.firing > 0);
  const uneasy = places.filter((it) => it.troubles.length);
  const entry = (/** @type {Place} */ { room, troubles }, /** @type {(Date | null)[]} */ from) => {
    const texts = troubles.map(({ metric, side }, n) => {
      const word = named(COMFORT[metric][side], side);
      return from[n] ? t("wordSince", { word, time: since(/** @type {Date} */ (from[n])) }) : word;
    });
    return h("li", null, h("a", { href: addressOf("charts", room.room_id, { ...LAST_DAY, metric: troubles[0].metric }) }, room.name || room.room_id), ` ${listed(texts)}`);
  };
  const link = (/** @type {Device} */ it, /** @type {string} */ text) => h("li", null, linkTo(it), ` ${text}`);
  const limited = (/** @type {HTMLElement[]} */ items) => items.length <= MAX_NAMED ? h("ul", null, ...items) : h("div", null, h("ul", null, ...items.slice(0, MAX_NAMED)), h("details", null, h("summary", null, t("more", { n: items.length - MAX_NAMED })), h("ul", null, ...items.slice(MAX_NAMED))));
  const begins = beginning(known);
  const step = (/** @type {import("../data/api.js").EventRow} */ it) => {
    const device = known.devices.find(({ device_id }) => device_id === it.device_id);
    const at = new Date(it.timestamp);
    return h("li", null, h("a", { href: addressOf("energy", "", { d: dayOf(at), span: "", vs: "" }) }, device ? deviceName(device) : it.device_id), ` ${stepText(it, device?.metrics[it.metric]?.unit)}, ${moment(at)}`);
  };
  const show = (/** @type {HTMLElement[]} */ ofRooms, /** @type {HTMLElement[]} */ steps) => fill(
    place,
    !silent.length && !weak.length && !firing.length && !ofRooms.length && !steps.length && h("p", { class: "big" }, t("allWell")),
    firing.length > 0 && h("div", null, h("h3", null, t("alerts")), limited(firing.map((it) => h("li", { class: "warn" }, h("a", { href: "#alerts" }, it.name), ` ${t("phase_firing")}`, it.states[0]?.since ? ` ${t("sinceTime", { time: since(it.states[0].since) })}` : "")))),
    ofRooms.length > 0 && h("div", null, h("h3", null, t("rooms")), limited(ofRooms)),
    silent.length > 0 && h("div", null, h("h3", null, t("silent")), limited(silent.map((it) => link(it, silence(it))))),
    weak.length > 0 && h("div", null, h("h3", null, t("batteryBelow", { limit: WEAK })), limited(weak.map((it) => link(it, `${number(battery(it) ?? 0)} %`)))),
    steps.length > 0 && h("div", null, h("h3", null, t("stepsUnjudged")), limited(steps)),
    h("p", { class: "note" }, t("report", { count: known.devices.length - silent.length, all: known.devices.length }), begins && ` · ${t("historyBegins", { time: moment(begins) })}`),
    failure && h("p", { class: "note" }, t("usualUnknown", { why: failure })),
  );
  // What is wrong is said before it is known since when.
  if (!place.childElementCount) show(uneasy.map((it) => entry(it, [])), []);
  const hasCounter = known.devices.some((it) => Object.values(it.metrics).some(({ kind }) => kind === "counter"));
  const [steps, ...ofRooms] = await Promise.all([
    hasCounter ? unjudgedSteps().catch(() => []) : [],
    ...uneasy.map(async (it, n) => entry(it, n < MAX_SINCE ? await Promise.all(it.troubles.map(({ metric, side }) => sinceWhen(it.room.room_id, metric, side))) : [])),
  ]);
  show(ofRooms, steps.map(step));
}

/**
 * @param {Home} known
 * @param {HTMLElement | null} live what grows while one looks
 */
function powerNow(known, live) {
  const all = known.devices.filter((it) => powerOf(it) !== null);
  if (!all.length) return [h("p", null, t("noPower"))];
  const load = (/** @type {Device} */ it) => powerOf(it) ?? 0;
  const meters = all.filter((it) => !isSilent(it)).sort((a, b) => load(b) - load(a));
  if (!meters.length) return [h("p", { class: "warn" }, t("powerSilent"))];
  const added = inFront(known, meters);
  const total = added.reduce((sum, it) => sum + load(it), 0);
  // A meter with others behind it consumes nothing itself.
  const consumers = meters.filter((it) => !meters.some(({ behind }) => behind === it.device_id) && !it.metrics.cumulative_kwh_n);
  const oldest = added.map((it) => it.latest?.timestamp ?? "").sort()[0];
  const part = (/** @type {Device} */ it) => { const node = document.createElement("span"); node.append(linkTo(it), `, ${watts(load(it))}`); return node; };
  // Before somebody has said what measures what, the biggest may be the meter of all.
  const isTold = all.some(({ behind, metrics }) => behind || Object.values(metrics).some(({ role }) => role));
  const parts = meters.slice(0, MAX_PARTS).flatMap((it, place) => [place ? t("between") : "", part(it)]);
  const list = document.createElement("span");
  list.append(...parts, meters.length > MAX_PARTS ? t("moreParts", { n: meters.length - MAX_PARTS }) : "");
  return [
    live ?? h("p", { class: "big" }, total < 0 ? t("wattsSold", { power: watts(-total) }) : watts(total)),
    all.length > 1 && isTold && consumers.length > 0 && h("p", null, ...rich("biggest", { device: part(consumers[0]) })),
    meters.length > 1 && !isTold && h("p", null, ...rich("addedUp", { parts: list })),
    h("p", { class: "note" }, !live && t("measured", { age: age(oldest) }), meters.length < all.length && ` ${t("notCounted", { n: all.length - meters.length })}`),
  ];
}

/**
 * The lowest half hour of last night beside that of the same night a month ago.
 * @param {Element} place
 * @param {Home} known
 */
async function showBase(place, known) {
  if (!known.devices.some(hasEnergy)) return;
  if (!place.childElementCount) fill(place, h("p", null, t("baseLoad", { power: "…" })));
  const today = midnight(new Date().getHours() < 6 ? -1 : 0);
  const monthAgo = new Date(today.getFullYear(), today.getMonth() - 1, today.getDate());
  const [last, before] = await Promise.all([today, monthAgo].map((it) => nights(String(it.getTime()), NIGHT_AGE, () => baseLoad(it))));
  fill(place, last !== null && h("p", null, before === null ? t("baseLoad", { power: watts(last) }) : t("baseLoadAgo", { power: watts(last), before: watts(before) })));
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
 * @param {Place[]} places
 */
function extremes(known, places) {
  const values = places
    .map(({ room, devices }) => ({ room, ...valueNow(devices, "temperature") }))
    .filter((it) => it.value !== null)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0));
  if (values.length < 2) return "";
  const text = (/** @type {any} */ it) => `${isolated(roomName(known, it.room.room_id))}, ${quantity(it.value, it.unit, 1)}`;
  const inside = values.filter((it) => it.room.outside !== true);
  const coldest = inside.length && inside[0] !== values[0] ? t("insideColdest", { room: text(inside[0]) }) : "";
  return t("extremes", { coldest: text(values[0]) + coldest, warmest: text(values.at(-1)) });
}

/**
 * A value as a person says it: a contact is open or closed.
 * @param {string} metric
 * @param {number} value
 * @param {string | null | undefined} unit
 */
function told(metric, value, unit) {
  return stateWord(metric, value) || quantity(value, unit, metric === "temperature" ? 1 : FIRST.includes(metric) ? 0 : undefined);
}

/**
 * The metrics of a room that are values of now, those first that people look at first.
 * @param {Device[]} devices
 */
function metricsNow(devices) {
  const all = new Set(devices.flatMap((it) => Object.entries(it.metrics).filter(([name, { kind, unit }]) => kind !== "counter" && !ELSEWHERE.test(name) && !/^k?Wh?$/.test(unit ?? "")).map(([name]) => name)));
  return [...FIRST.filter((it) => all.has(it)), ...[...all].filter((it) => !FIRST.includes(it)).sort()];
}

/** @param {Home} known @param {Device[]} devices */
function loadOf(known, devices) {
  const meters = devices.filter((it) => powerOf(it) !== null && !isSilent(it));
  return meters.length ? inFront(known, meters).reduce((sum, it) => sum + (powerOf(it) ?? 0), 0) : null;
}

/**
 * A room in which nothing is wrong: one line.
 * @param {Home} known
 * @param {Place} place
 * @param {Points} points
 */
function line(known, place, points) {
  const { room, devices } = place;
  const { room_id: id, name } = room;
  const values = metricsNow(devices).flatMap((metric) => {
    const { value, unit } = valueNow(devices, metric);
    return value === null ? [] : [h("span", { class: "chip" }, FIRST.includes(metric) ? h("span", { class: "hidden" }, `${words(metric)} `) : `${words(metric)} `, told(metric, value, unit))];
  });
  const load = loadOf(known, devices);
  if (load !== null) values.push(h("span", { class: "chip" }, watts(load)));
  for (const it of devices) {
    const value = it.latest?.metrics.temperature?.value;
    if (value !== undefined && it.metrics.temperature?.not_of_room && !isSilent(it)) values.push(h("span", { class: "chip note" }, linkTo(it), ` ${told("temperature", value, it.metrics.temperature.unit)}`));
  }
  return h("div", { class: "line room" },
    h("a", { id: `tile-${id}`, href: addressOf("charts", id, LAST_DAY) }, name || id),
    h("span", { class: "chips" }, ...values.slice(0, 5)),
    spark(points, place, false),
    marksButton(room),
  );
}

/** @param {Room} room */
function marksButton({ room_id: id, name }) {
  if (isShared()) return "";
  const isOpen = chosen("edit") === id;
  return h("button", { type: "button", class: "small", id: `marks-${id}`, "aria-expanded": String(isOpen), "aria-label": t("marksOf", { room: name || id }), onclick: () => choose({ edit: isOpen ? "" : id }) }, "…");
}

/**
 * A room in which something is wrong, or that is being marked.
 * @param {Home} known
 * @param {Place} place
 * @param {Points} points its last day
 */
function tile(known, place, points) {
  const { room, devices, isSilent: allSilent } = place;
  const { room_id: id, name } = room;
  const row = (/** @type {string} */ title, /** @type {string} */ sensors, /** @type {(Node | string | null)[]} */ ...value) => h("div", { class: "value" }, h("dt", null, title, sensors && h("span", { class: "note" }, ` ${sensors}`)), h("dd", null, ...value));
  const rows = metricsNow(devices).flatMap((metric) => {
    const { value, unit, fresh, all } = valueNow(devices, metric);
    const apart = devices.filter((it) => it.metrics[metric]?.not_of_room && it.latest?.metrics[metric]).map((it) => h("div", { class: "value" }, h("dt", null, linkTo(it), h("span", { class: "note" }, ` ${t("notTheRooms")}`)), h("dd", null, isSilent(it, metric) ? t("silentWord") : told(metric, it.latest?.metrics[metric].value ?? 0, it.metrics[metric].unit))));
    if (!all) return apart;
    const sensors = all < 2 ? "" : fresh < all ? t("someSensors", { count: fresh, all }) : t("meanOfSensors", { count: all });
    return [row(words(metric), sensors, value === null ? t("silentWord") : told(metric, value, unit), value === null || room.outside === true ? null : comfort(metric, value)), ...apart];
  });
  const load = loadOf(known, devices);
  if (load !== null) rows.push(row(t("metric_current_w"), "", watts(load)));
  const at = devices.map((it) => it.latest?.timestamp ?? "").sort().at(-1);
  return h(
    "section",
    { class: "card tile" },
    h("h2", null, h("a", { id: `tile-${id}`, href: addressOf("charts", id, LAST_DAY) }, name || id), " ", marksButton(room)),
    rows.length ? h("dl", null, ...rows) : h("p", null, devices.map(deviceName).join(", ")),
    spark(points, place, true),
    at ? h("p", { class: allSilent ? "warn" : "note" }, allSilent ? t("silentLast", { age: age(at) }) : age(at)) : h("p", { class: "warn" }, t("noReadings")),
    chosen("edit") === id && marks(room, devices),
  );
}

/**
 * The marks of a room: whether it is outside, and which devices are not its air.
 * @param {Room} room
 * @param {Device[]} devices
 */
function marks({ room_id: id, outside }, devices) {
  const said = h("p", { role: "alert" });
  const edit = (/** @type {string} */ where, /** @type {Record<string, unknown>} */ change) => inPlace(said, async () => {
    await guarded(() => patch(where, change));
    forget();
    window.dispatchEvent(new Event("changed"));
  });
  const box = (/** @type {string} */ text, /** @type {boolean} */ checked, /** @type {(is: boolean) => Promise<unknown>} */ change) => {
    const input = h("input", { type: "checkbox", checked, onchange: () => { input.blur(); change(input.checked); } });
    return h("label", { class: "check" }, input, text);
  };
  const judged = devices.filter((it) => FIRST.some((metric) => it.metrics[metric]));
  const isApart = (/** @type {Device} */ it) => FIRST.some((metric) => it.metrics[metric]?.not_of_room);
  return h("fieldset", { class: "marks" }, h("legend", null, t("marks")),
    box(t("outsideMark"), outside === true, (is) => edit(path("rooms", id), { outside: is || null })),
    ...judged.map((it) => box(t("notAirMark", { device: deviceName(it) }), isApart(it), (is) => edit(path("devices", it.device_id), { in_room_means: !is }))),
    said,
  );
}

/**
 * @param {string} metric
 * @param {number} value
 */
function comfort(metric, value) {
  const side = sideOf(metric, value);
  if (!side) return null;
  const word = side === "good" ? t(metric === "co2" ? "fresh" : "comfortable") : named(COMFORT[metric][side], side);
  return h("span", { class: `band ${side}` }, word);
}

/**
 * The last day as a line of hourly means, and from its lowest to its highest reading in words.
 * @param {Points} points
 * @param {Place} place
 * @param {boolean} isSaid whether its ends are written below it, too
 */
function spark(points, place, isSaid) {
  if (points.length < 3) return null;
  const metric = drawnOf(place);
  const { unit } = valueNow(place.devices, metric);
  const means = points.map(({ mean }) => mean);
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const [from, to] = [points[0].time, points[points.length - 1].time];
  const places = points.map(({ time, mean }) => `${(((time - from) * 100) / (to - from)).toFixed(1)},${(28 - ((mean - low) * 26) / (high - low || 1)).toFixed(1)}`);
  const end = (/** @type {number} */ it) => number(shownValue(it, unit), metric === "temperature" ? 1 : 0);
  const label = t("spark", { low: end(Math.min(...points.map(({ min, mean }) => min ?? mean))), high: end(Math.max(...points.map(({ max, mean }) => max ?? mean))), unit: shownUnit(unit) });
  const line = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("polyline", { points: places.join(" ") }));
  return isSaid ? h("div", null, line, h("p", { class: "note" }, label)) : line;
}
