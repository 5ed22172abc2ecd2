// The view of one device, or of all: newest values, rooms it was in, what was odd, settings. Compares no devices.

import { addressOf, choose, chosen } from "../data/address.js";
import { marksOf } from "../data/annotations.js";
import { editDevice } from "../data/edits.js";
import { answerTo, queryOf, staysOf, stepsSince, usedBy } from "../data/history.js";
import { WEAK, battery, deviceName, hasEnergy, home, inFront, isSilent, isWeak, lastDay, metricsOf, roomName, silence } from "../data/home.js";
import { range } from "../data/range.js";
import { saveRows } from "../data/series.js";
import { isShared } from "../data/shared.js";
import { lineChart } from "../parts/chart.js";
import { dateBar, titleOf, versusOf } from "../parts/datebar.js";
import { buttons, card, field, fill, h, select, states, table } from "../parts/dom.js";
import { age, kwh, midnight, moment, number, quantity, shownUnit, stateWord, words } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { lackNote } from "../parts/lack.js";
import { linkTo } from "../parts/link.js";
import { showEvents } from "../parts/odd.js";
import { again, inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { named, rich, t } from "../words/words.js";

/** @typedef {import("../data/api.js").Device} Device */
/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/range.js").Range} Range */

/** @type {import("../data/range.js").Span[]} */
const SPANS = ["24h", "day", "week", "month", "year"];
/** The most values of a device in the list of all. */
const MAX_VALUES = 4;
/** The length of a row by span, with its seconds. @type {Record<string, [string, number]>} */
const ROWS = { "24h": ["15m", 900], day: ["15m", 900], week: ["1h", 3600], month: ["1h", 3600], year: ["1d", 86_400] };

/**
 * @param {HTMLElement} main
 * @param {string} id empty for all devices
 */
export async function device(main, id) {
  return id ? one(main, id) : all(main);
}

/** @param {HTMLElement} main */
function all(main) {
  const place = h("div");
  const search = h("input", { type: "search", id: "search", autocomplete: "off", "aria-label": t("search"), placeholder: t("search"), value: chosen("q"), onchange: () => choose({ q: search.value.trim() }) });
  const choice = h("div");
  fill(main, h("h1", { class: "hidden" }, t("devices")), h("section", { class: "card list" }, h("div", { class: "controls" }, choice, search), place));
  return async () => {
    const known = await home();
    const { failure } = await lastDay();
    const only = ["silent", "weak"].find((it) => it === chosen("only")) ?? "";
    const sought = chosen("q").toLowerCase();
    if (document.activeElement !== search) search.value = chosen("q");
    const silent = known.devices.filter((it) => isSilent(it));
    const weak = known.devices.filter(isWeak);
    const found = (only === "silent" ? silent : only ? weak : known.devices).filter((it) => [it.device_id, it.name, roomName(known, it.room), it.kind, ...it.tags].some((text) => text?.toLowerCase().includes(sought)));
    const charge = (/** @type {Device} */ it) => { const left = battery(it); return left === null ? "" : h("span", { class: isWeak(it) ? "warn" : "" }, `${number(left)} %`); };
    /** @type {{title: string, isWanted: boolean, cell: (it: Device) => Node | string}[]} a column without a value is left out */
    const columns = [
      { title: t("device"), isWanted: true, cell: (it) => h("div", null, linkTo(it), silent.includes(it) && h("div", { class: "warn" }, t("silentMark", { since: silence(it) }))) },
      { title: t("room"), isWanted: true, cell: (it) => roomName(known, it.room) },
      { title: t("newestValues"), isWanted: true, cell: valuesOf },
      { title: t("metric_battery"), isWanted: found.some((it) => battery(it) !== null), cell: charge },
    ];
    const wanted = columns.filter(({ isWanted }) => isWanted);
    const rows = found.map((it) => wanted.map(({ cell }) => cell(it)));
    fill(choice, buttons(t("show"), [["", t("allCount", { n: known.devices.length })], ["silent", t("silentCount", { n: silent.length })], ["weak", t("weakCount", { n: weak.length })]], only, (only) => choose({ only })));
    fill(place, table(only === "weak" ? t("batteryBelow", { limit: WEAK }) : t(only ? "silentDevices" : "allDevices"), wanted.map(({ title }) => title), rows), failure && h("p", { class: "note" }, t("usualUnknown", { why: failure })));
  };
}

/** The newest values of a device, but its battery's. @param {Device} device */
function valuesOf(device) {
  const { metrics, latest } = device;
  const names = [...metricsOf([device]).keys()].filter((name) => latest?.metrics[name] && !/^battery/.test(name));
  const texts = names.map((name) => { const { value } = latest?.metrics[name] ?? { value: 0 }; return `${words(name)} ${stateWord(name, value) || quantity(value, metrics[name].unit)}`; });
  return texts.slice(0, MAX_VALUES).join(" · ") + (texts.length > MAX_VALUES ? t("andMore", { n: texts.length - MAX_VALUES }) : "");
}

/**
 * @param {HTMLElement} main
 * @param {string} id
 */
function one(main, id) {
  const heading = h("h1", null, id);
  const bar = h("div");
  const values = h("div");
  const controls = h("div", { class: "controls" });
  const chart = h("div");
  const rooms = h("div");
  const odd = h("div");
  const settings = h("div");
  const state = states(main);
  let isShown = false;
  const showOdd = async () => {
    const { data, has_more } = await stepsSince(id, midnight(-30));
    const events = h("div");
    await showEvents(events, data, showOdd);
    fill(odd, card(t("oddLast31"), events, has_more && h("p", { class: "note" }, t("thereAreMore"))));
  };
  async function show() {
    const known = await home();
    const found = known.devices.find((it) => it.device_id === id);
    if (!found) return state("none", () => [h("h1", null, t("noSuchDevice")), h("p", null, t("noDeviceCalled", { id })), h("p", null, h("a", { href: "#device" }, t("allDevices")))]);
    state("device", () => [heading, h("div", { class: "two" }, card(t("newestValues"), values), card(t("rooms"), rooms)), bar, card(t("history"), controls, chart), odd, card(t("settings"), settings)]);
    fill(heading, deviceName(found));
    fill(values, newest(found));
    const shown = range("24h", SPANS);
    dateBar(bar, shown, { spans: SPANS, usual: "24h", begins: new Date(found.first_seen) });
    const names = Object.keys(found.metrics);
    const metric = names.includes(chosen("metric")) ? chosen("metric") : (names.find((name) => found.metrics[name].kind !== "counter") ?? names[0] ?? "");
    await Promise.all([
      inPlace(chart, () => showChart(chart, controls, found, metric, shown)),
      inPlace(rooms, async () => {
        const stays = await staysOf(id);
        const isThere = (/** @type {any} */ it) => !it.until && it.room === found.room;
        const rows = stays.map((it) => [roomName(known, it.room), moment(it.since), it.until ? moment(it.until) : isThere(it) ? t("nowWord") : t("lately")]).reverse();
        // A stay that readings teach is known after 15 minutes.
        if (found.room && !stays.some(isThere)) rows.unshift([roomName(known, found.room), t("lately"), t("nowWord")]);
        fill(rooms, rows.length ? table(t("whereItWas"), [t("room"), t("from"), t("to")], rows) : h("p", null, t("inNoRoom")));
      }),
      !isShown && Object.values(found.metrics).some((it) => it.kind === "counter") && inPlace(odd, showOdd),
    ]);
    // A form that somebody fills in is left alone.
    if (!isShown) fill(settings, form(known, found, () => { isShown = false; return again(main, show); }));
    isShown = true;
  }
  return show;
}

/**
 * A metric of the device over the range, and what the device used in it.
 * @param {Element} place
 * @param {Element} controls
 * @param {Device} found
 * @param {string} metric
 * @param {Range} shown
 */
async function showChart(place, controls, found, metric, shown) {
  if (!metric) return fill(place, h("p", null, t("noMetricSent")));
  const { device_id: id, metrics } = found;
  const { kind, unit } = metrics[metric];
  const fn = kind === "counter" ? "increase" : "mean,min,max";
  const [every, step] = ROWS[shown.span];
  const query = (/** @type {{from: Date, to: Date}} */ range) => queryOf(id, { metric, fn, every }, range);
  const [answer, past, used, marks] = await Promise.all([
    answerTo(query(shown)),
    shown.other && answerTo(query(shown.other)),
    usedBy(found, shown),
    marksOf(shown.from.getTime(), Math.min(shown.to.getTime(), Date.now())),
  ]);
  const points = (/** @type {import("../data/api.js").Series} */ { data }, /** @type {(at: Date) => Date} */ shift) => data.filter((row) => row[metric]).map((row) => ({ time: shift(new Date(row.timestamp)).getTime() / 1000, coverage: row.coverage, mean: row[metric].increase ?? null, ...row[metric] }));
  const lines = [{ label: words(metric), points: points(answer, (it) => it) }, ...(past && shown.other ? [{ label: versusOf(shown), isOther: true, points: points(past, shown.other.shift) }] : [])];
  const names = Object.keys(metrics).map((name) => /** @type {[string, string]} */ ([name, words(name)]));
  const title = kind === "counter" ? t("perRow", { metric: words(metric), every: t(step === 900 ? "quarter" : step === 3600 ? "oneHour" : "oneDay") }) : words(metric);
  if (!controls.contains(document.activeElement) || /** @type {HTMLElement} */ (controls).dataset.shown !== metric) {
    /** @type {HTMLElement} */ (controls).dataset.shown = metric;
    fill(controls, select(t("metric"), names, metric, (value) => choose({ metric: value })), h("button", { type: "button", class: "csv", onclick: () => saveRows(query(shown), `${id}-${metric}.csv`) }, "CSV"),
      kind !== "counter" && !isShared() && h("a", { class: "button", href: addressOf("charts", found.room ?? "", { metric, alert: metric, of: `device:${id}` }) }, t("alertMe")));
  }
  fill(
    place,
    used && h("p", { class: "summary" }, ...rich("labelled", { name: titleOf(shown), text: h("strong", null, kwh(used.total_kwh)) })),
    lineChart({ title, when: titleOf(shown), unit, lines, range: [shown.from.getTime() / 1000, shown.to.getTime() / 1000], step, lacks: isLacking(answer), isState: stateWord(metric, 1) !== "", marks: marks.filter((it) => it.device === id || (it.room && it.room === found.room)) }),
    lackNote(answer),
  );
}

/** @param {Device} device */
function newest(device) {
  const rows = Object.entries(device.metrics).map(([name, { unit, not_of_room }]) => {
    const value = device.latest?.metrics[name];
    const what = not_of_room ? h("span", null, words(name), h("span", { class: "note" }, ` ${t("notTheRoomsWhy", { why: named(`because_${not_of_room}`, not_of_room) })}`)) : words(name);
    return [what, value ? stateWord(name, value.value) || quantity(value.value, unit) : t("none"), value ? age(value.timestamp) : ""];
  });
  return rows.length ? table(t("eachMetric"), [t("metric"), t("value"), t("age")], rows) : h("p", null, t("noMetricSent"));
}

/**
 * @param {Home} known
 * @param {Device} device
 * @param {() => Promise<unknown>} changed
 */
function form(known, device, changed) {
  const text = (/** @type {string | null} */ value) => h("input", { type: "text", value: value ?? "", autocomplete: "off" });
  const name = text(device.name);
  const room = text(device.room);
  const kind = text(device.kind);
  const tags = text(device.tags.join(", "));
  let behind = device.behind ?? "";
  const inMeans = device.in_room_means === undefined ? "" : String(device.in_room_means);
  let chosenMeans = inMeans;
  // A meter that is behind this device cannot measure it.
  const meters = known.devices.filter((it) => it !== device && hasEnergy(it) && inFront(known, [device, it]).includes(it)).map((it) => /** @type {[string, string]} */ ([it.device_id, deviceName(it)]));
  room.setAttribute("list", "rooms");
  const said = h("p", { role: "status" });
  const counters = Object.entries(device.metrics).filter(([, it]) => it.kind === "counter" || it.unit === "kWh");
  const figures = counters.map(([metric, it]) => ({ metric, it, inputs: { modulus: text(String(it.modulus ?? "")), max_w: text(String(it.max_w ?? "")), tolerance: text(String(it.tolerance ?? "")) } }));
  const save = async () => {
    /** @type {Record<string, any>} */
    const edit = {};
    if (name.value !== (device.name ?? "")) edit.name = name.value || null;
    if (room.value !== (device.room ?? "")) edit.room = room.value || null;
    if (kind.value !== (device.kind ?? "")) edit.kind = kind.value || null;
    if (tags.value !== device.tags.join(", ")) edit.tags = tags.value.split(",").map((it) => it.trim()).filter(Boolean);
    if (behind !== (device.behind ?? "")) edit.behind = behind || null;
    if (chosenMeans !== inMeans) edit.in_room_means = chosenMeans ? chosenMeans === "true" : null;
    for (const { metric, it, inputs } of figures) {
      for (const setting of /** @type {const} */ (["modulus", "max_w", "tolerance"])) {
        const given = inputs[setting].value.trim().replace(",", ".");
        if (given === String(it[setting] ?? "")) continue;
        // What is no number goes as it is, so that the server says what it expects.
        const value = given === "" ? null : Number.isNaN(Number(given)) ? given : Number(given);
        edit.metrics = { ...edit.metrics, [metric]: { ...edit.metrics?.[metric], [setting]: value } };
      }
    }
    if (!Object.keys(edit).length) return fill(said, t("nothingChanged"));
    await guarded(() => editDevice(device.device_id, edit));
    await changed();
  };
  return h(
    "form",
    {
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        save().catch((error) => fill(said, h("span", { class: "warn" }, error.message)));
      },
    },
    h("p", { class: "note" }, t("deviceId", { id: device.device_id, time: moment(device.first_seen) })),
    h("div", { class: "controls" }, field(t("name"), name), field(t("roomId"), room), field(t("kind"), kind), field(t("tags"), tags), select(t("partOfMeans"), [["", t("asKind")], ["true", t("yes")], ["false", t("noFreezer")]], chosenMeans, (value) => { chosenMeans = value; }), hasEnergy(device) && meters.length > 0 && select(t("behindMeter"), [["", t("noMeter")], ...meters], behind, (value) => { behind = value; })),
    h("datalist", { id: "rooms" }, ...known.rooms.map((it) => h("option", { value: it.room_id }, it.name ?? ""))),
    ...figures.map(({ metric, it, inputs }) =>
      h(
        "fieldset",
        { class: "controls" },
        h("legend", null, `${words(metric)}, ${shownUnit(it.unit)}`),
        field(t("modulus"), inputs.modulus),
        field(t("maxW"), inputs.max_w),
        field(t("tolerance"), inputs.tolerance),
      ),
    ),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, t("save"))),
    said,
  );
}
