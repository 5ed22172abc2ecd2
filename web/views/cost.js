// The card of what energy cost: the lines of a bill, another tariff beside it by month, the prices ahead, and the form of a
// tariff when somebody opens it. Sums up nothing that the server sums.

import { choose, chosen } from "../data/address.js";
import { compareMonths, isOwn, pricesAndUse, saveBill, shownSum } from "../data/costs.js";
import { beginning } from "../data/home.js";
import { freeId } from "../data/polled.js";
import { dayOf, startOf } from "../data/range.js";
import { PRESETS, deleteTariff, linesAt } from "../data/tariffs.js";
import { barChart } from "../parts/chart.js";
import { titleOf } from "../parts/datebar.js";
import { buttons, fill, h, select, table } from "../parts/dom.js";
import { lackNote } from "../parts/lack.js";
import { inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { midnight, moment, money, number, written } from "../words/format.js";
import { t } from "../words/words.js";

/** @typedef {import("../data/costs.js").Bill} Bill */
/** @typedef {import("../data/costs.js").Cost} Cost */
/** @typedef {import("../data/costs.js").SavedTariff} SavedTariff */
/** @typedef {{known: import("../data/home.js").Home, shown: import("../data/range.js").Range, all: SavedTariff[], cost: Cost | null, recent: ReturnType<typeof import("../data/memory.js").memory>, forget: () => void}} About */

/** How long prices and a comparison are used, in milliseconds. */
const MAX_AGE = 300_000;
/** The most sentences about what is missing. */
const MAX_MISSING = 5;
/** The months that are compared. */
const MONTHS = 12;
/** The settings of an address without a form. */
const NO_FORM = { tariff: "", preset: "", offer: "" };
/** The seconds of a slot. @type {Record<string, number>} */
const SLOTS = { "15m": 900, "30m": 1800, "1h": 3600 };

/** The news of a tariff that was just saved, with the server's warnings. @type {string[]} */
let news = [];

/**
 * @param {HTMLElement} place
 * @param {About} about
 */
export async function showCost(place, about) {
  const { all, cost, shown } = about;
  if (chosen("tariff")) return showForm(place, about, chosen("tariff"));
  const wasForm = place.dataset.form;
  place.dataset.form = "";
  const own = all.filter(isOwn);
  const bill = cost?.bills.find(({ tariff }) => tariff === chosen("bill")) ?? cost?.bills[0];
  const tariff = all.find(({ id }) => id === bill?.tariff);
  const said = news.map((words) => h("p", { role: "status", class: "note" }, words));
  if (!cost || !bill || !tariff) {
    fill(place, h("p", null, t("noTariff")), h("div", { class: "kinds" }, ...PRESETS.map((preset) => h("button", { type: "button", id: `preset-${preset}`, onclick: () => open("new", preset) }, h("strong", null, t(`preset_${preset}`))))), ...said);
    return;
  }

  const kept = (/** @type {string} */ name) => /** @type {HTMLElement} */ (place.querySelector(`.${name}`)) ?? h("div", { class: name });
  const [compare, ahead] = [kept("compare"), kept("ahead")];
  const csv = () => saveBill(shown, tariff.id);
  fill(place,
    ...said,
    own.length > 1 && buttons(t("whatItCost"), own.map(({ id, name }) => [id, name]), tariff.id, (bill) => choose({ bill })),
    billTable(bill, titleOf(shown)),
    ...missing(cost, bill),
    lackNote(cost),
    h("div", { class: "buttons" }, h("button", { type: "button", class: "csv", onclick: csv }, "CSV"), ...edits(tariff, about), h("button", { type: "button", id: "tariff-new", onclick: () => open("new", "flat") }, t("anotherTariff"))),
    compare,
    ahead,
  );
  if (wasForm) document.getElementById(`edit-${tariff.id}`)?.focus({ preventScroll: true });
  await Promise.all([
    inPlace(compare, () => showCompare(compare, about, tariff)),
    inPlace(ahead, () => showAhead(ahead, about, tariff)),
  ]);
}

/** Opens the form. @param {string} tariff @param {string} preset @param {string} [offer] */
function open(tariff, preset, offer = "") {
  news = [];
  choose({ tariff, preset, offer });
}

/**
 * @param {HTMLElement} place
 * @param {About} about
 * @param {string} wanted the tariff's id, or `new`
 */
async function showForm(place, { known, all, forget }, wanted) {
  const saved = all.find(({ id }) => id === wanted);
  const isOffer = chosen("offer") !== "";
  const form = `${wanted} ${chosen("preset")} ${isOffer}`;
  // A form that somebody fills in is left alone.
  if (place.dataset.form === form) return;
  place.dataset.form = form;
  const { tariffForm } = await import("../parts/tariffform.js");
  const again = () => {
    forget();
    place.dataset.form = "";
    window.dispatchEvent(new Event("changed"));
  };
  const done = (/** @type {SavedTariff & {warnings?: string[]}} */ { id, warnings = [] }) => {
    forget();
    news = [t("named"), ...warnings];
    choose({ ...NO_FORM, ...(isOffer ? { than: id } : { bill: id }) });
  };
  const preset = PRESETS.find((preset) => preset === chosen("preset")) ?? "flat";
  const id = saved?.id ?? freeId(isOffer ? "offer" : "electricity", /** @type {any[]} */ (all));
  fill(place, tariffForm({ known, saved, id, preset, isOffer, currency: all.find(isOwn)?.currency, done, cancel: () => choose(NO_FORM), reload: again }));
  /** @type {HTMLElement | null} */ (place.querySelector(".prices :is(input, select)"))?.focus();
}

/** The buttons that edit and delete a tariff. @param {SavedTariff} tariff @param {About} about */
function edits({ id, name }, { forget }) {
  const remove = async () => {
    if (!confirm(t("deleteSure", { name }))) return;
    await guarded(() => deleteTariff(id));
    forget();
    window.dispatchEvent(new Event("changed"));
  };
  const tell = (/** @type {unknown} */ error) => window.dispatchEvent(new CustomEvent("failed", { detail: error }));
  return [
    h("button", { type: "button", id: `edit-${id}`, "aria-label": t("editWhat", { name }), onclick: () => open(id, "") }, t("edit")),
    h("button", { type: "button", id: `delete-${id}`, "aria-label": t("deleteWhat", { name }), onclick: () => remove().catch(tell) }, t("delete")),
  ];
}

/** The lines of a bill, and its sum. @param {Bill} bill @param {string} when */
function billTable({ name, currency, unit, lines, amount, due }, when) {
  const how = (/** @type {import("../data/costs.js").BillLine} */ { per, quantity, amount }) => {
    if (!quantity) return "";
    if (per !== "used" && per !== "sold") return `${number(quantity)} × ${t(per === "day" ? "per_day" : per === "year" ? "per_year" : "per_month")}`;
    return `${number(quantity, 2)} ${unit} × ${money(Math.abs(amount / quantity), currency, 4)}`;
  };
  const rows = lines.map((line) => [h("span", null, line.name, line.zone ? ` (${line.zone})` : "", " ", h("span", { class: "note" }, how(line))), money(line.amount, currency)]);
  const sum = [h("strong", null, t(due ? "due" : "together")), h("strong", null, money(Number(due ?? amount), currency))];
  return h("div", { class: "bill" }, table(t("labelled", { name, text: when }), [t("name"), currency], [...rows, sum]));
}

/** What a bill lacks, each in a sentence. @param {Cost} cost @param {Bill} bill */
function missing({ incomplete, incomplete_count }, { tariff, unit }) {
  /** @type {Record<string, import("../words/words.js").Key>} */
  const words = { price: "lacks_price", tariff: "lacks_tariff", energy: "lacks_energy", spread: "lacks_spread", days: "lacks_days", meter: "lacks_meter" };
  const own = incomplete.filter((entry) => entry.tariff === tariff);
  const sentences = own.slice(0, MAX_MISSING).map(({ what, line = "", name = "", from, to, kwh: energy = 0 }) =>
    h("p", { class: "note" }, `• ${t(words[what] ?? "lacks_energy", { line, name, from: moment(from), to: moment(to), energy: `${number(energy, 2)} ${unit}`, year: new Date(from).getFullYear() })}`));
  const more = Math.max(own.length, incomplete.length === own.length ? incomplete_count : 0) - sentences.length;
  return [...sentences, more > 0 && h("p", { class: "note" }, t("more", { n: more }))];
}

/**
 * Another tariff over the same months.
 * @param {HTMLElement} place
 * @param {About} about
 * @param {SavedTariff} mine
 */
async function showCompare(place, about, mine) {
  const { known, shown, all, recent } = about;
  const others = all.filter(({ id, currency }) => id !== mine.id && currency === mine.currency);
  const other = others.find(({ id }) => id === chosen("than"));
  const pick = (/** @type {string} */ than) => (than === "new" ? open("new", "flat", "1") : choose({ than }));
  const choice = select(t("compareTariff"), [["", t("vsNothing")], ...others.map(({ id, name }) => /** @type {[string, string]} */ ([id, name])), ["new", t("anotherTariff")]], other?.id ?? "", pick);
  if (!other) return fill(place, choice);

  const last = shown.span === "year" ? shown.to : new Date(shown.from.getFullYear(), shown.from.getMonth() + 1, 1);
  const first = new Date(last.getFullYear(), last.getMonth() - MONTHS, 1);
  const begin = beginning(known);
  const from = begin && begin > first && begin < last ? startOf("month", begin) : first;
  const cost = await recent(`compare ${mine.id} ${other.id} ${from} ${last}`, MAX_AGE, () => compareMonths([mine.id, other.id], from, last));

  const { currency } = mine;
  const of = (/** @type {SavedTariff} */ { id }) => cost.data.filter(({ tariff }) => tariff === id);
  const sum = (/** @type {import("../data/costs.js").CostRow[]} */ rows) => rows.reduce((sum, row) => sum + row.amount, 0);
  const signed = (/** @type {number} */ by) => `${by > 0 ? "+" : ""}${money(by, currency)}`;
  const shownRow = (/** @type {import("../data/costs.js").CostRow} */ row) => shownSum({ amount: row.amount, currency, isIncomplete: Boolean(row.incomplete) });
  const [ours, theirs] = [of(mine), of(other)];
  const rows = ours.map((row, n) => [written(row.timestamp, { month: "short", year: "numeric" }), shownRow(row), shownRow(theirs[n]), signed(theirs[n].amount - row.amount)]);
  const by = sum(theirs) - sum(ours);
  const total = [t("together"), money(sum(ours), currency), money(sum(theirs), currency), signed(by)].map((text) => h("strong", null, text));
  fill(place,
    choice,
    h("p", { class: "summary" }, t(by < 0 ? "wouldSave" : "wouldCost", { name: other.name, amount: money(Math.abs(by), currency) })),
    h("div", { class: "bill" }, table(`${mine.name}, ${other.name}`, [t("month"), mine.name, other.name, t("difference")], [...rows, total])),
    [...ours, ...theirs].some((row) => row.incomplete) && h("p", { class: "note" }, t("costIncomplete")),
    lackNote(cost),
    h("div", { class: "buttons" }, ...edits(other, about)),
  );
}

/**
 * The prices of today and tomorrow beside one's own use, where a series has the prices.
 * @param {HTMLElement} place
 * @param {About} about
 * @param {SavedTariff} tariff
 */
async function showAhead(place, { recent }, { lines, currency }) {
  const line = linesAt(lines, dayOf(midnight(0))).find(({ series }) => series);
  if (!line?.series) return fill(place);
  const { device, metric, slot, holds = slot } = line.series;
  const every = SLOTS[holds] > SLOTS[slot] ? holds : slot;
  const [from, to] = [midnight(0), midnight(2)];
  const [{ data }, energy] = await recent(`ahead ${device} ${metric} ${every}`, MAX_AGE, () => pricesAndUse({ device, metric, every }, from, to));
  const at = (/** @type {{timestamp: string}} */ row) => new Date(row.timestamp).getTime() / 1000;
  const prices = new Map(data.filter((row) => row[metric]).map((row) => [at(row), row[metric].mean * (line.times ?? 1) + (line.price ?? 0)]));
  if (!prices.size) return fill(place);

  const used = new Map(energy.data.map((row) => [at(row), row]));
  const bars = [];
  for (let time = from.getTime() / 1000; time < to.getTime() / 1000; time += SLOTS[every]) {
    bars.push({ time, value: used.get(time)?.kwh ?? null, below: used.get(time)?.kwh_sold, price: prices.get(time) });
  }
  const coming = [...prices].filter(([time]) => (time + SLOTS[every]) * 1000 > Date.now());
  const best = coming.reduce((best, next) => (next[1] < best[1] ? next : best), coming[0]);
  fill(place,
    h("h3", null, t("pricesAhead", { name: line.name })),
    best && h("p", null, t("cheapest", { time: moment(best[0] * 1000), price: money(best[1], currency, 4) })),
    barChart({ title: `${t("use")}, ${t("metric_price")}`, unit: "kWh", priceUnit: `${currency}/kWh`, bars, range: [from.getTime() / 1000, to.getTime() / 1000], step: SLOTS[every] }),
  );
}
