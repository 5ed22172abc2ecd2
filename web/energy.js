// The view of energy: today and this month, bars, the highest half hour, and what was odd. Edits verdicts only.

import { get, patch, path } from "./api.js";
import { barChart } from "./chart.js";
import { buttons, card, fill, h, states } from "./dom.js";
import { duration, kwh, midnight, moment, monthStart, number, quantity, words, zone } from "./format.js";
import { deviceName, forget, home, roomName } from "./home.js";
import { absent, isLacking, lackNote } from "./lack.js";
import { showRoles } from "./roles.js";
import { guarded } from "./token.js";

/** @typedef {import("./api.js").Energy} Energy */
/** @typedef {import("./api.js").EventRow} EventRow */

/** @type {Record<string, {title: string, every: string, from: () => Date}>} */
const BARS = {
  hours: { title: "kWh by hour, yesterday and today", every: "1h", from: () => midnight(-1) },
  days: { title: "kWh by day, last 31 days", every: "1d", from: () => midnight(-30) },
  months: { title: "kWh by month, last 12 months", every: "1mo", from: () => monthStart(-11) },
};

/** How long the answer about the month is used, in milliseconds. */
const MONTH_AGE = 600_000;
/** The most devices behind meters whose events are asked. */
const MAX_LEFT_OUT = 5;

/** @type {Record<string, string>} */
const MEANING = {
  reset: "The meter began at 0 again; what it counted until then is kept.",
  dip: "The meter fell a little; the fall counts as negative.",
  wrapped: "The meter reached its highest figure and went on from 0.",
  suspect: "The meter jumped by more than is likely. It counts nothing until you judge it.",
  exchanged: "A new meter took over.",
  accepted: "A person accepted this step.",
  discarded: "A person discarded this step.",
};

/** @param {HTMLElement} main */
export async function energy(main) {
  let bars = "hours";
  let asked = 0;
  /** @type {Promise<Energy>} */
  let month;
  const askMonth = () => {
    month = ofMonth();
    asked = Date.now();
    // What is still being summed up is asked again soon.
    month.then((it) => { if (isLacking(it)) asked = 0; }, () => (asked = 0));
  };
  const figures = h("div", { class: "tiles" });
  const chart = h("div");
  const choice = h("div");
  const peak = h("div");
  const notable = h("div");
  const state = states(main);
  const roles = h("div");

  const showBars = () => inPlace(chart, async () => {
    const { title, every, from } = BARS[bars];
    /** @type {Energy} */
    const answer = await get("energy", { from: from().toISOString(), to: "now", every, tz: zone });
    const { data } = answer;
    const rows = data.map((row) => ({
      time: new Date(row.timestamp).getTime() / 1000,
      value: row.kwh,
      below: row.kwh_sold,
      note: [...row.flags, row.estimated && "estimated", row.partial && "not over"].filter(Boolean).join(", "),
    }));
    const marked = rows.filter(({ note }) => /[a-z]/.test(note.replace("not over", ""))).length;
    fill(chart, barChart({ title, unit: "kWh", bars: rows, lacks: isLacking(answer) }), lackNote(answer), marked > 0 && h("p", { class: "note" }, `${marked === 1 ? "1 bar is" : `${marked} bars are`} flagged; the table says why.`));
  });
  const choose = (/** @type {string} */ value) => {
    bars = value;
    fill(choice, buttons("Bars", [["hours", "Hours"], ["days", "Days"], ["months", "Months"]], bars, choose));
    return again(chart, showBars);
  };
  fill(choice, buttons("Bars", [["hours", "Hours"], ["days", "Days"], ["months", "Months"]], bars, choose));

  const showOdd = async () => {
    const { events = [], events_has_more, rollups_lack } = await month;
    await showEvents(notable, events, () => { askMonth(); return showOdd(); });
    if (rollups_lack) notable.append(lackNote({ rollups_lack }) ?? "");
    if (events_has_more) notable.append(h("p", { class: "note" }, "There are more; a device's page has its own."));
  };

  const showAll = async () => {
    const { devices } = await home();
    const units = devices.flatMap((it) => Object.values(it.metrics).map(({ unit }) => unit ?? ""));
    if (!units.some((unit) => /^k?Wh?$/.test(unit))) {
      return state("none", () => [h("h1", null, "Energy"), card("No meter", h("p", null, "No device measures power in W or energy in kWh. ", h("a", { href: "#connect" }, "Connect one"), "."))]);
    }
    state("meters", () => [h("h1", null, "Energy"), figures, roles, card("Use", choice, chart), h("div", { class: "two" }, card("Highest half hour", peak), card("What was odd this month", notable))]);
    await figuresOf(figures);
    // A month changes slowly, and its half hours are many.
    if (Date.now() - asked > MONTH_AGE) askMonth();
    const told = () => { askMonth(); return showAll(); };
    await Promise.all([showBars(), inPlace(roles, async () => showRoles(roles, await month, told)), inPlace(peak, async () => showPeak(peak, await month)), inPlace(notable, showOdd)]);
  };
  return showAll;
}

/**
 * Today and this month, each against the time before it up to the same moment.
 * @param {Element} figures
 */
async function figuresOf(figures) {
  const now = new Date();
  const dayAgo = new Date(midnight(-1).getTime() + (now.getTime() - midnight(0).getTime()));
  const monthAgo = new Date(Math.min(monthStart(-1).getTime() + (now.getTime() - monthStart(0).getTime()), monthStart(0).getTime()));
  const range = (/** @type {Date} */ from, /** @type {Date} */ to) => get("energy", { from: from.toISOString(), to: to.toISOString(), tz: zone });
  /** @type {Energy[]} */
  const [today, before, month, monthBefore, yesterday] = await Promise.all([
    range(midnight(0), now),
    range(midnight(-1), dayAgo),
    range(monthStart(0), now),
    range(monthStart(-1), monthAgo),
    range(midnight(-1), midnight(0)),
  ]);
  const figure = (/** @type {string} */ title, /** @type {Energy} */ it, /** @type {Energy | null} */ other, /** @type {string} */ than) =>
    h("section", { class: "card tile" }, h("h2", null, title), h("p", { class: "big" }, it.total_kwh === null ? absent(isLacking(it), "none") : kwh(it.total_kwh)), it.total_kwh_sold !== undefined && h("p", null, `sold ${kwh(it.total_kwh_sold)}`), lackNote(it), other && !isLacking(it, other) && h("p", { class: "note" }, compared(it.total_kwh, other.total_kwh, than)));
  fill(
    figures,
    figure("Today so far", today, before, "yesterday up to this time"),
    figure("Yesterday", yesterday, null, ""),
    figure("This month so far", month, monthBefore, "last month up to this time"),
  );
}

/**
 * @param {number | null} value
 * @param {number | null} other
 * @param {string} than
 */
function compared(value, other, than) {
  if (value === null || other === null) return `${than}: ${kwh(other)}`;
  const change = other > 0 ? Math.round(((value - other) / other) * 100) : 0;
  const sign = change > 0 ? `${number(change, 0)} % more than ` : change < 0 ? `${number(-change, 0)} % less than ` : "the same as ";
  return `${sign}${than}: ${kwh(other)}`;
}

/**
 * The half hours of this month, and what was odd in it, also of devices behind a meter, which the sum leaves out.
 * @returns {Promise<Energy>}
 */
async function ofMonth() {
  const from = monthStart(0).toISOString();
  /** @type {Energy} */
  const month = await get("energy", { from, to: "now", every: "30m", events: 1, tz: zone });
  const { events = [], events_has_more, left_out = [] } = month;
  const hidden = left_out.filter(({ reason }) => reason === "behind");
  const behind = await Promise.all(hidden.slice(0, MAX_LEFT_OUT).map((it) => get(path("devices", it.device_id, "events"), { from })));
  return {
    ...month,
    events: [...events, ...behind.flatMap((it) => it.data)].sort((a, b) => a.timestamp.localeCompare(b.timestamp)),
    events_has_more: events_has_more || hidden.length > MAX_LEFT_OUT || behind.some((it) => it.has_more),
  };
}

/**
 * @param {Element} peak
 * @param {Energy} month
 */
function showPeak(peak, month) {
  const { data } = month;
  const best = data.reduce((best, row) => ((row.kwh ?? -1) > (best?.kwh ?? -1) ? row : best), data[0]);
  if (!best || best.kwh === null) return fill(peak, h("p", null, absent(isLacking(month), "No energy this month.")), lackNote(month));
  fill(peak, h("p", { class: "big" }, `${number(best.kwh * 2000, 0)} W`), h("p", null, `mean of the half hour from ${moment(best.timestamp)}, ${kwh(best.kwh)}, this month`), best.estimated && h("p", { class: "warn" }, "Estimated: readings are further apart than a quarter of an hour."), lackNote(month));
}

/**
 * Events of counters, with buttons that judge those that are suspect.
 * @param {Element} place
 * @param {EventRow[]} events
 * @param {() => Promise<unknown>} judged
 */
export async function showEvents(place, events, judged) {
  const known = await home(60_000);
  if (!events.length) return fill(place, h("p", null, "Nothing: no reset, no dip, no suspect step."));
  const entry = (/** @type {EventRow} */ event) => {
    const device = known.devices.find((it) => it.device_id === event.device_id);
    const unit = device?.metrics[event.metric]?.unit;
    // So many digits that the difference is seen.
    const digits = event.from && event.to ? Math.min(6, Math.max(2, -Math.floor(Math.log10(Math.abs(event.to.value - event.from.value))))) : 0;
    const step = event.from && event.to ? `from ${quantity(event.from.value, unit, digits)} to ${quantity(event.to.value, unit, digits)} in ${duration(new Date(event.to.timestamp).getTime() - new Date(event.from.timestamp).getTime())}` : "";
    const problem = h("p", { class: "warn", role: "alert" });
    const judge = (/** @type {string} */ verdict) => h("button", { type: "button", onclick: () => inPlace(problem, async () => { await judgeStep(event, verdict); await judged(); }) }, verdict === "accept" ? "It is right" : "Ignore it");
    return h(
      "li",
      null,
      h("strong", null, event.events.join(", ")),
      ` ${moment(event.timestamp)}, ${device ? `${deviceName(device)} in ${roomName(known, device.room)}` : event.device_id}, ${words(event.metric)} ${step}. `,
      event.events.map((it) => MEANING[it] ?? "").join(" "),
      event.events.includes("suspect") && h("div", { class: "buttons" }, judge("accept"), judge("discard")),
      problem,
    );
  };
  fill(place, h("ul", null, ...events.map(entry)));
}

/**
 * Adds a verdict to those of the device, which the API takes as a whole.
 * @param {EventRow} event
 * @param {string} verdict
 */
async function judgeStep(event, verdict) {
  const at = event.to?.timestamp ?? event.timestamp;
  /** @type {import("./api.js").Device} */
  const device = await get(path("devices", event.device_id));
  const others = (device.metrics[event.metric]?.verdicts ?? []).filter((it) => new Date(it.timestamp).getTime() !== new Date(at).getTime());
  await guarded(() => patch(path("devices", event.device_id), { metrics: { [event.metric]: { verdicts: [...others, { timestamp: at, verdict }] } } }));
  forget();
}

/**
 * Shows what a person chose; until it is there, what was there before is dimmed.
 * @param {Element} place
 * @param {() => Promise<unknown>} show
 */
export function again(place, show) {
  for (const old of place.querySelectorAll("figure, .heat")) old.setAttribute("aria-busy", "true");
  return show().catch((error) => window.dispatchEvent(new CustomEvent("failed", { detail: error })));
}

/**
 * Does something whose failure is shown where its result would be. What the whole page has to know is thrown on.
 * @param {Element} place
 * @param {() => Promise<unknown>} what
 */
export async function inPlace(place, what) {
  place.setAttribute("aria-busy", "true");
  try {
    await what();
  } catch (error) {
    if (/** @type {any} */ (error).isTransient || /** @type {any} */ (error).needsToken) throw error;
    fill(place, h("p", { class: "warn" }, error instanceof Error ? error.message : String(error)));
  } finally {
    place.removeAttribute("aria-busy");
  }
}
