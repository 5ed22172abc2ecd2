// The view of this moment: figures, what needs attention and since when, and each room. Draws no history but lines of the
// last day and the power of the last hour.

import { alertsOrNone } from "../data/rules.js";
import { addressOf, choose, chosen } from "../data/address.js";
import { COMFORT, sideOf, sinceWhen } from "../data/comfort.js";
import { baseLoad, daysBeforeYesterday, halvesOf, lastTwoDays, rowsIn, totalOf, unjudgedSteps, usedUntil, usualUntil } from "../data/consumption.js";
import { WEAK, battery, beginning, deviceName, hasEnergy, home, inFront, isOfSource, isSilent, isWeak, lastDay, lastDayOf, linesOf, measuredUntil, powerMetric, powerOf, roomName, rowsBy, silence } from "../data/home.js";
import { editDevice, editRoom } from "../data/edits.js";
import { memory } from "../data/memory.js";
import { isShared } from "../data/shared.js";
import { card, fill, h, states } from "../parts/dom.js";
import { age, day, isolated, kwh, midnight, moment, number, quantity, shownUnit, shownValue, since, stateWord, watts, words } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { dayOf } from "../data/range.js";
import { compared, large, smallLine } from "../parts/figures.js";
import { absent, lackNote } from "../parts/lack.js";
import { linkTo } from "../parts/link.js";
import { live } from "../parts/live.js";
import { stepText } from "../parts/odd.js";
import { inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { listed, named, rich, t } from "../words/words.js";

/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/api.js").Device} Device */
/** @typedef {import("../data/api.js").Room} Room */
/** @typedef {{time: number, mean: number, min?: number, max?: number}[]} Points */
/** @typedef {{room: Room, devices: Device[], troubles: {metric: string, side: "low" | "high"}[], isSilent: boolean}} Place a room and what is wrong in it */

/** The most meters that are named where their power is added up. */
const MAX_PARTS = 5;
/** The most rooms for which the server is asked since when something is wrong. */
const MAX_SINCE = 6;
/** The most of a kind that are named at once in a list, and in the line above it; the others are a number. */
const MAX_NAMED = 8;
const MAX_IN_LINE = 3;
/** The most rooms that have a tile each; more are rows. */
const MAX_TILES = 24;
/** The metrics that a room shows first, and those that are shown elsewhere. */
const FIRST = ["temperature", "humidity", "co2"];
const ELSEWHERE = /^(battery|battery_percent|linkquality|link_quality|voltage|rssi|lqi|battery_low|uptime|frequency.*|power|current_w.*|current_a.*|current)$/;
/** The settings that a link to the last day clears. */
const LAST_DAY = { d: "", span: "", vs: "" };

/** The half hours of yesterday and today, and how long they are used, in milliseconds. */
const recent = memory();
const TODAY_AGE = 300_000;
/** The half hours of days that are over, such as a night a month ago, and how long they are used, in milliseconds. */
const over = memory();
const OVER_AGE = 86_400_000;

/** @param {HTMLElement} main */
export async function now(main) {
  const figures = h("div", { class: "figures" });
  const said = h("section", { class: "card attention" });
  const rooms = h("div");
  const behind = h("div");
  const power = h("div");
  const powerCard = h("section", { class: "card power" }, h("h2", null, t("metric_current_w")), power);
  const base = h("div");
  const today = h("section", { class: "card" });
  const climate = h("div");
  const state = states(main);
  /** @type {HTMLElement | null} */
  let shownLive = null;
  let liveOf = "";
  return async () => {
    const all = await home();
    // Whether a source is asked is told on Connect.
    const known = { ...all, devices: all.devices.filter((it) => !isOfSource(it)) };
    if (known.devices.length === 0) {
      const { empty } = await import("./connect.js");
      return state("empty", () => [h("h1", null, t("connectDevice")), empty()]);
    }
    state("home", () => [h("h1", { class: "hidden" }, t("now")), figures, said, rooms, behind]);
    const [{ failure, lack }, rules] = await Promise.all([lastDay(), alertsOrNone()]);
    const places = placesOf(known);
    const drawn = [...new Set(places.map(drawnOf))].filter((it) => rowsBy(known.devices, it).rooms);
    const days = await Promise.all(drawn.map(lastDayOf));
    const lines = new Map(drawn.map((it, n) => [it, linesOf(known, days[n].rows, it)]));
    const points = (/** @type {Place} */ it) => lines.get(drawnOf(it))?.find(({ room }) => room === it.room.room_id)?.points ?? [];
    fill(behind, lackNote(lack, ...days.map((it) => it.lack)));
    const edited = places.find(({ room }) => chosen("edit") === room.room_id);
    const outside = places.find((it) => it !== edited && it.room.outside === true && valueNow(it.devices, "temperature").value !== null);
    if (!rooms.querySelector(".marks")?.contains(document.activeElement)) {
      const tiles = places.filter((it) => it !== edited && it !== outside && !isOfMeter(known, it)).map((it) => tile(known, it, points(it)));
      fill(rooms, edited && roomCard(known, edited, points(edited)), h("div", { class: `tiles rooms${tiles.length > MAX_TILES ? " many" : ""}` }, ...tiles));
    }
    const inside = extremes(known, places);
    if (!climate.contains(document.activeElement)) fill(climate, outside ? tile(known, outside, points(outside), inside?.note) : inside && card(words("temperature"), inside.range, inside.note));
    const meters = inFront(known, known.devices.filter((it) => powerOf(it) !== null && !isSilent(it)));
    const asked = meters.map((it) => it.device_id).join(" ");
    if (asked !== liveOf) [shownLive, liveOf] = [isShared() ? null : live(meters, powerMetric), asked];
    fill(power, ...powerNow(known, shownLive), base);
    const hasPower = known.devices.some((it) => powerOf(it) !== null);
    const wanted = [hasPower && powerCard, known.devices.some(hasEnergy) && today, climate.childElementCount > 0 && climate].filter((it) => it !== false);
    if (figures.childElementCount !== wanted.length || wanted.some((figure, n) => figures.children[n] !== figure)) fill(figures, ...wanted);
    await Promise.all([
      showAttention(said, known, places, rules, failure),
      showSince(rooms, places),
      known.devices.some(hasEnergy) && inPlace(today, () => showToday(today, base, measuredUntil(known))),
    ]);
  };
}

/** The metric whose line a room has. @param {Place} place */
function drawnOf({ troubles }) {
  return troubles[0]?.metric ?? "temperature";
}

/** Tells whether a room has nothing but the meter of others, whose power is the figure above. @param {Home} known @param {Place} place */
function isOfMeter(known, { devices }) {
  return metricsNow(devices).length === 0 && devices.some(({ device_id }) => known.devices.some(({ behind }) => behind === device_id));
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

/** The side of comfort on which a room is; empty where nothing is wrong. @param {Place} place */
function edgeOf({ room, troubles, isSilent }) {
  return isSilent ? "silent" : room.outside === true ? "outside" : troubles[0]?.side ?? "";
}

/** Says on the tiles since when rooms are uneasy. @param {Element} rooms @param {Place[]} places */
async function showSince(rooms, places) {
  const uneasy = places.filter(({ troubles, isSilent }) => troubles.length && !isSilent).slice(0, MAX_SINCE);
  await Promise.all(uneasy.map(async ({ room, troubles: [{ metric, side }] }) => {
    const from = await sinceWhen(room.room_id, metric, side);
    const tag = rooms.querySelector(`[id="tag-${CSS.escape(room.room_id)}"]`);
    if (from && tag) fill(tag, t("wordSince", { word: named(COMFORT[metric][side], side), time: from < midnight(0) ? day(from) : since(from) }));
  }));
}

/**
 * What needs attention: in a line, and in lists below it, which are open where something has failed.
 * @param {HTMLElement} place
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
  const word = (/** @type {{metric: string, side: "low" | "high"}} */ { metric, side }) => named(COMFORT[metric][side], side);
  const entry = (/** @type {Place} */ { room, troubles }, /** @type {(Date | null)[]} */ from) => {
    const texts = troubles.map((trouble, n) => from[n] ? t("wordSince", { word: word(trouble), time: since(/** @type {Date} */ (from[n])) }) : word(trouble));
    return h("li", null, h("a", { href: addressOf("charts", room.room_id, { ...LAST_DAY, metric: troubles[0].metric }) }, room.name || room.room_id), ` ${listed(texts)}`);
  };
  const link = (/** @type {Device} */ it, /** @type {string} */ text) => h("li", null, linkTo(it), ` ${text}`);
  const begins = beginning(known);
  const step = (/** @type {import("../data/api.js").EventRow} */ it) => {
    const device = known.devices.find(({ device_id }) => device_id === it.device_id);
    const at = new Date(it.timestamp);
    return h("li", null, h("a", { href: addressOf("energy", "", { d: dayOf(at), span: "", vs: "" }) }, device ? deviceName(device) : it.device_id), ` ${stepText(it, device?.metrics[it.metric]?.unit)}, ${moment(at)}`);
  };
  const alarm = (/** @type {(typeof firing)[0]} */ { name, states: [state] }) => h("li", { class: "warn" }, h("a", { href: "#alerts" }, name), ` ${t("phase_firing")}`, state?.since ? ` ${t("sinceTime", { time: since(state.since) })}` : "");
  const show = (/** @type {HTMLElement[]} */ ofRooms, /** @type {HTMLElement[]} */ steps) => {
    /** @type {[string, HTMLElement[]][]} titles and what is wrong */
    const groups = [
      [t("alerts"), firing.map(alarm)],
      [t("silent"), silent.map((it) => link(it, silence(it)))],
      [t("batteryBelow", { limit: WEAK }), weak.map((it) => link(it, `${number(battery(it) ?? 0)} %`))],
      [t("stepsUnjudged"), steps],
    ];
    const failed = groups.filter(([, items]) => items.length);
    const words = new Set(uneasy.flatMap(({ troubles }) => troubles.map(word)));
    const ofWords = [...words].map((it) => inLine(it, uneasy.filter(({ troubles }) => troubles.some((trouble) => word(trouble) === it)).map(({ room }) => room.name || room.room_id)));
    const told = [...failed.map(([title, items]) => inLine(title, items.map((it) => it.firstElementChild?.textContent ?? ""))), ...ofWords];
    const line = [
      h("span", { class: `dot ${failed.length ? "warn" : told.length ? "low" : ""}` }),
      h("span", null, h("strong", null, told.length ? told.join(" · ") : t("allWell")), " ", h("span", { class: "note" }, t("report", { count: known.devices.length - silent.length, all: known.devices.length }), begins && ` · ${t("historyBegins", { time: moment(begins) })}`)),
    ];
    // What has failed since opens them again.
    const isOpen = failed.length > Number(place.dataset.failed ?? 0) || place.querySelector("details")?.open;
    place.dataset.failed = String(failed.length);
    const lists = [...failed, .../** @type {typeof groups} */ (ofRooms.length ? [[t("rooms"), ofRooms]] : [])].map(([title, items]) => h("div", null, h("h3", null, title), limited(items)));
    fill(
      place,
      h("h2", { class: "hidden" }, t("attention")),
      told.length ? h("details", { open: isOpen }, h("summary", { id: "attention" }, ...line), ...lists) : h("p", { class: "inline" }, ...line),
      failure && h("p", { class: "note" }, t("usualUnknown", { why: failure })),
    );
  };
  // The troubles are shown before their beginnings are known.
  if (!place.childElementCount) show(uneasy.map((it) => entry(it, [])), []);
  const hasCounter = known.devices.some((it) => Object.values(it.metrics).some(({ kind }) => kind === "counter"));
  const [steps, ...ofRooms] = await Promise.all([
    hasCounter ? unjudgedSteps().catch(() => []) : [],
    ...uneasy.map(async (it, n) => entry(it, n < MAX_SINCE ? await Promise.all(it.troubles.map(({ metric, side }) => sinceWhen(it.room.room_id, metric, side))) : [])),
  ]);
  show(ofRooms, steps.map(step));
}

/** Names after a title, of many their number. @param {string} title @param {string[]} names */
function inLine(title, names) {
  return t("labelled", { name: title, text: names.length > MAX_IN_LINE ? number(names.length) : listed(names.map(isolated)) });
}

/** A list whose end is opened where it is long. @param {HTMLElement[]} items */
function limited(items) {
  if (items.length <= MAX_NAMED) return h("ul", null, ...items);
  const others = h("details", null, h("summary", null, t("more", { n: items.length - MAX_NAMED })), h("ul", null, ...items.slice(MAX_NAMED)));
  return h("div", null, h("ul", null, ...items.slice(0, MAX_NAMED)), others);
}

/**
 * @param {Home} known
 * @param {HTMLElement | null} live what grows while one looks
 */
function powerNow(known, live) {
  const all = known.devices.filter((it) => powerOf(it) !== null);
  if (!all.length) return [];
  const load = (/** @type {Device} */ it) => powerOf(it) ?? 0;
  const meters = all.filter((it) => !isSilent(it)).sort((a, b) => load(b) - load(a));
  if (!meters.length) return [h("p", { class: "warn" }, t("powerSilent"))];
  const added = inFront(known, meters);
  const total = added.reduce((sum, it) => sum + load(it), 0);
  // A meter with others behind it consumes nothing itself.
  const consumers = meters.filter((it) => !all.some(({ behind }) => behind === it.device_id) && !it.metrics.cumulative_kwh_n);
  const oldest = added.map((it) => it.latest?.timestamp ?? "").sort()[0];
  const part = (/** @type {Device} */ it) => { const node = document.createElement("span"); node.append(linkTo(it), `, ${watts(load(it))}`); return node; };
  // Before somebody has said what measures what, the biggest may be the meter of all.
  const isTold = all.some(({ behind, metrics }) => behind || Object.values(metrics).some(({ role }) => role));
  const parts = meters.slice(0, MAX_PARTS).flatMap((it, place) => [place ? t("between") : "", part(it)]);
  const list = document.createElement("span");
  list.append(...parts, meters.length > MAX_PARTS ? t("moreParts", { n: meters.length - MAX_PARTS }) : "");
  return [
    live ?? large(total < 0 ? t("wattsSold", { power: watts(-total) }) : watts(total)),
    all.length > 1 && isTold && consumers.length > 0 && h("p", null, ...rich("biggest", { device: part(consumers[0]) })),
    meters.length > 1 && !isTold && h("p", null, ...rich("addedUp", { parts: list })),
    h("p", { class: "note" }, !live && t("measured", { age: age(oldest) }), meters.length < all.length && ` ${t("notCounted", { n: all.length - meters.length })}`),
  ];
}

/**
 * Today beside what is usual up to the same moment, or beside yesterday where nothing is usual yet, and the base load
 * of last night beside that of the night a month ago.
 * @param {Element} place
 * @param {Element} base
 * @param {Date} until what today is known until
 */
async function showToday(place, base, until) {
  const answer = await recent("two days", TODAY_AGE, lastTwoDays);
  const today = rowsIn(answer.data, midnight(0), midnight(1));
  const yesterday = rowsIn(answer.data, midnight(-1), midnight(0));
  const earlier = await over(`week ${midnight(0).getTime()}`, OVER_AGE, daysBeforeYesterday).catch(() => null);
  const usual = usualUntil([...(earlier?.data ?? []), ...yesterday], until);
  const [used, before, all] = [totalOf(today), usedUntil(yesterday, -1, until), totalOf(yesterday)];
  const [beside, than] = usual ? [usual.kwh, t("usualUpToNow", { n: usual.days })] : [before, t("yesterdayUpToNow")];
  fill(
    place,
    h("h2", null, h("a", { href: addressOf("energy", "", { d: "", span: "" }) }, t("todaySoFar"))),
    used === null ? h("p", null, absent(isLacking(answer), t("none"))) : large(kwh(used)),
    !isLacking(answer, earlier) && beside !== null && h("p", { class: "note" }, ...compared(used, beside, than)),
    used !== null && all !== null && dayMeter(used, beside ?? 0, all),
    lackNote(answer),
  );
  const night = midnight(new Date().getHours() < 6 ? -1 : 0);
  const monthAgo = new Date(night.getFullYear(), night.getMonth() - 1, night.getDate());
  const last = baseLoad(answer.data, night);
  const ago = baseLoad(await over(`night ${monthAgo.getTime()}`, OVER_AGE, () => halvesOf(monthAgo)), monthAgo);
  fill(base, last !== null && h("p", { class: "note" }, ago === null ? t("baseLoad", { power: watts(last) }) : t("baseLoadAgo", { power: watts(last), before: watts(ago) })));
}

/** Today as a bar within yesterday, with a mark at what it is compared with. @param {number} used @param {number} beside @param {number} all */
function dayMeter(used, beside, all) {
  const most = Math.max(used, beside, all) || 1;
  const [bar, mark] = [h("span"), h("i")];
  const yesterday = h("a", { href: addressOf("energy", "", { d: dayOf(midnight(-1)), span: "", vs: "" }) }, t("yesterday"));
  bar.style.width = `${(used * 100) / most}%`;
  mark.style.left = `${(beside * 100) / most}%`;
  return h("div", null, h("div", { class: "meter", "aria-hidden": "true" }, bar, mark), h("p", { class: "note" }, ...rich("labelled", { name: yesterday, text: kwh(all) })));
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
 * The temperatures inside, from the lowest to the highest, and where those are; null with less than two rooms.
 * @param {Home} known
 * @param {Place[]} places
 */
function extremes(known, places) {
  const values = places
    .filter(({ room }) => room.outside !== true)
    .map(({ room, devices }) => ({ room, ...valueNow(devices, "temperature") }))
    .filter((it) => it.value !== null)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0));
  if (values.length < 2) return null;
  const text = (/** @type {any} */ it) => `${isolated(roomName(known, it.room.room_id))}, ${quantity(it.value, it.unit, 1)}`;
  const [low, high] = [values[0], values[values.length - 1]];
  const note = h("p", { class: "note summary" }, t("extremes", { coldest: text(low), warmest: text(high) }));
  return { range: large(`${number(shownValue(low.value ?? 0, low.unit), 1)}–${quantity(high.value, high.unit, 1)}`), note };
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
 * A room: what people look at first in large digits, then what else there is, and its last day.
 * @param {Home} known
 * @param {Place} place
 * @param {Points} points
 * @param {Node | null} [more] what is said below it
 */
function tile(known, place, points, more = null) {
  const { room, devices, troubles } = place;
  const { room_id: id, name } = room;
  const values = metricsNow(devices).flatMap((metric) => {
    const { value, unit } = valueNow(devices, metric);
    return value === null ? [] : [{ metric, text: told(metric, value, unit) }];
  });
  const load = loadOf(known, devices);
  const power = load === null ? [] : [{ metric: "current_w", text: watts(load) }];
  const isFirst = (/** @type {{metric: string}} */ { metric }) => FIRST.includes(metric);
  const [first, ...others] = [...values.filter(isFirst), ...power, ...values.filter((it) => !isFirst(it))];
  const isPlain = (/** @type {string} */ metric) => FIRST.includes(metric) || metric === "current_w";
  const chip = (/** @type {{metric: string, text: string}} */ { metric, text }) => h("span", null, h("span", { class: isPlain(metric) ? "hidden" : "" }, `${words(metric)} `), text, " ");
  const apart = devices.filter((it) => it.latest?.metrics.temperature && it.metrics.temperature?.not_of_room && !isSilent(it)).map((it) => h("span", null, linkTo(it), ` ${told("temperature", it.latest?.metrics.temperature.value ?? 0, it.metrics.temperature.unit)} `));
  const at = devices.map((it) => it.latest?.timestamp ?? "").sort().at(-1);
  const tag = place.isSilent ? h("span", { class: "warn" }, at ? t("silentLast", { age: age(at) }) : t("noReadings")) : troubles[0] && h("span", { class: `band ${troubles[0].side}`, id: `tag-${id}` }, named(COMFORT[troubles[0].metric][troubles[0].side], ""));
  const humidity = others.find(({ metric }) => metric === "humidity");
  return h(
    "section",
    { class: `card tile room ${edgeOf(place)}` },
    h("h2", null, h("a", { id: `tile-${id}`, href: addressOf("charts", id, LAST_DAY) }, name || id), marksButton(room)),
    h("div", { class: "value" }, first && large(first.text), first && !isPlain(first.metric) && h("span", { class: "note" }, words(first.metric)), humidity && h("span", { class: "note" }, chip(humidity))),
    h("p", { class: "chips note" }, tag, tag && " ", ...others.filter((it) => it !== humidity).map(chip), ...apart),
    more,
    spark(points, place),
  );
}

/** @param {Room} room */
function marksButton({ room_id: id, name }) {
  if (isShared()) return "";
  const isOpen = chosen("edit") === id;
  return h("button", { type: "button", class: "plain", id: `marks-${id}`, "aria-expanded": String(isOpen), "aria-label": t("marksOf", { room: name || id }), onclick: () => choose({ edit: isOpen ? "" : id }) }, "…");
}

/**
 * All of a room, while it is being marked.
 * @param {Home} known
 * @param {Place} place
 * @param {Points} points its last day
 */
function roomCard(known, place, points) {
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
    { class: "card room-card" },
    h("h2", null, h("a", { id: `tile-${id}`, href: addressOf("charts", id, LAST_DAY) }, name || id), " ", marksButton(room)),
    rows.length ? h("dl", null, ...rows) : h("p", null, devices.map(deviceName).join(", ")),
    points.length > 2 && h("div", null, spark(points, place), h("p", { class: "note" }, sparkLabel(points, place))),
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
  const edit = (/** @type {() => Promise<void>} */ save) => inPlace(said, async () => {
    await guarded(save);
    window.dispatchEvent(new Event("changed"));
  });
  const box = (/** @type {string} */ text, /** @type {boolean} */ checked, /** @type {(is: boolean) => Promise<unknown>} */ change) => {
    const input = h("input", { type: "checkbox", checked, onchange: () => { input.blur(); change(input.checked); } });
    return h("label", { class: "check" }, input, text);
  };
  const judged = devices.filter((it) => FIRST.some((metric) => it.metrics[metric]));
  const isApart = (/** @type {Device} */ it) => FIRST.some((metric) => it.metrics[metric]?.not_of_room);
  return h("fieldset", { class: "marks" }, h("legend", null, t("marks")),
    box(t("outsideMark"), outside === true, (is) => edit(() => editRoom(id, { outside: is || null }))),
    ...judged.map((it) => box(t("notAirMark", { device: deviceName(it) }), isApart(it), (is) => edit(() => editDevice(it.device_id, { in_room_means: !is })))),
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
 * The last day as a line of hourly means.
 * @param {Points} points
 * @param {Place} place
 */
function spark(points, place) {
  return points.length < 3 ? null : smallLine("spark", sparkLabel(points, place), points.map(({ time, mean }) => ({ time, value: mean })));
}

/** The last day from its lowest to its highest reading, in words. @param {Points} points @param {Place} place */
function sparkLabel(points, place) {
  const metric = drawnOf(place);
  const { unit } = valueNow(place.devices, metric);
  const end = (/** @type {number} */ it) => number(shownValue(it, unit), metric === "temperature" ? 1 : 0);
  const [lows, highs] = [points.map(({ min, mean }) => min ?? mean), points.map(({ max, mean }) => max ?? mean)];
  return t("spark", { low: end(Math.min(...lows)), high: end(Math.max(...highs)), unit: shownUnit(unit) });
}
