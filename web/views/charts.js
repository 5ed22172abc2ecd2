// The view of charts: metrics of rooms over a range, by rollups or, near enough, by readings. Edits nothing itself.

import { choose, chosen } from "../data/address.js";
import { marksOf } from "../data/annotations.js";
import { beginning, deviceName, home, metricsOf } from "../data/home.js";
import { range } from "../data/range.js";
import { previewRule } from "../data/rules.js";
import { AHEAD, isPrice, linesOfRange, saveRows } from "../data/series.js";
import { isShared } from "../data/shared.js";
import { lineChart } from "../parts/chart.js";
import { dateBar, titleOf, versusOf } from "../parts/datebar.js";
import { card, field, fill, h, select } from "../parts/dom.js";
import { clock, fullDay, isolated, moment, stateWord, words } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { lackNote } from "../parts/lack.js";
import { notes } from "../parts/notes.js";
import { inPlace } from "../parts/place.js";
import { ruleForm } from "../parts/ruleform.js";
import { listed, t } from "../words/words.js";

/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../parts/chart.js").Line} Line */
/** @typedef {{from: number, to: number, title: string}} Ends in milliseconds */

const DAY = 86_400_000;
/** @type {import("../data/range.js").Span[]} */
const SPANS = ["24h", "day", "week", "month", "year"];

/** The most times at which a contact was open that are named: the newest. */
const MAX_STATES = 8;
/** The longest range in which the server looks for them. */
const MAX_STATES_RANGE = 31 * DAY;

/** The range that was zoomed into. @returns {Ends | null} */
function zoomed() {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(chosen("zoom")) ?? [];
  if (!from || Number(from) >= Number(to)) return null;
  return { from: Number(from) * 1000, to: Number(to) * 1000, title: t("fromTo", { from: moment(Number(from) * 1000), to: moment(Number(to) * 1000) }) };
}

/** @param {number} from @param {number} to in milliseconds */
function zoomTo(from, to) {
  choose({ zoom: `${Math.floor(from / 1000)}-${Math.ceil(to / 1000)}` });
}

/**
 * @param {HTMLElement} main
 * @param {string} room the room that is shown; empty for all
 */
export async function charts(main, room) {
  let runs = 0;
  const bar = h("div");
  const plots = h("div");
  const noted = h("div");
  fill(main, h("h1", { class: "hidden" }, t("charts")), bar, plots, h("section", { class: "card" }, noted));
  /** @param {Home} known */
  const devicesOf = (known) => known.devices.filter((it) => !room || it.room === room);

  /** Of which rooms and metrics. @param {Home} known */
  function choicesOf(known) {
    const rooms = known.rooms.filter((it) => known.devices.some((device) => device.room === it.room_id));
    const metrics = metricsOf(devicesOf(known));
    return [
      zoomed() && h("button", { type: "button", id: "zoom-out", onclick: () => choose({ zoom: "" }) }, t("zoomOut")),
      select(t("room"), [["", t("allRooms")], ...rooms.map((it) => /** @type {[string, string]} */ ([it.room_id, it.name || it.room_id]))], room, (value) => choose({}, value)),
      select(t("metric"), [["", t("allMetrics")], ...[...metrics.keys()].map((it) => /** @type {[string, string]} */ ([it, words(it)]))], chosen("metric"), (metric) => choose({ metric })),
    ];
  }

  /** Any range, by its ends. @param {Ends} ends */
  function otherRange(ends) {
    const input = (/** @type {"from" | "to"} */ end) => h("input", { type: "datetime-local", value: local(ends[end]) });
    const [from, to] = [input("from"), input("to")];
    const apply = () => {
      const [a, b] = [new Date(from.value).getTime(), new Date(to.value).getTime()];
      if (a < b) zoomTo(a, b);
    };
    return h("fieldset", { class: "controls" }, h("legend", null, t("otherRange")), field(t("from"), from), field(t("to"), to), h("button", { type: "button", onclick: apply }, t("show")));
  }

  async function show() {
    const known = await home();
    const shown = range("24h", SPANS);
    const ends = zoomed() ?? { from: shown.from.getTime(), to: shown.to.getTime(), title: titleOf(shown) };
    dateBar(bar, shown, { spans: SPANS, usual: "24h", begins: beginning(known), title: ends.title, choices: choicesOf(known), menu: [otherRange(ends)] });
    const metrics = [...metricsOf(devicesOf(known))].filter(([name, it]) => (chosen("metric") ? name === chosen("metric") : it.kind !== "counter"));
    const places = metrics.map(([name]) => h("section", { class: "card", "data-metric": name }, h("h2", null, words(name)), h("p", { class: "note" }, t("notAskedYet"))));
    if (plots.childElementCount !== places.length || [...plots.children].some((it, n) => it.getAttribute("data-metric") !== places[n].dataset.metric)) fill(plots, ...places);
    // One after the other: a small server answers the first soonest by itself.
    runs += 1;
    const run = runs;
    const marks = await marksOf(ends.from, ends.to);
    for (const [n, place] of metrics.length ? [...plots.children].entries() : []) await inPlace(place, async () => {
      const [name, { unit }] = metrics[n];
      const isLast = shown.span === "24h" && !zoomed();
      // Prices are known ahead: they are asked until then, by quarters of an hour as the market has them.
      const isAhead = isLast && isPrice(name);
      const { lines, step, query, answer } = await linesOfRange(known, room, name, ends.from, ends.to + (isAhead ? AHEAD : 0), isAhead ? 900 : undefined, isLast && !isAhead);
      const until = isAhead ? Math.max(ends.to / 1000, ...lines.flatMap(({ points }) => points.map(({ time }) => time + 900))) : ends.to / 1000;
      const other = zoomed() ? null : shown.other;
      const past = other && (await linesOfRange(known, room, name, other.from.getTime(), other.to.getTime(), step));
      const states = await statesNote(known, room, name, ends);
      // Somebody has chosen something else meanwhile.
      if (run !== runs) return;
      // A rule that somebody is writing is left alone.
      if (place.querySelector("form") && place.contains(document.activeElement)) return;
      const pale = (past?.lines ?? []).map((line) => ({ ...line, label: `${line.label}, ${versusOf(shown)}`, isOther: true, points: line.points.map((it) => ({ ...it, time: (other?.shift(new Date(it.time * 1000)).getTime() ?? 0) / 1000 })) }));
      const about = { title: words(name), when: ends.title, unit, lines: [...lines, ...pale], range: /** @type {[number, number]} */ ([ends.from / 1000, until]), step, lacks: isLacking(answer), isState: stateWord(name, 1) !== "", marks: marks.filter((it) => !it.room || !room || it.room === room), select: (/** @type {number} */ a, /** @type {number} */ b) => zoomTo(a * 1000, b * 1000) };
      const isRuled = chosen("alert") === name;
      const chart = h("div", null, lineChart(about));
      fill(
        place,
        h("h2", null, words(name)),
        chart,
        lackNote(answer),
        states,
        hourlyNote(known, room, name, ends.from),
        h("div", { class: "buttons" },
          h("button", { type: "button", class: "csv", onclick: () => saveRows(query, `${room || "home"}-${name}.csv`) }, "CSV"),
          h("button", { type: "button", id: `alert-${name}`, "aria-expanded": String(isRuled), onclick: () => choose({ alert: isRuled ? "" : name }) }, t("alertMe")),
        ),
        isRuled && ruleForm({ known, room, metric: name, unit, redraw: (limit, episodes) => fill(chart, lineChart({ ...about, limit, episodes })) }),
      );
    });
    if (run === runs && !noted.contains(document.activeElement)) fill(noted, notes(known, room, marks, ends));
    if (!metrics.length) fill(plots, card(t("noMetrics"), h("p", null, t("noMetricsWhy"))));
  }

  return show;
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
  return last && h("p", { class: "note hourly" }, t("hourlyOnly", { day: fullDay(last) }));
}

/**
 * The times at which contacts in a room were open, or other states of 0 and 1 held: to the second, unlike rows.
 * @param {Home} known
 * @param {string} room
 * @param {string} metric
 * @param {Ends} ends
 */
async function statesNote(known, room, metric, { from, to }) {
  // A contact is open at 0; any other state holds at 1.
  const sought = metric === "contact" ? 0 : 1;
  const state = stateWord(metric, sought);
  const until = Math.min(to, Date.now());
  if (!state || !room || isShared() || from >= until || until - from > MAX_STATES_RANGE) return null;
  const rule = { room, metric, [sought ? "above" : "below"]: 0.5 };
  const { subjects } = await previewRule(rule, { from: new Date(from).toISOString(), to: new Date(until).toISOString() });
  return h("ul", null, ...subjects.map(({ subject, episodes }) => {
    const device = known.devices.find((it) => subject === `device:${it.device_id}`);
    // The rule is about each device of the room.
    if (!device?.metrics[metric]) return "";
    const told = episodes.slice(-MAX_STATES).map(({ since, ended }) => t("fromTo", { from: moment(since), to: !ended ? t("nowWord") : new Date(ended).getTime() - new Date(since).getTime() < DAY ? clock(ended) : moment(ended) }));
    const what = { name: isolated(deviceName(device)), state, n: episodes.length };
    return h("li", null, told.length ? t("stateTimes", { ...what, times: listed(told) }) : t("stateNever", what));
  }));
}

/** A time as an input of the browser writes it. @param {number} millis */
function local(millis) {
  const date = new Date(millis);
  return new Date(millis - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
