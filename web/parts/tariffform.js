// The form of a tariff: at most twelve fields by preset, and the whole as JSON below, whose other lines it leaves alone.

import { deviceName, hasEnergy } from "../data/home.js";
import { PRESETS, isShowable, linesByRole, nameOf, presetOf, putTariff, usualCurrency, withLine, withNewPrices } from "../data/tariffs.js";
import { duration, written as dated } from "../words/format.js";
import { rich, t } from "../words/words.js";
import { buttons, field, fill, h } from "./dom.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/costs.js").Tariff} Tariff */
/** @typedef {import("../data/costs.js").SavedTariff} SavedTariff */
/** @typedef {import("../data/costs.js").Line} Line */
/** @typedef {import("../data/tariffs.js").Preset} Preset */
/** @typedef {import("../data/tariffs.js").Role} Role */
/** @typedef {HTMLInputElement | HTMLSelectElement} Input */
/** @typedef {{known: import("../data/home.js").Home, saved?: SavedTariff, id: string, preset: Preset, isOffer: boolean, currency?: string, done: (saved: SavedTariff & {warnings?: string[]}) => void, cancel: () => void, reload: () => void}} About `saved` if it is saved already */

/** The value of the meter's choice where the form cannot show the meters. */
const AS_IT_IS = "*";
/** The factors from prices in other units, such as cents or per MWh, to whole money per kWh. @type {[RegExp, number][]} */
const FACTORS = [[/\/MWh/, 0.001], [/^(ct|cent|c|p|øre|öre)\b/i, 0.01]];
/** The lines besides the energy, which have a single price. @type {Role[]} */
const FLAT = ["standing", "added", "vat", "feedIn"];

/** @param {About} about */
export function tariffForm({ known, saved, id, preset: wanted, isOffer, currency, done, cancel, reload }) {
  let draft = saved ? written(saved) : firstDraft(known, id, isOffer, currency);
  let preset = presetIn(draft, wanted);
  /** @type {Map<string, Input>} */
  const inputs = new Map();
  const place = h("div");
  const said = h("div", { role: "alert" });
  const json = h("textarea", { rows: 14, spellcheck: "false", onchange: () => attempt(readJson) });

  const readJson = async () => {
    const parsed = JSON.parse(json.value);
    draft = { ...parsed, lines: parsed.lines ?? [] };
    preset = presetIn(draft, preset ?? wanted);
    show();
  };
  const showJson = () => { json.value = JSON.stringify(draft, null, 2); };
  const readFields = () => {
    draft = withFields(draft, preset, inputs, known);
    showJson();
  };
  const attempt = async (/** @type {() => Promise<unknown>} */ act) => {
    fill(said);
    try {
      await act();
    } catch (error) {
      const { message, status } = /** @type {import("../data/api.js").Failure} */ (error);
      const isChanged = status === 409;
      fill(said, h("p", { class: "warn" }, isChanged ? t("tariffChanged") : message), isChanged && h("button", { type: "button", onclick: reload }, t("reload")));
    }
  };
  const save = () => attempt(async () => {
    // What is typed as JSON and cannot be read is not passed over.
    if (json.value === JSON.stringify(draft, null, 2)) readFields();
    else await readJson();
    done(await guarded(() => putTariff(id, { ...draft, version: saved?.version ?? 0 })));
  });

  const show = () => {
    inputs.clear();
    const choices = /** @type {[string, string][]} */ (PRESETS.map((preset) => [preset, t(`preset_${preset}`)]));
    const choosePreset = (/** @type {string} */ chosen) => {
      preset = /** @type {Preset} */ (chosen);
      show();
      document.getElementById(`b-${t("metric_price")}-${chosen}`.replaceAll(" ", "-"))?.focus();
    };
    fill(place,
      preset ? buttons(t("metric_price"), choices, preset, choosePreset) : h("p", { class: "note" }, t("onlyJson")),
      h("div", { class: "controls prices" }, ...fieldsOf(draft, preset, inputs, known).map(([label, input]) => field(label, input))),
      preset === "series" && !seriesIn(known, draft).length && h("p", { class: "warn" }, ...rich("noPrices", { connect: h("a", { href: "#connect?half=asks&kind=price" }, t("connectOne")) })),
    );
    showJson();
  };
  show();
  place.addEventListener("input", readFields);

  const name = h("input", { type: "text", required: true, maxlength: 100, autocomplete: "off", value: draft.name, oninput: () => { draft = { ...draft, name: name.value }; readFields(); } });
  const code = h("input", { type: "text", required: true, pattern: "[A-Z]{3}", autocomplete: "off", value: draft.currency, onchange: () => { draft = { ...draft, currency: code.value }; show(); } });
  return h("form", { class: "tariff", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); save(); } },
    saved && newPrices((day) => { draft = { ...draft, lines: withNewPrices(draft.lines, day) }; show(); }),
    place,
    h("details", { class: "behind" }, h("summary", null, t("moreSettings")),
      h("div", { class: "controls" }, field(t("name"), name), field(t("currency"), code)),
      field(t("jsonWhy"), json),
    ),
    said,
    h("div", { class: "buttons" }, h("button", { type: "submit" }, t("save")), h("button", { type: "button", onclick: cancel }, t("cancel"))),
  );
}

/** A saved tariff as a person writes it. @param {SavedTariff} saved @returns {Tariff} */
function written({ id: _, version: __, edited: ___, ...tariff }) {
  return tariff;
}

/**
 * A tariff without a line, by the meter of the home.
 * @param {import("../data/home.js").Home} known
 * @param {string} id its number is in the name, too
 * @param {boolean} isOffer
 * @param {string} [currency]
 * @returns {Tariff}
 */
function firstDraft(known, id, isOffer, currency = usualCurrency()) {
  const meter = known.devices.find((device) => hasEnergy(device) && !device.behind);
  const number = /-(\d+)$/.exec(id)?.[1] ?? "";
  return { name: `${t(isOffer ? "offer" : "electricity")} ${number}`.trim(), currency, ...(meter && !isOffer && { meters: [{ device: meter.device_id }] }), lines: [] };
}

/** How the form shows the energy; null where only JSON can. @param {Tariff} tariff @param {Preset} otherwise */
function presetIn({ lines }, otherwise) {
  const { energy } = linesByRole(lines);
  return !energy ? otherwise : isShowable(energy) ? presetOf(energy) : null;
}

/** The day from which the new prices hold. @param {(day: string) => void} copy */
function newPrices(copy) {
  const day = h("input", { type: "date" });
  return h("div", { class: "controls" }, field(t("newPricesFrom"), day), h("button", { type: "button", onclick: () => day.value && copy(day.value) }, t("copy")));
}

/** The series of prices that there are. @param {import("../data/home.js").Home} known @param {Tariff} tariff @returns {[string, string][]} */
function seriesIn(known, { lines }) {
  const { series } = linesByRole(lines).energy ?? {};
  const sent = known.devices.flatMap((device) => Object.keys(device.metrics).filter((metric) => /^price(_|$)/.test(metric)).map((metric) => `${device.device_id} ${metric}`));
  return [...new Set([...(series ? [`${series.device} ${series.metric}`] : []), ...sent])].map((value) => [value, value]);
}

/**
 * The fields with what a tariff has, each with its label; they are noted by their names.
 * @param {Tariff} tariff
 * @param {Preset | null} preset
 * @param {Map<string, Input>} inputs
 * @param {import("../data/home.js").Home} known
 * @returns {[string, Input][]}
 */
function fieldsOf(tariff, preset, inputs, known) {
  const { energy, standing, added, vat, feedIn } = linesByRole(tariff.lines);
  const unit = `${tariff.currency}/kWh`;
  const noted = (/** @type {string} */ name, /** @type {string} */ label, /** @type {Input} */ input) => {
    inputs.set(name, input);
    return /** @type {[string, Input]} */ ([label, input]);
  };
  const figure = (/** @type {string} */ name, /** @type {string} */ label, /** @type {number | undefined} */ value, isNeeded = false) =>
    noted(name, label, h("input", { name, type: "number", step: "any", required: isNeeded, value: value ?? "" }));
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options, /** @type {string} */ value) =>
    noted(name, label, h("select", { name }, ...options.map(([option, text]) => h("option", { value: option, selected: option === value }, text))));

  const { meters = [] } = tariff;
  const isPlain = meters.length <= 1 && !meters.some(({ metric, device }) => metric || !known.devices.some((other) => other.device_id === device));
  const devices = known.devices.filter(hasEnergy).map((device) => /** @type {[string, string]} */ ([device.device_id, deviceName(device)]));
  const slots = /** @type {[string, string][]} */ ([["15m", duration(900_000)], ["30m", duration(1_800_000)], ["1h", duration(3_600_000)]]);
  const zone = energy?.zones?.[0];
  const tiers = energy?.tiers ?? [];
  const { device, metric, slot = "1h", holds = slot } = energy?.series ?? {};
  const days = /** @type {[string, string][]} */ ([["", daysFrom(1, 7)], ["mon-fri", daysFrom(1, 5)], ["sat,sun", daysFrom(6, 7)]]);
  if (zone?.days && !days.some(([value]) => value === zone.days)) days.push([zone.days, zone.days]);

  const price = figure("price", `${t("metric_price")}, ${unit}`, energy?.price ?? tiers[0]?.price, true);
  const ofPreset = {
    flat: () => [price],
    zones: () => [price, figure("price2", t("secondPrice"), zone?.price, true), noted("hours", t("itsHours"), h("input", { name: "hours", type: "text", autocomplete: "off", required: true, placeholder: "22:00-06:00", value: zone?.hours ?? "" })), choice("days", t("itsDays"), days, zone?.days ?? "")],
    series: () => [choice("series", t("priceSeries"), seriesIn(known, tariff), `${device} ${metric}`), choice("slot", t("billedBy"), slots, slot), choice("holds", t("priceHolds"), slots, holds)],
    tiers: () => [price, figure("limit", t("upTo"), tiers[0]?.to, true), figure("price2", t("thenPrice"), tiers[1]?.price, true), figure("limit2", t("upTo"), tiers[1]?.to), figure("price3", t("thenPrice"), tiers[2]?.price)],
  };
  return [
    choice("meter", t("meter"), [["", t("labelled", { name: t("none"), text: t("offer") })], ...devices, ...(isPlain ? [] : [/** @type {[string, string]} */ ([AS_IT_IS, t("unchanged")])])], isPlain ? meters[0]?.device ?? "" : AS_IT_IS),
    noted("from", t("from"), h("input", { name: "from", type: "date", value: energy?.from ?? "" })),
    ...(preset ? ofPreset[preset]() : []),
    figure("added", `${t("added")}, ${unit}`, added?.price),
    figure("standing", t("standing"), standing?.price),
    choice("per", t("standingPer"), [["month", t("per_month")], ["day", t("per_day")], ["year", t("per_year")]], standing?.per ?? "month"),
    figure("vat", t("vatPercent"), vat?.price),
    figure("feedIn", `${t("feedIn")}, ${unit}`, feedIn?.price),
  ];
}

/** The names of weekdays, from one to another. @param {number} first @param {number} last */
function daysFrom(first, last) {
  return [first, last].map((day) => dated(new Date(2024, 0, day), { weekday: "short" })).join("–");
}

/**
 * A tariff with what the fields say.
 * @param {Tariff} tariff
 * @param {Preset | null} preset
 * @param {Map<string, Input>} inputs
 * @param {import("../data/home.js").Home} known
 * @returns {Tariff}
 */
function withFields(tariff, preset, inputs, known) {
  const text = (/** @type {string} */ name) => inputs.get(name)?.value.trim() || undefined;
  const figure = (/** @type {string} */ name) => text(name) === undefined ? undefined : Number(text(name));
  const before = linesByRole(tariff.lines);
  const from = text("from");
  let { lines } = tariff;
  const put = (/** @type {Role} */ role, /** @type {Line | null} */ line) => { lines = withLine(lines, role, line); };

  if (preset) put("energy", { ...energyLine(before.energy, preset, text, figure, known), from });
  const per = { standing: text("per"), added: undefined, vat: "percent", feedIn: "sold" };
  for (const role of FLAT) {
    const line = before[role];
    const isOnly = lines.filter(({ name }) => name === line?.name).length <= 1;
    // Without its newest price an older one would hold again.
    const price = figure(role) ?? (isOnly ? undefined : 0);
    const isTogether = !line || line.from === before.energy?.from;
    const { price: _, ...kept } = line ?? { name: nameOf(/** @type {Role} */ (role)) };
    put(role, price === undefined ? null : { ...kept, per: per[/** @type {keyof typeof per} */ (role)], from: isTogether ? from : line.from, price });
  }
  const meter = text("meter");
  const { meters, ...others } = tariff;
  return { ...others, ...(meter === AS_IT_IS ? { meters } : meter ? { meters: [{ device: meter }] } : {}), lines };
}

/**
 * The line of the energy by a preset; what else it has stays.
 * @param {Line | undefined} line
 * @param {Preset} preset
 * @param {(name: string) => string | undefined} text
 * @param {(name: string) => number | undefined} figure
 * @param {import("../data/home.js").Home} known
 * @returns {Line}
 */
function energyLine(line, preset, text, figure, known) {
  const { price: _, zones = [], tiers: __, series: ___, times: ____, ...kept } = line ?? { name: nameOf("energy") };
  const price = figure("price") ?? 0;
  if (preset === "zones") return { ...kept, price, zones: [{ ...zones[0], name: zones[0]?.name ?? t("secondPrice"), price: figure("price2") ?? 0, hours: text("hours"), days: text("days") }] };
  if (preset === "tiers") {
    const given = ["", "2", "3"].map((n) => ({ to: figure(`limit${n}`), price: figure(`price${n}`) ?? 0 })).filter((_, n) => n < 2 || figure("price3") !== undefined);
    return { ...kept, tiers: given.map(({ to, price }, n) => n === given.length - 1 ? { price } : { to, price }) };
  }
  if (preset === "flat") return { ...kept, price };
  const [device = "", metric = "price"] = text("series")?.split(" ") ?? [];
  const isSame = line?.series?.device === device && line.series.metric === metric;
  const unit = known.devices.find((other) => other.device_id === device)?.metrics[metric]?.unit ?? "";
  const times = isSame ? line?.times : FACTORS.find(([form]) => form.test(unit))?.[1];
  const [slot = "1h", holds] = [text("slot"), text("holds")];
  return { ...kept, ...(isSame && line?.price !== undefined && { price: line.price }), ...(times && { times }), series: { device, metric, slot, ...(holds !== slot && { holds }) } };
}
