// The view of energy: how much, what it cost, where it went, bars, the highest half hour, and what was odd. Edits
// verdicts only.

import { addressOf, choose, chosen } from "../data/address.js";
import { BARS, barsOf, byRoom, daysOfTwoMonths, energyOf, partsOf, rowsIn, rowsOf, totalOf, totalUntil, usualOf } from "../data/consumption.js";
import { costOf, costOfDays, forgetTariffs, shownSum, sumOf, tariffs } from "../data/costs.js";
import { beginning, hasEnergy, home, measuredUntil } from "../data/home.js";
import { memory } from "../data/memory.js";
import { dayOf, previous, range } from "../data/range.js";
import { isShared } from "../data/shared.js";
import { barChart } from "../parts/chart.js";
import { dateBar, titleOf, versusOf } from "../parts/datebar.js";
import { buttons, card, fill, h, states } from "../parts/dom.js";
import { compared, large } from "../parts/figures.js";
import { clock, day, duration, isolated, kwh, midnight, moment, monthStart, percent, watts, written } from "../words/format.js";
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
/** @typedef {Part & {key: string, title: string, colour: number | null, isLit: boolean}} Share a part as it is drawn; the rest has no colour of a device */

/** @type {import("../data/range.js").Span[]} */
const SPANS = ["day", "week", "month", "year"];
/** How long the answer about a range that is not a day is used, in milliseconds: it changes slowly. */
const LONG_AGE = 300_000;
const DAY = 86_400_000;
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
    state("meters", () => [h("h1", { class: "hidden" }, t("energy")), bar, figures, roles, h("div", { class: "two wide" }, card(t("use"), chart), card(t("whereItWent"), went)), !isShared() && card(t("whatItCost"), bills), h("div", { class: "two" }, h("section", { class: "card" }, peakTitle, peak), card(t("whatWasOdd"), notable))]);
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
      inPlace(figures, () => showFigures(figures, shown, { ofRange, recent, money, until: measuredUntil(known) })),
      inPlace(chart, () => showBars(chart, known, shown, { ofRange, parts, recent, money })),
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
 * The rows of another range, such as the one that is compared.
 * @param {Range} shown
 * @param {import("../data/range.js").Other} other
 * @param {Memory} recent
 * @returns {Promise<Energy>}
 */
function rowsOfOther({ span }, other, recent) {
  return recent(`other ${span} ${other.from.getTime()}`, 3_600_000, () => rowsOf(span, other));
}

/**
 * @param {string} title
 * @param {string} where the address that the title leads to; empty for what is shown
 * @param {number | null} value
 * @param {Energy} answer
 * @param {(Node | string)[] | null} text
 * @param {Sum | null} cost
 */
function figure(title, where, value, answer, text, cost) {
  const sold = answer.total_kwh_sold;
  return h("section", { class: "card tile" },
    h("h2", null, where ? h("a", { href: where }, title) : title),
    value === null ? h("p", { class: "big" }, absent(isLacking(answer), t("none"))) : large(kwh(value)),
    h("p", { class: "note" }, cost && h("span", { class: "money" }, shownSum(cost)), cost && text && " · ", ...(text ?? [])),
    sold !== undefined && h("p", null, t("sold", { value: kwh(sold) })),
    lackNote(answer),
    incompleteNote(cost),
  );
}

/**
 * The range that is shown, the one before it, this month, and what this month comes to.
 * @param {Element} place
 * @param {Range} shown
 * @param {{ofRange: () => Promise<Energy>, recent: Memory, money: () => Promise<Cost | null>, until: Date}} ask `until` is what is known until
 */
async function showFigures(place, shown, { ofRange, recent, money, until }) {
  const before = previous(shown);
  /** @type {[Energy, Energy, Energy | null, Energy, Cost | null, Cost | null]} */
  const [answer, past, other, days, cost, costs] = await Promise.all([
    ofRange(),
    rowsOfOther(shown, before.other, recent),
    shown.other && rowsOfOther(shown, shown.other, recent),
    recent("two months", LONG_AGE, daysOfTwoMonths),
    money(),
    recent("cost of days", LONG_AGE, costOfDays).catch(() => null),
  ]);
  const month = monthsOf(days, costs);
  const isThisMonth = shown.span === "month" && shown.isNow && !shown.other;
  const ofMonth = isLacking(days) ? null : month.text;
  const beside = isLacking(answer, other ?? past) ? null : besides(shown, answer, other ?? past, until);
  const isToday = shown.span === "day" && shown.isNow;
  const top = shown.span === "day" && best(barsOf(past.data.map((row) => ({ ...row })), "day"));
  const where = (/** @type {Record<string, string>} */ changes) => addressOf("energy", "", changes);
  fill(
    place,
    figure(isToday ? t("todaySoFar") : isThisMonth ? t("monthSoFar") : titleOf(shown), "", answer.total_kwh, answer, isThisMonth ? ofMonth : beside, sumOf(cost)),
    (past.total_kwh !== null || isLacking(past)) && figure(isToday ? t("yesterday") : titleOf({ ...shown, ...before.other }), where({ d: shown.before }), past.total_kwh, past, top ? [t("peakHour", { time: clock(top.timestamp), value: kwh(top.kwh) })] : null, isToday ? sumOf(costs, midnight(-1), midnight(0)) : null),
    !isThisMonth && figure(t("monthSoFar"), where({ span: "month", d: "" }), month.total, { ...days, total_kwh_sold: month.sold }, ofMonth, sumOf(costs, monthStart(0))),
    month.forecast !== null && figure(t("monthForecast"), "", month.forecast, { data: [], total_kwh: null }, [t("perDay", { value: kwh(month.rate) })], month.cost),
  );
}

/**
 * The comparison of the range with the chosen range, or with the one before it: until the same moment, if it is not over.
 * @param {Range} shown
 * @param {Energy} answer
 * @param {Energy} past
 * @param {Date} until
 */
function besides(shown, answer, past, until) {
  const { other, versus } = shown.other ? /** @type {{other: import("../data/range.js").Other, versus: import("../data/range.js").Versus}} */ (shown) : previous(shown);
  const than = versusOf({ ...shown, versus });
  if (!shown.isNow) return past.total_kwh === null ? null : compared(answer.total_kwh, past.total_kwh, than);
  const isLate = Date.now() - until.getTime() > LATE;
  const upTo = shown.span !== "day" || versus !== "day" ? t("upToSameTime", { than }) : isLate ? t("yesterdayUntil", { time: clock(until) }) : t("yesterdayUpToNow");
  const rows = past.data.map((row) => ({ ...row, timestamp: other.shift(new Date(row.timestamp)).toISOString() }));
  const fair = totalUntil(rows, until, other.shift(other.to));
  return fair === null ? null : compared(answer.total_kwh, fair, upTo);
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
 * This month, its whole days against the same days of last month, as far back as that month was measured, and what it
 * comes to if its other days are like those.
 * @param {Energy} days of both months
 * @param {Cost | null} costs
 */
function monthsOf({ data }, costs) {
  const own = rowsIn(data, monthStart(0), monthStart(1));
  const before = rowsIn(data, monthStart(-1), monthStart(0));
  const [total, sold] = [totalOf(own), totalOf(own, "kwh_sold") ?? undefined];
  const begin = (/** @type {typeof data} */ rows) => rows.findIndex((row) => row.kwh !== null);
  // The day on which a history begins was perhaps not measured as a whole, and today is not over.
  const whole = own.slice(begin(before) < 0 ? begin(own) + 1 : 0, -1);
  const mean = totalOf(whole);
  const rate = mean === null ? null : mean / whole.length;
  const left = (monthStart(1).getTime() - Date.now()) / DAY;
  const forecast = rate === null || total === null ? null : total + rate * left;
  const [paid, paidOfWhole] = [sumOf(costs, monthStart(0)), whole.length ? sumOf(costs, new Date(whole[0].timestamp), midnight(0)) : null];
  const cost = paid && paidOfWhole && { ...paid, amount: paid.amount + (paidOfWhole.amount / whole.length) * left };
  const first = begin(before);
  const known = { total, sold, rate, forecast, cost };
  if (first < 0 && begin(own) > 0) return { ...known, text: [t("measuredSince", { time: day(own[begin(own)].timestamp) })] };
  if (first < 0) return { ...known, text: [t("lastMonthNone")] };
  const [from, until] = [first === 0 ? 0 : first + 1, Math.min(own.length - 1, before.length)];
  if (until <= from) return { ...known, text: first === 0 ? [] : [t("lastMonthFrom", { time: day(before[first].timestamp) })] };
  const [mine, other] = [totalOf(own.slice(from, until)), totalOf(before.slice(from, until))];
  const written = from + 1 === until ? String(until) : `${from + 1}-${until}`;
  return { ...known, text: compared(mine, other, t("lastMonthDays", { days: written, own: kwh(mine) })) };
}

/**
 * The parts of a range by device or by room, each with its colour, which it keeps whatever it used.
 * @param {Home} known
 * @param {Part[]} all
 * @returns {Share[]}
 */
function sharesOf(known, all) {
  const isByRoom = chosen("by") === "room";
  const ids = [...new Set(known.devices.filter(hasEnergy).map((device) => (isByRoom ? `room ${device.room ?? ""}` : device.device_id)))];
  // The first colours go to those that are drawn.
  const meters = new Set(known.devices.map(({ behind }) => behind));
  const ordered = [...ids.filter((id) => !meters.has(id)), ...ids.filter((id) => meters.has(id))];
  return (isByRoom ? byRoom(known, all) : all).map((part) => {
    const key = part.id || "rest";
    const colour = part.id ? Math.max(0, ordered.indexOf(part.id)) % COLOURS : null;
    return { ...part, key, title: part.id ? part.name : t("notOnPlug"), colour, isLit: chosen("part") === key };
  });
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
  const parts = sharesOf(known, all.map((part) => ({ ...part, usual: part.id ? usual(part.id) : null })));
  if (!parts.length) return fill(place, h("p", null, absent(isLacking(answer), t("noParts"))), lackNote(answer));
  if (all.length === 1 && all[0].id) return fill(place, h("p", null, t("onePart")), h("p", null, h("a", { href: "#connect" }, t("connectOne"))), lackNote(answer));
  const sum = Math.max(total ?? 0, parts.reduce((sum, { kwh }) => sum + Math.max(0, kwh), 0)) || 1;
  const touch = (/** @type {Share} */ { key, isLit }) => choose({ part: isLit ? "" : key });
  const look = (/** @type {Share} */ { colour }) => `part ${colour === null ? "rest" : `p${colour}`}`;
  const strip = h("div", { class: "strip", "aria-hidden": "true" }, ...parts.map((part) => h("span", { class: look(part), onclick: () => touch(part) })));
  [...strip.children].forEach((child, n) => { /** @type {HTMLElement} */ (child).style.flexGrow = String(Math.max(0, parts[n].kwh) / sum); });
  const row = (/** @type {Share} */ part) => h("li", null,
    h("button", { type: "button", id: `part-${part.key}`, "aria-pressed": String(part.isLit), onclick: () => touch(part) },
      h("span", { class: `dot ${look(part)}` }),
      h("span", { class: "what" }, isolated(part.title)),
      h("span", { class: "much" }, kwh(part.kwh)),
      h("span", { class: "share" }, percent(part.kwh / sum)),
      h("span", { class: "note" }, shown.isNow || part.usual === null ? "" : difference(part.kwh, part.usual, shown)),
    ));
  fill(
    place,
    buttons(t("by"), [["", t("byDevice")], ["room", t("byRoom")]], chosen("by") === "room" ? "room" : "", (by) => choose({ by, part: "" })),
    strip,
    h("ul", { class: "parts" }, ...parts.map(row)),
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
 * Bars of parts on one another, in the colours of where it went; a part that is touched is lit and stands at their foot.
 * @param {Element} place
 * @param {Home} known
 * @param {Range} shown
 * @param {{ofRange: () => Promise<Energy>, parts: () => Promise<{parts: Part[]}>, recent: Memory, money: () => Promise<Cost | null>}} ask
 */
async function showBars(place, known, shown, { ofRange, parts, recent, money }) {
  const { span } = shown;
  const [answer, other, cost, found] = await Promise.all([ofRange(), shown.other && rowsOfOther(shown, shown.other, recent), money(), parts()]);
  const all = sharesOf(known, found.parts);
  const shares = all.length > 1 && all.some(({ bars }) => bars.size) ? [...all.filter(({ isLit }) => isLit), ...all.filter(({ isLit }) => !isLit)] : [];
  const compared = new Map(other && shown.other ? barsOf(other.data.map((row) => ({ ...row, timestamp: shown.other?.shift(new Date(row.timestamp)).toISOString() ?? "" })), span).map((it) => [it.time, it.kwh]) : []);
  const bars = barsOf(answer.data, span);
  const rows = bars.map((row) => {
    const paid = sumOf(cost, row.time * 1000, row.time * 1000 + 1);
    const measured = shares.reduce((sum, { bars }) => sum + (bars.get(row.time) ?? 0), 0);
    return {
      time: row.time,
      value: row.kwh,
      below: row.kwh_sold,
      money: paid ? shownSum(paid) : undefined,
      other: compared.get(row.time),
      parts: shares.map(({ id, bars }) => (id ? bars.get(row.time) ?? 0 : Math.max(0, (row.kwh ?? 0) - measured))),
      note: [...row.flags.map((it) => named(`event_${it}`, it)), row.estimated && t("estimated"), row.partial && t("notOver")].filter(Boolean).join(", "),
    };
  });
  for (const [time, value] of compared) if (!bars.some((it) => it.time === time)) rows.push({ time, value: null, below: undefined, money: undefined, other: value, parts: [], note: "" });
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
      range: [shown.from.getTime() / 1000, shown.to.getTime() / 1000], versus: shown.versus && versusOf(shown), parts: shares.map(({ title, colour, isLit }) => ({ label: title, colour, isPale: shares[0].isLit && !isLit })), select: select || undefined,
    }),
    lackNote(answer),
    marked > 0 && h("p", { class: "note" }, t("flagged", { n: marked })),
  );
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
    return fill(place, large(kwh(top.kwh)), h("p", null, shown.span === "year" ? t("highestMonth", { time: titleOf({ ...shown, span: "month", from: new Date(top.timestamp) }) }) : t("highestDay", { time: day(top.timestamp) })), h("p", { class: "note" }, t("chooseDay")), lackNote(answer));
  }
  // The newest half hours may not be measured as a whole yet.
  const halves = data.filter((row) => row.kwh !== null && !row.partial && Date.now() - new Date(row.timestamp).getTime() > 5_400_000);
  const low = halves.reduce((low, row) => ((row.kwh ?? 0) < (low.kwh ?? 0) ? row : low), halves[0]);
  fill(
    place,
    large(watts(top.kwh * 2000)),
    h("p", null, t("meanOfHalfHour", { time: moment(top.timestamp), value: kwh(top.kwh) })),
    low && h("p", null, t("lowestHalfHour", { power: watts((low.kwh ?? 0) * 2000), time: moment(low.timestamp) })),
    top.estimated && h("p", { class: "warn" }, t("estimatedWhy", { time: duration(900_000) })),
    lackNote(answer),
  );
}
