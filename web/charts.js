// The view of charts: metrics of rooms over a range, by rollups or, near enough, by readings. Edits nothing.

import { get, list, path, saveCsv } from "./api.js";
import { lineChart } from "./chart.js";
import { buttons, card, field, fill, h, select } from "./dom.js";
import { words, zone } from "./format.js";
import { again, inPlace } from "./energy.js";
import { deviceName, home, metricsOf, roomLines, roomName } from "./home.js";
import { isLacking, lackNote } from "./lack.js";

/** @typedef {import("./home.js").Home} Home */
/** @typedef {import("./chart.js").Line} Line */

const DAY = 86_400_000;
/** @type {[string, string][]} */
const RANGES = [["1", "24 h"], ["7", "7 d"], ["30", "30 d"], ["365", "1 y"]];
/** Up to this range in milliseconds a chart of one room shows its readings. */
const MAX_RAW = DAY / 4;

/**
 * The length of a row for a range: so long that a chart has some hundred of them.
 * @param {number} millis
 * @param {boolean} many
 * @returns {[string, number]} name and seconds
 */
function unitOf(millis, many) {
  if (millis <= 2 * DAY) return ["15m", 900];
  if (millis <= 8 * DAY || (!many && millis <= 45 * DAY)) return ["1h", 3600];
  return millis <= 45 * DAY ? ["6h", 21_600] : ["1d", 86_400];
}

/**
 * @param {HTMLElement} main
 * @param {string} room the room to begin with; empty for all
 */
export async function charts(main, room) {
  let chosenRoom = room;
  let chosenMetric = "";
  let days = "1";
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
    const places = metrics.map(([name]) => h("section", { class: "card", "data-metric": name }));
    if (plots.childElementCount !== places.length || [...plots.children].some((it, n) => it.getAttribute("data-metric") !== places[n].dataset.metric)) fill(plots, ...places);
    const { from, to } = range();
    await Promise.all([...plots.children].map((place, n) => inPlace(place, async () => {
      const [name, { unit }] = metrics[n];
      const { lines, step, query, answer } = await linesOf(known, chosenRoom, name, from, to);
      const zoom = (/** @type {number} */ a, /** @type {number} */ b) => {
        zoomed.push({ from: Math.round(a * 1000), to: Math.round(b * 1000) });
        showControls(known);
        showAgain();
      };
      const save = h("button", { type: "button", onclick: () => saveCsv(query.path, query.params, `${chosenRoom || "home"}-${name}.csv`) }, chosenRoom ? "CSV" : "CSV by device");
      const opened = place.querySelector("details")?.open;
      fill(place, h("h2", null, words(name)), lineChart({ title: words(name), unit, lines, range: [from / 1000, to / 1000], step, lacks: isLacking(answer), select: zoom }), lackNote(answer), save);
      const details = place.querySelector("details");
      if (opened && details) details.open = true;
    })));
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
async function linesOf(known, room, metric, from, to) {
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
  const [every, step] = unitOf(to - from, !room);
  const params = { ...ends, metric, every, tz: zone, fn: "mean,min,max", devices: room ? undefined : 1 };
  const query = { path: room ? path("rooms", room, "series") : "series", params };
  /** @type {import("./api.js").Series} */
  const answer = await get(query.path, params);
  const { data } = answer;
  if (!room) return { lines: roomLines(known, data, metric), step, query, answer };
  const points = data.filter((row) => row[metric]).map((row) => ({ time: seconds(row), coverage: row.coverage, ...row[metric] }));
  return { lines: [{ label: roomName(known, room), points }], step, query, answer };
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
