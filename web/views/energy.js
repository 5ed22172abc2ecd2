// The view of energy: how much, what it cost, where it went, bars, the highest half hour, and what was odd. Edits
// verdicts only.

import { addressOf, choose, chosen } from "../data/address.js";
import { get, path } from "../data/api.js";
import { BARS, barsOf, byRoom, ends, energyOf, partsOf, usualOf } from "../data/consumption.js";
import { costOf, costOfDays, forgetTariffs, shownSum, sumOf, tariffs } from "../data/costs.js";
import { beginning, hasEnergy, home, measuredUntil } from "../data/home.js";
import { memory } from "../data/memory.js";
import { dayOf, range } from "../data/range.js";
import { isShared } from "../data/shared.js";
import { barChart } from "../parts/chart.js";
import { dateBar, titleOf, versusOf } from "../parts/datebar.js";
import { buttons, card, fill, h, states } from "../parts/dom.js";
import { clock, day, duration, isolated, kwh, midnight, moment, monthStart, percent, watts, written, zone } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { absent, lackNote } from "../parts/lack.js";
import { showEvents } from "../parts/odd.js";
import { inPlace } from "../parts/place.js";
import { showRoles } from "../parts/roles.js";
import { named, rich, t } from "../words/words.js";

/** @typedef {import("../data/api.js").Energy} Energy */
/** @typedef {import("../data/consumption.js").Part} Part */
/** @typedef {import("../data/costs.js").Cost} Cost */
/** @typedef {import("../data/costs.js").Sum} Sum */
/** @typedef {import("../data/range.js").Range} Range */
/** @typedef {import("../data/home.js").Home} Home */

/** @type {import("../data/range.js").Span[]} */
const SPANS = ["day", "week", "month", "year"];
/** How long the answer about a range that is not a day is used, in milliseconds: it changes slowly. */
const LONG_AGE = 300_000;
/** After so many milliseconds without a reading it is said until when there are some. */
const LATE = 900_000;
/** The colours of parts. */
const COLOURS = 9;
/** The length of a bar in seconds. @type {Record<string, number>} */
const SECONDS = { "1h": 3600, "1d": 86_400, "1mo": 2_592_000 };

/** @param {HTMLElement} main */
export async function energy(main) {
  const bar = h("div");
  const figures = h("div", { class: "tiles" });
  const total = h("div");
  const went = h("div");
  const chart = h("div");
  const peak = h("div");
  const peakTitle = h("h2");
  const notable = h("div");
  const roles = h("div");
  const bills = h("div");
  const state = states(main);
  const recent = memory();

  const showAll = async () => {
    const known = await home();
    if (!known.devices.some(hasEnergy)) {
      return state("none", () => [h("h1", null, t("energy")), card(t("noMeter"), h("p", null, ...rich("noMeterWhy", { connect: h("a", { href: "#connect" }, t("connectOne")) })))]);
    }
    state("meters", () => [h("h1", null, t("energy")), bar, figures, roles, total, card(t("whereItWent"), went), card(t("use"), chart), !isShared() && card(t("whatItCost"), bills), h("div", { class: "two" }, h("section", { class: "card" }, peakTitle, peak), card(t("whatWasOdd"), notable))]);
    const shown = range("day", SPANS);
    dateBar(bar, shown, { spans: SPANS, usual: "day", begins: beginning(known) });
    fill(peakTitle, t(shown.span === "day" ? "highestHalfHour" : "highestTitle"));
    const key = `${shown.span} ${shown.from.getTime()}`;
    const age = shown.span === "day" ? 0 : LONG_AGE;
    const ofRange = () => recent(`energy ${key}`, age, () => energyOf(shown));
    const forget = () => { recent.forget(); forgetTariffs(); };
    const judged = () => { forget(); return showAll(); };
    const cost = () => recent(`cost ${key}`, LONG_AGE, () => costOf(shown));
    // Where no bill can be made the card says why; the energy is shown all the same.
    const money = () => cost().catch(() => null);
    const parts = () => recent(`parts ${key}`, age, () => partsOf(known, shown));
    await Promise.all([
      inPlace(figures, () => figuresOf(figures, recent, measuredUntil(known))),
      inPlace(total, async () => showTotal(total, shown, await ofRange(), await otherOf(shown, recent), measuredUntil(known), sumOf(await money()))),
      inPlace(chart, () => showBars(chart, known, shown, ofRange, parts, recent, money)),
      !isShared() && inPlace(bills, async () => (await import("./cost.js")).showCost(bills, { known, shown, recent, all: await tariffs(), cost: await cost(), forget })),
      inPlace(went, async () => {
        const found = await parts();
        const usual = await recent(`usual ${key}`, 3_600_000, () => usualOf(shown, found.parts.length).catch(() => () => null));
        showParts(went, known, shown, found, usual);
      }),
      inPlace(roles, async () => showRoles(roles, await ofRange(), judged)),
      inPlace(peak, async () => showPeak(peak, shown, await ofRange())),
      inPlace(notable, async () => {
        const answer = await ofRange();
        await showEvents(notable, answer.events ?? [], judged);
        notable.append(lackNote(answer) ?? "", answer.events_has_more ? h("p", { class: "note" }, t("moreEvents")) : "");
      }),
    ]);
  };
  return showAll;
}

/** @typedef {ReturnType<typeof memory>} Memory */

/**
 * The rows of the range that is compared; null if none is.
 * @param {Range} shown
 * @param {Memory} recent
 * @returns {Promise<Energy | null>}
 */
async function otherOf({ span, other, versus, from }, recent) {
  if (!other) return null;
  return recent(`other ${span} ${versus} ${from.getTime()}`, 3_600_000, () => get("energy", { ...ends(other.from, other.to), every: BARS[span].asked }));
}

/**
 * Today, yesterday with its peak, and this month against the same days of the last one.
 * @param {Element} figures
 * @param {Memory} recent
 * @param {Date} until what today is known until
 */
async function figuresOf(figures, recent, until) {
  const now = new Date();
  const dayAgo = new Date(midnight(-1).getTime() + (until.getTime() - midnight(0).getTime()));
  const than = now.getTime() - until.getTime() > LATE ? t("yesterdayUntil", { time: clock(until) }) : t("yesterdayUpToNow");
  const ask = (/** @type {Date} */ from, /** @type {Date} */ to, every = "") => get("energy", { from: from.toISOString(), to: to.toISOString(), tz: zone, ...(every && { every }) });
  /** @type {Energy[]} */
  const [today, before, yesterday, days] = await Promise.all([
    ask(midnight(0), now),
    ask(midnight(-1), dayAgo),
    recent("yesterday", LONG_AGE, () => ask(midnight(-1), midnight(0), "1h")),
    recent("two months", LONG_AGE, () => ask(monthStart(-1), now, "1d")),
  ]);
  const cost = await recent("cost of days", LONG_AGE, costOfDays).catch(() => null);
  const figure = (/** @type {string} */ title, /** @type {Record<string, string>} */ where, /** @type {number | null} */ value, /** @type {Energy} */ it, /** @type {string | null} */ text, /** @type {Sum | null} */ sum) =>
    h("section", { class: "card tile" }, h("h2", null, h("a", { href: addressOf("energy", "", { d: "", span: "", ...where }) }, title)), h("p", { class: "big" }, value === null ? absent(isLacking(it), t("none")) : kwh(value)), sum && h("p", { class: "money" }, shownSum(sum)), it.total_kwh_sold !== undefined && h("p", null, t("sold", { value: kwh(it.total_kwh_sold) })), lackNote(it), text && h("p", { class: "note" }, text), incompleteNote(sum));
  const top = best(yesterday.data);
  const month = monthsOf(days);
  fill(
    figures,
    figure(t("todaySoFar"), {}, today.total_kwh, today, isLacking(today, before) ? null : compared(today.total_kwh, before.total_kwh, than), sumOf(cost, midnight(0))),
    figure(t("yesterday"), { d: dayOf(midnight(-1)) }, yesterday.total_kwh, yesterday, top && t("peakHour", { time: clock(top.timestamp), value: kwh(top.kwh) }), sumOf(cost, midnight(-1), midnight(0))),
    figure(t("monthSoFar"), { span: "month" }, month.total, { ...days, total_kwh_sold: month.sold }, isLacking(days) ? null : month.text, sumOf(cost, monthStart(0))),
  );
}

/** The sentence to a dot behind money. @param {Sum | null} sum */
function incompleteNote(sum) {
  return sum?.isIncomplete ? h("p", { class: "note" }, t("costIncomplete")) : null;
}

/** @param {import("../data/api.js").EnergyRow[]} rows */
function best(rows) {
  return rows.reduce((/** @type {import("../data/api.js").EnergyRow | null} */ best, row) => ((row.kwh ?? 0) > (best?.kwh ?? 0) ? row : best), null);
}

/**
 * This month, and its whole days against the same days of last month, as far back as that month was measured.
 * @param {Energy} days of both months
 */
function monthsOf({ data }) {
  const start = monthStart(0).getTime();
  const own = data.filter((row) => new Date(row.timestamp).getTime() >= start);
  const sum = (/** @type {typeof data} */ rows, /** @type {"kwh" | "kwh_sold"} */ of) => (rows.some((row) => row[of] !== null && row[of] !== undefined) ? rows.reduce((sum, row) => sum + (row[of] ?? 0), 0) : null);
  const before = data.filter((row) => new Date(row.timestamp).getTime() < start);
  const first = before.findIndex((row) => row.kwh !== null);
  const total = sum(own, "kwh");
  const sold = sum(own, "kwh_sold") ?? undefined;
  if (first < 0) return { total, sold, text: t("lastMonthNone") };
  // The first day was perhaps not measured as a whole, and today is not over.
  const [from, until] = [first === 0 ? 0 : first + 1, Math.min(own.length - 1, before.length)];
  if (until <= from) return { total, sold, text: t("lastMonthFrom", { time: day(before[first].timestamp) }) };
  const [mine, other] = [sum(own.slice(from, until), "kwh"), sum(before.slice(from, until), "kwh")];
  const days = from + 1 === until ? String(until) : `${from + 1}-${until}`;
  return { total, sold, text: compared(mine, other, t("lastMonthDays", { days, own: kwh(mine) })) };
}

/**
 * @param {number | null} value
 * @param {number | null} other
 * @param {string} than
 */
function compared(value, other, than) {
  if (value === null || other === null) return t("labelled", { name: than, text: kwh(other) });
  const change = other > 0 ? Math.round(((value - other) / other) * 100) : 0;
  const values = { share: percent(Math.abs(change) / 100), than, other: kwh(other) };
  return change > 0 ? t("moreThan", values) : change < 0 ? t("lessThan", values) : t("sameAs", values);
}

/**
 * The sum of the range in a sentence.
 * @param {Element} place
 * @param {Range} shown
 * @param {Energy} answer
 * @param {Energy | null} other
 * @param {Date} until what is known until
 * @param {Sum | null} cost
 */
function showTotal(place, shown, answer, other, until, cost) {
  const sum = answer.total_kwh === null ? absent(isLacking(answer), t("none")) : kwh(answer.total_kwh);
  const fair = other && (shown.isNow ? upTo(until, shown, other) : other.total_kwh);
  const than = shown.isNow ? t("upToSameTime", { than: versusOf(shown) }) : versusOf(shown);
  fill(
    place,
    h("p", { class: "summary" }, ...rich("labelled", { name: h("strong", null, titleOf(shown)), text: h("strong", { class: "sum" }, sum) }), cost && ` · ${shownSum(cost)}`, other && !isLacking(answer, other) && ` · ${compared(answer.total_kwh, fair, than)}`),
    incompleteNote(cost),
    lackNote(answer, other),
  );
}

/**
 * What the compared range had up to the same moment; of a row that is not over then its share.
 * @param {Date} until
 * @param {Range} shown
 * @param {Energy} answer
 */
function upTo(until, { other }, answer) {
  if (!other) return null;
  const rows = answer.data.filter((row) => row.kwh !== null);
  const at = (/** @type {Date | string} */ time) => other.shift(new Date(time)).getTime();
  const shares = rows.map((row, n) => Math.min(1, (until.getTime() - at(row.timestamp)) / (at(rows[n + 1]?.timestamp ?? other.to) - at(row.timestamp))));
  return shares[0] > 0 ? rows.reduce((sum, row, n) => sum + (row.kwh ?? 0) * Math.max(0, shares[n]), 0) : null;
}

/**
 * Where it went: a bar of parts, and each in a line. A part that is touched is lit in the bars.
 * @param {Element} place
 * @param {Home} known
 * @param {Range} shown
 * @param {{parts: Part[], total: number | null, answer: Energy}} found
 * @param {(id: string) => number | null} usual
 */
function showParts(place, known, shown, { parts: all, total, answer }, usual) {
  const isByRoom = chosen("by") === "room";
  const withUsual = all.map((part) => ({ ...part, usual: part.id ? usual(part.id) : null }));
  const parts = isByRoom ? byRoom(known, withUsual) : withUsual;
  const lit = chosen("part");
  if (!parts.length) return fill(place, h("p", null, absent(isLacking(answer), t("noParts"))), lackNote(answer));
  const sum = Math.max(total ?? 0, parts.reduce((sum, { kwh }) => sum + Math.max(0, kwh), 0)) || 1;
  const key = (/** @type {Part} */ it) => it.id || "rest";
  const name = (/** @type {Part} */ it) => it.id ? it.name : t("notOnPlug");
  const touch = (/** @type {Part} */ it) => choose({ part: lit === key(it) ? "" : key(it) });
  // A device keeps its colour, whatever it used.
  const ids = [...new Set(known.devices.filter(hasEnergy).map((it) => (isByRoom ? `room ${it.room ?? ""}` : it.device_id)))];
  const colour = (/** @type {Part} */ it) => (it.id ? `part p${Math.max(0, ids.indexOf(it.id)) % COLOURS}` : "part rest");
  const strip = h("div", { class: "strip", "aria-hidden": "true" }, ...parts.map((it) => h("span", { class: colour(it), onclick: () => touch(it) })));
  [...strip.children].forEach((it, n) => { /** @type {HTMLElement} */ (it).style.flexGrow = String(Math.max(0, parts[n].kwh) / sum); });
  const row = (/** @type {Part} */ it) => h("li", null,
    h("button", { type: "button", class: "line", id: `part-${key(it)}`, "aria-pressed": String(lit === key(it)), onclick: () => touch(it) },
      h("span", { class: `dot ${colour(it)}` }),
      h("span", { class: "what" }, isolated(name(it))),
      h("span", { class: "much" }, kwh(it.kwh)),
      h("span", { class: "share" }, percent(it.kwh / sum)),
      h("span", { class: "note" }, shown.isNow || it.usual === null ? "" : difference(it.kwh, it.usual, shown)),
    ));
  const only = all.length === 1 && all[0].id && !isByRoom;
  fill(
    place,
    buttons(t("by"), [["", t("byDevice")], ["room", t("byRoom")]], isByRoom ? "room" : "", (by) => choose({ by, part: "" })),
    strip,
    h("ul", { class: "parts" }, ...parts.map(row)),
    only && h("p", { class: "note" }, t("onePart")),
    lackNote(answer),
  );
}

/**
 * @param {number} value
 * @param {number} usual
 * @param {Range} shown
 */
function difference(value, usual, { span, from }) {
  const such = span === "day" ? t("usualDay", { day: written(from, { weekday: "long" }) }) : t(span === "week" ? "usualWeek" : span === "month" ? "usualMonth" : "usualYear");
  const by = value - usual;
  if (Math.abs(by) < 0.05) return t("asUsual", { such });
  return by > 0 ? t("aboveUsual", { by: kwh(by), such }) : t("belowUsual", { by: kwh(-by), such });
}

/**
 * @param {Element} place
 * @param {Home} known
 * @param {Range} shown
 * @param {() => Promise<Energy>} ofRange
 * @param {() => Promise<{parts: Part[]}>} partsOf
 * @param {Memory} recent
 * @param {() => Promise<Cost | null>} costOfRange
 */
async function showBars(place, known, shown, ofRange, partsOf, recent, costOfRange) {
  const { span } = shown;
  const [answer, other, cost] = await Promise.all([ofRange(), otherOf(shown, recent), costOfRange()]);
  const lit = chosen("part");
  const parts = lit ? (await partsOf()).parts : [];
  const part = lit === "rest" ? parts.find(({ id }) => !id) : [...parts, ...byRoom(known, parts)].find(({ id }) => id === lit);
  const ofPart = part ? await litOf(part, parts, shown, recent) : new Map();
  const compared = new Map(other && shown.other ? barsOf(other.data.map((row) => ({ ...row, timestamp: shown.other?.shift(new Date(row.timestamp)).toISOString() ?? "" })), span).map((it) => [it.time, it.kwh]) : []);
  const bars = barsOf(answer.data, span);
  const rows = bars.map((row) => {
    const mine = ofPart.get(row.time) ?? 0;
    const paid = sumOf(cost, row.time * 1000, row.time * 1000 + 1);
    return {
      time: row.time,
      value: row.kwh,
      below: row.kwh_sold,
      money: paid ? shownSum(paid) : undefined,
      other: compared.get(row.time),
      lit: !part ? undefined : part.id ? mine : Math.max(0, (row.kwh ?? 0) - mine),
      note: [...row.flags.map((it) => named(`event_${it}`, it)), row.estimated && t("estimated"), row.partial && t("notOver")].filter(Boolean).join(", "),
    };
  });
  for (const [time, value] of compared) if (!bars.some((it) => it.time === time)) rows.push({ time, value: null, below: undefined, money: undefined, other: value, lit: undefined, note: "" });
  rows.sort((a, b) => a.time - b.time);
  const marked = bars.filter((row) => row.flags.length || row.estimated).length;
  /** @type {Record<string, import("../words/words.js").Key>} */
  const titles = { day: "kwhByHour", week: "kwhByDay", month: "kwhByDay", year: "kwhByMonth" };
  /** @type {Record<string, string>} */
  const inner = { week: "day", month: "day", year: "month" };
  const select = inner[span] && ((/** @type {number} */ time) => choose({ d: dayOf(new Date(time * 1000)), span: inner[span] === "day" ? "" : inner[span], part: "" }));
  fill(
    place,
    barChart({
      title: t(titles[span]), when: titleOf(shown), unit: "kWh", bars: rows, lacks: isLacking(answer), step: SECONDS[BARS[span].bar],
      range: [shown.from.getTime() / 1000, shown.to.getTime() / 1000], versus: shown.versus && versusOf(shown), lit: part ? part.name || t("notOnPlug") : "", select: select || undefined,
    }),
    lackNote(answer),
    marked > 0 && h("p", { class: "note" }, t("flagged", { n: marked })),
  );
}

/**
 * What a part used in each bar; of what is on no plug, what the plugs used.
 * @param {Part} part
 * @param {Part[]} parts
 * @param {Range} shown
 * @param {Memory} recent
 * @returns {Promise<Map<number, number>>}
 */
async function litOf(part, parts, { span, from, to }, recent) {
  const ids = part.id ? part.devices : parts.flatMap(({ devices }) => devices);
  const only = ids.length === 1 && !isShared() ? path("devices", ids[0], "energy") : "energy";
  /** @type {Energy} */
  const { data } = await recent(`lit ${only} ${span} ${from.getTime()}`, 60_000, () => get(only, { ...ends(from, to), every: BARS[span].bar, ...(only === "energy" ? { devices: 1 } : {}) }));
  /** @type {Map<number, number>} */
  const sums = new Map();
  for (const row of data) {
    if (row.device_id && !ids.includes(row.device_id)) continue;
    const time = new Date(row.timestamp).getTime() / 1000;
    sums.set(time, (sums.get(time) ?? 0) + (row.kwh ?? 0));
  }
  return sums;
}

/**
 * @param {Element} place
 * @param {Range} shown
 * @param {Energy} answer
 */
function showPeak(place, shown, answer) {
  const { data } = answer;
  const top = best(data);
  if (!top || top.kwh === null) return fill(place, h("p", null, absent(isLacking(answer), t("noEnergy"))), lackNote(answer));
  if (shown.span !== "day") {
    return fill(place, h("p", { class: "big" }, kwh(top.kwh)), h("p", null, shown.span === "year" ? t("highestMonth", { time: titleOf({ ...shown, span: "month", from: new Date(top.timestamp) }) }) : t("highestDay", { time: day(top.timestamp) })), h("p", { class: "note" }, t("chooseDay")), lackNote(answer));
  }
  // The newest half hours may not be measured as a whole yet.
  const halves = data.filter((row) => row.kwh !== null && !row.partial && Date.now() - new Date(row.timestamp).getTime() > 5_400_000);
  const low = halves.reduce((low, row) => ((row.kwh ?? 0) < (low.kwh ?? 0) ? row : low), halves[0]);
  fill(
    place,
    h("p", { class: "big" }, watts(top.kwh * 2000)),
    h("p", null, t("meanOfHalfHour", { time: moment(top.timestamp), value: kwh(top.kwh) })),
    low && h("p", null, t("lowestHalfHour", { power: watts((low.kwh ?? 0) * 2000), time: moment(low.timestamp) })),
    top.estimated && h("p", { class: "warn" }, t("estimatedWhy", { time: duration(900_000) })),
    lackNote(answer),
  );
}
