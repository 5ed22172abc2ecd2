// The view of charts: metrics of rooms over a range, by rollups or, near enough, by readings. Edits nothing.

import { get, list, path, saveCsv } from "./api.js";
import { lineChart } from "./chart.js";
import { buttons, card, field, fill, h, select } from "./dom.js";
import { words, zone } from "./format.js";
import { again, inPlace } from "./energy.js";
import { deviceName, home, linesOf, metricsOf, roomName, rowsBy } from "./home.js";
import { isLacking, lackNote } from "./lack.js";

/** @typedef {import("./home.js").Home} Home */
/** @typedef {import("./chart.js").Line} Line */

const DAY = 86_400_000;
/** @type {[string, string][]} */
const RANGES = [["1", "24 h"], ["7", "7 d"], ["30", "30 d"], ["365", "1 y"]];
/** Up to this range in milliseconds a chart of one room shows its readings. */
const MAX_RAW = DAY / 4;

/** @type {[string, number][]} the lengths of rows, with their seconds */
const UNITS = [["15m", 900], ["30m", 1800], ["1h", 3600], ["6h", 21_600], ["1d", 86_400], ["1w", 604_800], ["1mo", 2_678_400]];
/** The most rows that one line has, and that all lines of a chart have together: of those some 50 KB are sent. */
const MAX_ROWS = [1_100, 3_300];

/**
 * The length of a row for a range: so short that a chart is fine, and so long that it is not sent for minutes.
 * @param {number} millis
 * @param {number} lines
 * @returns {[string, number]} name and seconds
 */
function unitOf(millis, lines) {
  const rows = (/** @type {number} */ seconds) => millis / 1000 / seconds;
  const least = millis <= 2 * DAY ? 900 : 3600;
  return UNITS.find(([, seconds]) => seconds >= least && rows(seconds) <= MAX_ROWS[0] && rows(seconds) * lines <= MAX_ROWS[1]) ?? UNITS[UNITS.length - 1];
}

/**
 * @param {HTMLElement} main
 * @param {string} room the room to begin with; empty for all
 */
export async function charts(main, room) {
  let chosenRoom = room;
  let chosenMetric = "";
  let days = "1";
  let runs = 0;
  /** @type {{from: number, to: number}[]} the ranges that were zoomed into */
  const zoomed = [];
  const controls = h("div", { class: "controls" });
  const plots = h("div");
  fill(main, h("h1", null, "Charts"), h("section", { class: "card" }, controls), plots);
  const range = () => zoomed.at(-1) ?? { from: Date.now() - Number(days) * DAY, to: Date.now() };
  const showAgain = () => again(plots, show);

  /** @param {Home} known */
  function showControls(known) {
    const rooms = known.rooms.filter((it) => known.devices.some((device) => device.room === it.room_id));
    const metrics = metricsOf(devicesOf(known));
    const input = (/** @type {"from" | "to"} */ end) => h("input", { type: "datetime-local", value: local(range()[end]) });
    const [from, to] = [input("from"), input("to")];
    const apply = () => {
      const asked = { from: new Date(from.value).getTime(), to: new Date(to.value).getTime() };
      if (asked.from < asked.to) zoomed.push(asked);
      showControls(known);
      return showAgain();
    };
    fill(
      controls,
      select("Room", [["", "All rooms"], ...rooms.map((it) => /** @type {[string, string]} */ ([it.room_id, it.name || it.room_id]))], chosenRoom, (value) => {
        chosenRoom = value;
        showAgain();
      }),
      select("Metric", [["", "All metrics"], ...[...metrics.keys()].map((it) => /** @type {[string, string]} */ ([it, words(it)]))], chosenMetric, (value) => {
        chosenMetric = value;
        showAgain();
      }),
      buttons("Range", RANGES, zoomed.length ? "" : days, (value) => {
        days = value;
        zoomed.length = 0;
        showControls(known);
        showAgain();
      }),
      h("details", null, h("summary", null, "Other range"), field("From", from), field("To", to), h("button", { type: "button", onclick: apply }, "Show")),
      zoomed.length > 0 && h("button", { type: "button", id: "zoom-out", onclick: () => { zoomed.pop(); showControls(known); showAgain(); } }, "Zoom out"),
    );
  }

  /** @param {Home} known */
  const devicesOf = (known) => known.devices.filter((it) => !chosenRoom || it.room === chosenRoom);

  async function show() {
    const known = await home();
    const metrics = [...metricsOf(devicesOf(known))].filter(([name, it]) => (chosenMetric ? name === chosenMetric : it.kind !== "counter"));
    if (!controls.contains(document.activeElement)) showControls(known);
    const places = metrics.map(([name]) => h("section", { class: "card", "data-metric": name }, h("h2", null, words(name)), h("p", { class: "note" }, "Not asked yet.")));
    if (plots.childElementCount !== places.length || [...plots.children].some((it, n) => it.getAttribute("data-metric") !== places[n].dataset.metric)) fill(plots, ...places);
    const { from, to } = range();
    // One after the other: a small server answers the first soonest by itself.
    runs += 1;
    const run = runs;
    for (const [n, place] of metrics.length ? [...plots.children].entries() : []) await inPlace(place, async () => {
      const [name, { unit }] = metrics[n];
      const { lines, step, query, answer } = await drawn(known, chosenRoom, name, from, to);
      // Somebody has chosen something else meanwhile.
      if (run !== runs) return;
      const zoom = (/** @type {number} */ a, /** @type {number} */ b) => {
        zoomed.push({ from: Math.round(a * 1000), to: Math.round(b * 1000) });
        showControls(known);
        showAgain();
      };
      const save = h("button", { type: "button", onclick: () => saveCsv(query.path, query.params, `${chosenRoom || "home"}-${name}.csv`) }, "CSV");
      const opened = place.querySelector("details")?.open;
      fill(place, h("h2", null, words(name)), lineChart({ title: words(name), unit, lines, range: [from / 1000, to / 1000], step, lacks: isLacking(answer), select: zoom }), lackNote(answer), hourlyNote(known, chosenRoom, name, from), save);
      const details = place.querySelector("details");
      if (opened && details) details.open = true;
    });
    if (!metrics.length) fill(plots, card("No metrics", h("p", null, "The devices here have sent no such metric.")));
  }

  return show;
}

/**
 * One request: the lines of a metric of a room, or of every room.
 * @param {Home} known
 * @param {string} room
 * @param {string} metric
 * @param {number} from milliseconds
 * @param {number} to
 */
async function drawn(known, room, metric, from, to) {
  const ends = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  if (room && to - from <= MAX_RAW) {
    const query = { path: path("rooms", room, "readings"), params: { ...ends, metrics: metric, limit: 10_000 } };
    const rows = await list(query.path, query.params);
    const lines = known.devices.flatMap((device) => {
      const points = rows.filter((row) => row.device_id === device.device_id).map((row) => ({ time: seconds(row), mean: row[metric] ?? null }));
      return points.length ? [{ label: deviceName(device), points }] : [];
    });
    return { lines, step: undefined, query, answer: {} };
  }
  const here = known.devices.filter((it) => it.metrics[metric] && (!room || it.room === room));
  const by = rowsBy(here, metric);
  const isOne = room && by.rooms;
  const [every, step] = unitOf(to - from, isOne ? 1 : by.rooms ? known.rooms.length : here.length);
  const params = { ...ends, metric, every, tz: zone, fn: "mean,min,max", ...(isOne ? {} : by) };
  const query = { path: room ? path("rooms", room, "series") : "series", params };
  /** @type {import("./api.js").Series} */
  const answer = await get(query.path, params);
  const { data } = answer;
  if (!isOne) return { lines: linesOf(known, data, metric), step, query, answer };
  const points = data.filter((row) => row[metric]).map((row) => ({ time: seconds(row), coverage: row.coverage, ...row[metric] }));
  return { lines: [{ label: roomName(known, room), points }], step, query, answer };
}

/**
 * Says until when devices have hourly means only, if the chart begins before.
 * @param {Home} known
 * @param {string} room
 * @param {string} metric
 * @param {number} from milliseconds
 */
function hourlyNote(known, room, metric, from) {
  const here = known.devices.filter((it) => !room || it.room === room);
  const ends = here.map((it) => it.metrics[metric]?.hourly_until).filter((it) => it !== undefined && new Date(it).getTime() > from);
  const last = ends.sort().at(-1);
  return last && h("p", { class: "note hourly" }, `Hourly means only until ${new Date(last).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" })}, as they were imported.`);
}

/** @param {{timestamp: string}} row */
function seconds({ timestamp }) {
  return new Date(timestamp).getTime() / 1000;
}

/** A time as an input of the browser writes it. @param {number} millis */
function local(millis) {
  const date = new Date(millis);
  return new Date(millis - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
