// Charts by uPlot: lines in their band, bars of parts, and the table behind each. Asks for no data.

import { chosen, note } from "../data/address.js";
import { h, svg, table, tableBehind } from "./dom.js";
import { absent } from "./lack.js";
import { day, isolated, moment, month, number, percent, shownUnit, shownValue, written } from "../words/format.js";
import { limitLine } from "./limit.js";
import { savePicture } from "./picture.js";
import { locale, t } from "../words/words.js";

/** @typedef {import("../vendor/uPlot.js")} Plot */
/** @typedef {{time: number, mean: number | null, min?: number | null, max?: number | null, coverage?: number}} Point time in seconds */
/** @typedef {{label: string, points: Point[], isOther?: boolean, isOutside?: boolean}} Line those that are compared are drawn pale, and come last */
/** @typedef {{range: [number, number], splits: number[], top: number, place: (value: number) => number, value: (place: number) => number}} Field the field of outside lines, below the others up to `top`; `place` puts its values on their axis, `value` reads them */
/** @typedef {{from: number, to: number | null, text: string}} Mark what somebody noted; times in seconds */
/** @typedef {{label: string, colour: number | null, isPale: boolean}} Stacked a part of bars; what is left has no colour */
/** @typedef {{value: number, done: (value: number) => void}} Limit a line that a person moves, in the unit that is shown */

/** The patterns of lines on paper, and of those that have no colour of their own. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4], [12, 6], [3, 6]];
/** The heights of a chart, and of one with a field for outside, and the share of that field. */
const [HEIGHT, HIGH, OUTSIDE] = [260, 360, 0.25];
/** From this width in pixels lines have their names at their ends, which take so many. */
const [WIDE, NAMES] = [700, 150];
/** The width of a line that is not the nearest. */
const THIN = 1.6;
/** The longest range in days in which nights are shaded. */
const MAX_NIGHTS = 31;

/** The colours of the page, which change with light and dark. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { lines: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => of(`--line-${n}`)), text: of("--text"), grid: of("--grid"), night: of("--night"), soft: of("--soft"), warn: of("--warn"), rest: of("--rest"), card: of("--card") };
}

/**
 * A chart of lines on one axis of time, and its table.
 * @param {{title: string, when?: string, unit: string | null, lines: Line[], range: [number, number], step?: number, lacks?: boolean, isState?: boolean, select?: (from: number, to: number) => void, marks?: Mark[], episodes?: [number, number][], limit?: Limit}} asked `isState` where values are 0 or 1
 */
export function lineChart({ title, when = "", unit, lines, range, step, lacks = false, isState = false, select, marks = [], episodes = [], limit }) {
  const withBand = lines.filter((it) => !it.isOther).length === 1 && lines[0].points.some((point) => point.min !== undefined);
  const shown = (/** @type {number | null | undefined} */ value) =>
    value === null || value === undefined ? value : shownValue(value, unit);
  const columns = lines.flatMap(({ points, isOther }) => {
    const column = (/** @type {"mean" | "min" | "max"} */ name) =>
      withGaps(points.map((point) => [point.time, shown(point[name]) ?? null]), step);
    return withBand && !isOther ? [column("mean"), column("min"), column("max")] : [column("mean")];
  });
  const field = limit || isState ? null : fieldOf(lines.map(({ isOutside = false }, place) => ({ isOutside, values: columns[place].flatMap(([, value]) => value ?? []) })));
  if (field) lines.forEach(({ isOutside }, place) => { if (isOutside) columns[place] = columns[place].map(([time, value]) => [time, value === null ? null : field.place(value)]); });
  const data = joined(columns);
  if (!columns.some((column) => column.some(([, value]) => value !== null))) return nothing(lacks);
  const at = whenOf(step);
  const { lines: strokes, night, warn, text, soft } = colours();
  const own = lines.filter((line) => !line.isOther);
  const inside = own.filter((line) => !line.isOutside || !field);
  const looks = lines.map(({ isOther, isOutside }, index) => {
    const place = Math.max(0, inside.indexOf(own[index % own.length]));
    const stroke = isOutside && field ? soft : strokes[place % DASHES.length];
    return { stroke: `${stroke}${isOther ? "70" : ""}`, dash: place < DASHES.length ? [] : DASHES[1 + (place % (DASHES.length - 1))], printed: DASHES[place % DASHES.length] };
  });
  /** @type {import("../vendor/uPlot.js").Series[]} */
  const series = lines.flatMap(({ label, isOther, isOutside }, place) => {
    const { stroke, dash } = looks[place];
    const value = (/** @type {any} */ _, /** @type {number | null | undefined} */ it) => (it === null || it === undefined ? "" : `${number(field && isOutside ? field.value(it) : it)} ${shownUnit(unit)}`);
    if (isOther) return [{ label, stroke, value, width: 1.5, dash, points: { show: false } }];
    const few = columns[withBand ? 0 : place].length < 60;
    const mean = { label, stroke, value, width: lines.length > 1 ? THIN : 2, dash, points: { show: few && !isOutside, size: 5 }, ...(field && isOutside && { fill: `${soft}22`, fillTo: field.range[0] }) };
    const edge = { stroke: "transparent", value, points: { show: false } };
    return withBand ? [mean, { ...edge, label: t("min") }, { ...edge, label: t("max") }] : [mean];
  });
  // Each with a piece of its line; the legend of the chart has colours only.
  const pieces = looks.map(({ stroke, dash }) => svg("svg", { class: "piece", viewBox: "0 0 40 4", "aria-hidden": "true" }, svg("path", { d: "M0 2H40", stroke, "stroke-width": "3", "stroke-dasharray": dash.join(" ") })));
  return draw({
    title,
    when,
    summary: summaryOf(lines, unit),
    pieces: lines.length > 1 ? pieces : [],
    data,
    limit,
    behind: () => tableOf(title, unit, lines, at),
    height: field ? HIGH : HEIGHT,
    printed: looks.map(({ printed }) => printed),
    options: {
      ...axes(unit, field),
      ...(lines.length > 1 && { focus: { alpha: 0.4 }, padding: [null, (plot) => (plot.width > WIDE ? NAMES : 12), null, null] }),
      scales: { x: { time: true, range: () => range }, ...(field ? { y: { range: () => field.range } } : limit ? { y: { range: (_, min, max) => around(min, max, limit.value) } } : isState && { y: { range: () => [-0.1, 1.1] } }) },
      series: [{ value: (_, it) => (it ? at(it) : "") }, ...series],
      bands: withBand ? [{ series: [3, 2], fill: `${strokes[0]}38` }] : [],
      hooks: {
        drawClear: [(plot) => nights(plot, night), (plot) => episodes.forEach(([from, to]) => shade(plot, from, to, `${warn}38`))],
        draw: [(plot) => marks.forEach((mark) => drawMark(plot, mark, text)), (plot) => lines.length > 1 && drawNames(plot, text, own.length)],
        // The nearest line is bold, and its name.
        setSeries: [(plot, near, /** @type {any} */ { focus }) => { if (focus) plot.series.forEach((line, place) => { if (place) line.width = place === near ? 3.5 : THIN; }); }],
        setSelect: [
          (plot) => {
            if (plot.select.width < 8) return;
            const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((x) => plot.posToVal(x, "x"));
            select?.(from, to);
          },
        ],
      },
      cursor: { drag: { x: Boolean(select), y: false, setScale: false }, ...(lines.length > 1 && { focus: { prox: 24 } }) },
    },
  });
}

/**
 * The field of lines outside below those inside, on a scale of its own; null where there are not both.
 * @param {{isOutside: boolean, values: number[]}[]} lines
 * @returns {Field | null}
 */
function fieldOf(lines) {
  const of = (/** @type {boolean} */ isOut) => lines.filter(({ isOutside }) => isOutside === isOut).flatMap(({ values }) => values);
  const [inside, outside] = [of(false), of(true)];
  if (!inside.length || !outside.length) return null;
  const [[low, high], [outLow, outHigh]] = [padded(inside), padded(outside)];
  const height = (high - low) / (1 - OUTSIDE - 0.04);
  const bottom = high - height;
  const scale = (height * OUTSIDE) / (outHigh - outLow);
  const place = (/** @type {number} */ value) => bottom + (value - outLow) * scale;
  return {
    range: [bottom, high],
    splits: [...ticks(outLow, outHigh, 2).map(place), ...ticks(low, high, 5)],
    top: place(outHigh),
    place,
    value: (at) => (at - bottom) / scale + outLow,
  };
}

/** The ends of values, with some room. @param {number[]} values */
function padded(values) {
  const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const edge = (high - low || 1) * 0.06;
  return [low - edge, high + edge];
}

/** Round values in a range, about `most` of them. @param {number} low @param {number} high @param {number} most */
function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (([1, 2, 5].find((it) => it * power >= rough) ?? 10) * power);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, n) => (first + n) * step);
}

/**
 * Writes the names of lines at their ends, where the chart is wide, none over another; that of the nearest line always.
 * @param {Plot} plot
 * @param {string} colour
 * @param {number} most the lines that have names there; those that are compared come after them
 */
function drawNames(plot, colour, most) {
  const { ctx, bbox, data } = plot;
  const [density, isWide] = [devicePixelRatio, plot.width > WIDE];
  const ends = plot.series.flatMap((line, place) => {
    const last = place && line.show ? [...(data[place] ?? [])].reverse().find((value) => value !== null && value !== undefined) : null;
    const isNear = line.width === 3.5;
    return last === null || last === undefined || !(isNear || (isWide && place <= most)) ? [] : [{ line, isNear, y: plot.valToPos(last, "y", true) }];
  }).sort((a, b) => a.y - b.y);
  const step = 15 * density;
  // From the top down, then up again from the foot, so that all stay in the chart.
  ends.forEach((end, n) => { if (n) end.y = Math.max(end.y, ends[n - 1].y + step); });
  ends.reverse().forEach((end, n) => { end.y = Math.min(end.y, n ? ends[n - 1].y - step : bbox.top + bbox.height); });
  ctx.save();
  ctx.textBaseline = "middle";
  ctx.textAlign = isWide ? "left" : "right";
  for (const { line, isNear, y } of ends) {
    const x = bbox.left + bbox.width + (isWide ? 8 : -8) * density;
    ctx.fillStyle = String(typeof line.stroke === "function" ? line.stroke(plot, 0) : line.stroke);
    if (isWide) ctx.fillRect(x, y - density, 10 * density, 2.5 * density);
    ctx.fillStyle = colour;
    ctx.font = `${isNear ? 700 : 400} ${12 * density}px system-ui`;
    ctx.fillText(String(line.label), x + (isWide ? 14 * density : 0), y, (NAMES - 26) * density);
  }
  ctx.restore();
}

/**
 * An axis that has a limit in it, and room to move it.
 * @param {number | null} min
 * @param {number | null} max
 * @param {number} limit
 * @returns {[number, number]}
 */
function around(min, max, limit) {
  const [low, high] = [Math.min(min ?? limit, limit), Math.max(max ?? limit, limit)];
  const edge = (high - low || Math.abs(high) || 1) * 0.15;
  return [low - edge, high + edge];
}

/**
 * A chart of bars, and its table. What is sold hangs below the axis.
 * @param {{title: string, when?: string, unit: string, bars: {time: number, value: number | null, below?: number | null, money?: string, price?: number | null, note?: string, other?: number | null, parts?: number[]}[], parts?: Stacked[], lacks?: boolean, versus?: string, priceUnit?: string, range?: [number, number], step?: number, select?: (time: number) => void}} asked `other` is compared, `parts` stand on one another from the first, `price` is a line with its own axis
 */
export function barChart({ title, when = "", unit, bars, parts = [], lacks = false, versus = "", priceUnit = "", range, step: length, select }) {
  if (!bars.some(({ value, below, other, price }) => value !== null || below || other || price)) return nothing(lacks);
  const { lines, soft, rest, card } = colours();
  const step = length ?? (bars.length > 1 ? bars[bars.length - 1].time - bars[bars.length - 2].time : 3600);
  const at = whenOf(step);
  const hasBelow = bars.some((bar) => bar.below);
  const hasMoney = bars.some((bar) => bar.money);
  /** @type {any[]} */
  const data = [bars.map((bar) => bar.time), bars.map((bar) => bar.value)];
  if (hasBelow) data.push(bars.map((bar) => (bar.below ? -bar.below : null)));
  // Each part is drawn as high as the sum of all parts up to it, and lower parts are drawn over higher ones.
  const upTo = (/** @type {number} */ place) => bars.map((bar) => (bar.value === null || !bar.parts?.length ? null : bar.parts.slice(0, place + 1).reduce((sum, part) => sum + part, 0)));
  const stack = parts.map((part, place) => ({ ...part, place })).reverse();
  data.push(...stack.map(({ place }) => upTo(place)));
  if (versus) data.push(bars.map((bar) => bar.other ?? null));
  if (priceUnit) data.push(bars.map((bar) => bar.price ?? null));
  // A day or a month stands under the middle of its bar; an hour begins with its own.
  const half = step >= 86_400 && !priceUnit ? step / 2 : 0;
  const paths = window.uPlot.paths.bars?.({ size: [0.8, 90], align: half ? 0 : 1 });
  const value = (/** @type {any} */ _, /** @type {number | null | undefined} */ it) => (it === null || it === undefined ? "" : `${number(Math.abs(it))} ${unit}`);
  const withMoney = (/** @type {any} */ plot, /** @type {number | null} */ it, /** @type {number} */ __, /** @type {number | null} */ place) => [value(plot, it), bars[place ?? -1]?.money].filter(Boolean).join(" · ");
  const one = (/** @type {string} */ label, /** @type {number} */ place) => ({ label, stroke: lines[place], ...(parts.length && !place ? { stroke: "transparent" } : { fill: `${lines[place]}d0` }), paths, value: place ? value : withMoney, points: { show: false } });
  const layers = stack.map(({ label, colour, isPale, place }) => {
    const full = colour === null ? rest : lines[colour];
    const fill = isPale ? `color-mix(in srgb, ${full} 28%, ${card})` : full;
    const own = (/** @type {any} */ plot, /** @type {number | null} */ _, /** @type {number} */ __, /** @type {number | null} */ bar) => value(plot, bars[bar ?? -1]?.parts?.[place] ?? null);
    return { label, stroke: card, width: 1, fill, paths, value: own, points: { show: false } };
  });
  const outline = { label: versus, stroke: soft, dash: [4, 3], fill: "transparent", width: 1.5, paths, value, points: { show: false } };
  const price = { label: priceUnit, scale: "price", stroke: lines[1], width: 2, paths: window.uPlot.paths.stepped?.({ align: 1 }), value: (/** @type {any} */ _, /** @type {number | null} */ it) => (it === null || it === undefined ? "" : number(it, 4)), points: { show: false } };
  const { axes: [timeAxis, axis] } = axes(unit);
  const shown = (/** @type {number | null | undefined} */ it) => (it === null || it === undefined ? t("none") : number(it));
  const rows = () =>
    table(
      title,
      [t("time"), ...(hasBelow ? [t("bought", { unit }), t("soldIn", { unit })] : [unit]), ...(hasMoney ? [t("whatItCost")] : []), ...(priceUnit ? [priceUnit] : []), ...parts.map(({ label }) => label), ...(versus ? [versus] : []), t("notes")],
      bars.map((bar) => [
        at(bar.time),
        shown(bar.value),
        ...(hasBelow ? [shown(bar.below || null)] : []),
        ...(hasMoney ? [bar.money ?? ""] : []),
        ...(priceUnit ? [bar.price === null || bar.price === undefined ? t("none") : number(bar.price, 4)] : []),
        ...parts.map((_, place) => shown(bar.parts?.[place])),
        ...(versus ? [shown(bar.other)] : []),
        bar.note ?? "",
      ]),
    );
  const most = bars.reduce((best, bar) => ((bar.value ?? -1) > (best.value ?? -1) ? bar : best), bars[0]);
  return draw({
    title,
    when,
    summary: [most?.value ? t("highest", { value: number(most.value), unit, time: at(most.time) }) : t("noValues"), ...(versus ? [t("outline", { versus })] : [])],
    pieces: [],
    data,
    behind: rows,
    options: {
      axes: [timeAxis, axis, ...(priceUnit ? [{ ...axis, scale: "price", side: /** @type {const} */ (1), label: priceUnit, grid: { show: false } }] : [])],
      scales: { x: { time: true, range: (_, min, max) => { const [from, to] = range ?? [min - step * 0.2, max + step]; return [from - half, to - half]; } }, y: { range: (_, min, max) => [Math.min(0, min * 1.1), Math.max(max * 1.1, 0.01)] } },
      series: [{ value: (_, it) => (it ? at(it) : "") }, one(hasBelow ? t("boughtShort") : unit, 0), ...(hasBelow ? [one(t("soldShort"), 1)] : []), ...layers, ...(versus ? [outline] : []), ...(priceUnit ? [price] : [])],
      cursor: { drag: { x: false, y: false } },
      hooks: { ready: [(plot) => plot.over.addEventListener("click", () => {
        const bar = bars[plot.cursor.idx ?? -1];
        if (bar) select?.(bar.time);
      })] },
    },
  });
}

/**
 * @param {{title: string, when: string, summary: string[], pieces: Node[], data: any, behind: () => Node, limit?: Limit, height?: number, printed?: number[][], options: Partial<import("../vendor/uPlot.js").Options>}} asked `printed` are the patterns of lines on paper
 */
function draw({ title, when, summary, pieces, data, behind, limit, height = HEIGHT, printed = [], options }) {
  const place = h("div", { class: "plot", role: "img", "aria-label": t("labelled", { name: title, text: summary.join(t("between")) }) });
  /** @type {Plot | null} */
  let plot = null;
  const lines = (options.series ?? []).slice(1);
  const colours = lines.map(({ stroke }) => String(stroke ?? ""));
  const take = h("button", { type: "button", class: "small", onclick: () => plot && savePicture(plot.ctx.canvas, { title, when, summary, colours: pieces.length ? colours : [] }) }, t("picture"));
  const legend = summary.map((text, n) => (pieces[n] ? legendEntry(`${title}: ${lines[n].label}`, text, pieces[n], n + 1, () => plot) : h("span", null, text)));
  const node = h("figure", null, place, h("figcaption", null, ...legend, take), tableBehind(title, behind));
  const paper = window.matchMedia("print");
  const onPaper = () => {
    printed.forEach((dash, n) => { if (plot?.series[n + 1]) plot.series[n + 1].dash = paper.matches ? dash : lines[n].dash; });
    plot?.redraw(false);
  };
  paper.addEventListener("change", onPaper);
  const size = new ResizeObserver(() => {
    if (!node.isConnected) {
      size.disconnect();
      paper.removeEventListener("change", onPaper);
      plot?.destroy();
      return;
    }
    const width = place.clientWidth;
    if (!plot && width) {
      plot = new window.uPlot(/** @type {any} */ ({ width, height, ...options }), data, place);
      if (limit) limitLine(plot, limit);
      lines.forEach(({ label }, n) => { if (pieces[n] && hiddenLines().includes(`${title}: ${label}`)) plot?.setSeries(n + 1, { show: false }); });
    } else if (plot && Math.abs(plot.width - width) > 1) plot.setSize({ width, height });
  });
  size.observe(place);
  return node;
}

/** The lines that somebody has hidden; the address tells which. */
function hiddenLines() {
  return chosen("hide").split("|").filter(Boolean);
}

/**
 * An entry of a legend: it lights its line, and hides it when it is pressed.
 * @param {string} name
 * @param {string} text
 * @param {Node} piece of its line
 * @param {number} place of its series
 * @param {() => Plot | null} plot
 */
function legendEntry(name, text, piece, place, plot) {
  const light = (/** @type {boolean} */ isLit) => () => plot()?.setSeries(isLit ? place : /** @type {any} */ (null), { focus: true });
  const touch = () => {
    const others = hiddenLines().filter((it) => it !== name);
    const isHidden = others.length === hiddenLines().length;
    note({ hide: [...others, ...(isHidden ? [name] : [])].join("|") });
    entry.setAttribute("aria-pressed", String(!isHidden));
    plot()?.setSeries(place, { show: !isHidden });
  };
  const entry = h("button", { type: "button", "aria-pressed": String(!hiddenLines().includes(name)), onclick: touch, onpointerenter: light(true), onpointerleave: light(false), onfocus: light(true), onblur: light(false) }, piece, text);
  return entry;
}

/** @param {string | null} unit @param {Field | null} [field] */
function axes(unit, field) {
  const { text, grid } = colours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const values = (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((at) => (Math.round((field && at <= field.top ? field.value(at) : at) * 1e6) / 1e6 || 0).toLocaleString(locale));
  return {
    axes: [
      { ...axis, space: 75, values: (/** @type {any} */ _, /** @type {number[]} */ splits, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number} */ step) => splits.map((it, place) => tick(it, step, place)) },
      { ...axis, label: shownUnit(unit), labelSize: 18, values, size: 54, ...(field && { splits: () => field.splits }) },
    ],
  };
}

/**
 * A mark of the axis of time: the day where one begins.
 * @param {number} seconds
 * @param {number} step
 * @param {number} place
 */
function tick(seconds, step, place) {
  const date = new Date(seconds * 1000);
  const day = written(date, { day: "numeric", month: "short" });
  if (step >= 2_419_200) return written(date, { month: "short", year: "2-digit" });
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  if (step >= 86_400 || isMidnight) return day;
  const time = written(date, { hour: "2-digit", minute: "2-digit" });
  return place === 0 ? `${time}\n${day}` : time;
}

/**
 * How the time of a row of so many seconds is written: that of a day or a month has no hour.
 * @param {number} [step]
 * @returns {(seconds: number) => string}
 */
function whenOf(step = 0) {
  if (step >= 2_419_200) return (it) => month(it * 1000);
  return (it) => (step > 80_000 ? day(it * 1000) : moment(it * 1000));
}

/** @param {boolean} lacks whether the server is still summing up */
function nothing(lacks) {
  return h("p", null, absent(lacks, t("noValuesInRange")));
}

/**
 * Shades the hours from 22 to 6.
 * @param {Plot} plot
 * @param {string} colour
 */
function nights(plot, colour) {
  const { min = 0, max = 0 } = plot.scales.x;
  const [from, to] = [min ?? 0, max ?? 0];
  if ((to - from) / 86_400 > MAX_NIGHTS) return;
  const first = new Date(from * 1000);
  for (let date = new Date(first.getFullYear(), first.getMonth(), first.getDate() - 1); date.getTime() / 1000 < to; date.setDate(date.getDate() + 1)) {
    const dusk = new Date(date).setHours(22) / 1000;
    shade(plot, dusk, new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1, 6).getTime() / 1000, colour);
  }
}

/**
 * Shades a time, where it is shown.
 * @param {Plot} plot
 * @param {number} from
 * @param {number} to
 * @param {string} colour
 */
function shade(plot, from, to, colour) {
  const { min, max } = plot.scales.x;
  const { ctx, bbox } = plot;
  const [left, right] = [Math.max(from, min ?? from), Math.min(to, max ?? to)].map((it) => plot.valToPos(it, "x", true));
  if (right <= left) return;
  ctx.save();
  ctx.fillStyle = colour;
  ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
  ctx.restore();
}

/**
 * Draws what somebody noted: a line where it begins, with its text.
 * @param {Plot} plot
 * @param {Mark} mark
 * @param {string} colour
 */
function drawMark(plot, { from, to, text }, colour) {
  const { min, max } = plot.scales.x;
  if (from < (min ?? from) || from > (max ?? from)) return;
  if (to) shade(plot, from, to, `${colour}14`);
  const { ctx, bbox } = plot;
  const x = plot.valToPos(from, "x", true);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.setLineDash([3, 3]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  // The axes leave their alignment behind. Near the right edge there is room on the left only.
  const isLate = x > bbox.left + bbox.width * 0.7;
  ctx.textAlign = isLate ? "right" : "left";
  ctx.fillText(text.slice(0, 30), x + (isLate ? -4 : 4) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  ctx.restore();
}

/**
 * Puts a gap where two points are further apart than `step` by half.
 * @param {[number, number | null][]} points
 * @param {number} [step] seconds; without it each point is drawn
 */
function withGaps(points, step) {
  if (!step) return points;
  return points.flatMap((point, place) => {
    const next = points[place + 1];
    /** @type {[number, number | null][]} */
    const gap = next && next[0] - point[0] > step * 1.5 ? [[point[0] + step, null]] : [];
    return [point, ...gap];
  });
}

/**
 * Columns on one axis: null is a gap, and undefined a time at which only another column has a point.
 * @param {[number, number | null][][]} columns
 */
function joined(columns) {
  const times = [...new Set(columns.flatMap((column) => column.map(([time]) => time)))].sort((a, b) => a - b);
  const place = new Map(times.map((time, index) => [time, index]));
  const values = columns.map((column) => {
    /** @type {(number | null | undefined)[]} */
    const aligned = new Array(times.length).fill(undefined);
    for (const [time, value] of column) aligned[place.get(time) ?? 0] = value;
    return aligned;
  });
  return [times, ...values];
}

/**
 * @param {Line[]} lines
 * @param {string | null} unit
 */
function summaryOf(lines, unit) {
  const of = (/** @type {number} */ it) => `${number(shownValue(it, unit))} ${shownUnit(unit)}`.trim();
  const parts = lines.map(({ label, points }) => {
    const lows = points.map((it) => it.min ?? it.mean).filter((it) => it !== null);
    const highs = points.map((it) => it.max ?? it.mean).filter((it) => it !== null);
    if (!lows.length) return t("lineNoValues", { name: isolated(label) });
    const low = lows.reduce((a, b) => Math.min(a, b));
    const high = highs.reduce((a, b) => Math.max(a, b));
    return t("lineFromTo", { name: isolated(label), low: of(low), high: of(high) });
  });
  const thin = lines.flatMap(({ points }) => points).filter((it) => it.coverage !== undefined && it.coverage < 0.5).length;
  return thin ? [...parts, t("thin", { count: thin })] : parts;
}

/**
 * @param {string} title
 * @param {string | null} unit
 * @param {Line[]} lines
 * @param {(seconds: number) => string} at
 */
function tableOf(title, unit, lines, at) {
  const shown = (/** @type {number | null | undefined} */ it) => (it === null || it === undefined ? t("none") : number(shownValue(it, unit)));
  if (lines.length === 1) {
    const { points } = lines[0];
    const rows = points.map((it) => [at(it.time), shown(it.mean), shown(it.min), shown(it.max), it.coverage === undefined ? "" : percent(it.coverage)]);
    return table(`${title}, ${shownUnit(unit)}`, [t("time"), t("mean"), t("min"), t("max"), t("coverage")], rows);
  }
  const times = [...new Set(lines.flatMap(({ points }) => points.map((it) => it.time)))].sort((a, b) => a - b);
  const byTime = lines.map(({ points }) => new Map(points.map((it) => [it.time, it.mean])));
  const rows = times.map((time) => [at(time), ...byTime.map((line) => shown(line.get(time)))]);
  return table(`${title}, ${shownUnit(unit)}`, [t("time"), ...lines.map(({ label }) => label)], rows);
}
