// Charts by uPlot: lines in their band, bars, and the table behind each. Asks for no data.

import { h, svg, table, tableBehind } from "./dom.js";
import { absent } from "./lack.js";
import { day, isolated, moment, month, number, percent, shownUnit, shownValue, written } from "../words/format.js";
import { limitLine } from "./limit.js";
import { savePicture } from "./picture.js";
import { locale, t } from "../words/words.js";

/** @typedef {import("../vendor/uPlot.js")} Plot */
/** @typedef {{time: number, mean: number | null, min?: number | null, max?: number | null, coverage?: number}} Point time in seconds */
/** @typedef {{label: string, points: Point[], isOther?: boolean}} Line those that are compared are drawn pale, and come last */
/** @typedef {{from: number, to: number | null, text: string}} Mark what somebody noted; times in seconds */
/** @typedef {{value: number, done: (value: number) => void}} Limit a line that a person moves, in the unit that is shown */

/** The patterns of lines, so that none is told by its colour alone. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4], [12, 6], [3, 6], [14, 3, 3, 3, 3, 3]];
const HEIGHT = 260;
/** The longest range in days in which nights are shaded. */
const MAX_NIGHTS = 31;

/** The colours of the page, which change with light and dark. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { lines: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => of(`--line-${n}`)), text: of("--text"), grid: of("--grid"), night: of("--night"), soft: of("--soft"), warn: of("--warn") };
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
  const data = joined(columns);
  if (!columns.some((column) => column.some(([, value]) => value !== null))) return nothing(lacks);
  const at = whenOf(step);
  const { lines: strokes, night, warn, text } = colours();
  const most = lines.filter((it) => !it.isOther).length;
  const looks = lines.map(({ isOther }, index) => ({ pale: isOther ? "70" : "", place: isOther ? index % most : index })).map(({ pale, place }) => ({ stroke: `${strokes[place % strokes.length]}${pale}`, dash: DASHES[(place + Math.floor(place / strokes.length)) % DASHES.length] }));
  /** @type {import("../vendor/uPlot.js").Series[]} */
  const series = lines.flatMap(({ label, isOther }, place) => {
    const { stroke, dash } = looks[place];
    const value = (/** @type {any} */ _, /** @type {number | null | undefined} */ it) => (it === null || it === undefined ? "" : `${number(it)} ${shownUnit(unit)}`);
    if (isOther) return [{ label, stroke, value, width: 1.5, dash, points: { show: false } }];
    const few = columns[withBand ? 0 : place].length < 60;
    const mean = { label, stroke, value, width: 2, dash, points: { show: few, size: 5 } };
    const edge = { stroke: "transparent", value, points: { show: false } };
    return withBand ? [mean, { ...edge, label: t("min") }, { ...edge, label: t("max") }] : [mean];
  });
  // Each with a piece of its line, because the legend of the chart has colours only.
  const pieces = looks.map(({ stroke, dash }) => svg("svg", { class: "piece", viewBox: "0 0 40 4", "aria-hidden": "true" }, svg("path", { d: "M0 2H40", stroke, "stroke-width": "3", "stroke-dasharray": dash.join(" ") })));
  return draw({
    title,
    when,
    summary: summaryOf(lines, unit),
    pieces: lines.length > 1 ? pieces : [],
    data,
    limit,
    behind: () => tableOf(title, unit, lines, at),
    options: {
      ...axes(unit),
      scales: { x: { time: true, range: () => range }, ...(limit ? { y: { range: (_, min, max) => around(min, max, limit.value) } } : isState && { y: { range: () => [-0.1, 1.1] } }) },
      series: [{ value: (_, it) => (it ? at(it) : "") }, ...series],
      bands: withBand ? [{ series: [3, 2], fill: `${strokes[0]}38` }] : [],
      hooks: {
        drawClear: [(plot) => nights(plot, night), (plot) => episodes.forEach(([from, to]) => shade(plot, from, to, `${warn}38`))],
        draw: [(plot) => marks.forEach((mark) => drawMark(plot, mark, text))],
        setSelect: [
          (plot) => {
            if (plot.select.width < 8) return;
            const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((x) => plot.posToVal(x, "x"));
            select?.(from, to);
          },
        ],
      },
      cursor: { drag: { x: Boolean(select), y: false, setScale: false } },
    },
  });
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
 * @param {{title: string, when?: string, unit: string, bars: {time: number, value: number | null, below?: number | null, money?: string, price?: number | null, note?: string, other?: number | null, lit?: number | null}[], lacks?: boolean, versus?: string, lit?: string, priceUnit?: string, range?: [number, number], step?: number, select?: (time: number) => void}} asked `other` is compared, `lit` a part, `price` a line with its own axis
 */
export function barChart({ title, when = "", unit, bars, lacks = false, versus = "", lit = "", priceUnit = "", range, step: length, select }) {
  if (!bars.some(({ value, below, other, price }) => value !== null || below || other || price)) return nothing(lacks);
  const { lines, soft } = colours();
  const step = length ?? (bars.length > 1 ? bars[bars.length - 1].time - bars[bars.length - 2].time : 3600);
  const at = whenOf(step);
  const hasBelow = bars.some((bar) => bar.below);
  const hasMoney = bars.some((bar) => bar.money);
  /** @type {any[]} */
  const data = [bars.map((bar) => bar.time), bars.map((bar) => bar.value)];
  if (hasBelow) data.push(bars.map((bar) => (bar.below ? -bar.below : null)));
  if (lit) data.push(bars.map((bar) => bar.lit ?? null));
  if (versus) data.push(bars.map((bar) => bar.other ?? null));
  if (priceUnit) data.push(bars.map((bar) => bar.price ?? null));
  const paths = window.uPlot.paths.bars?.({ size: [0.8, 60], align: 1 });
  const value = (/** @type {any} */ _, /** @type {number | null} */ it) => (it === null || it === undefined ? "" : `${number(Math.abs(it))} ${unit}`);
  const withMoney = (/** @type {any} */ plot, /** @type {number | null} */ it, /** @type {number} */ __, /** @type {number | null} */ place) => [value(plot, it), bars[place ?? -1]?.money].filter(Boolean).join(" · ");
  const one = (/** @type {string} */ label, /** @type {number} */ place) => ({ label, stroke: lines[place], fill: `${lines[place]}${lit ? "30" : "99"}`, paths, value: place ? value : withMoney, points: { show: false } });
  const part = { label: lit, stroke: lines[4], fill: lines[4], paths, value, points: { show: false } };
  const outline = { label: versus, stroke: soft, dash: [4, 3], fill: "transparent", width: 1.5, paths, value, points: { show: false } };
  const price = { label: priceUnit, scale: "price", stroke: lines[1], width: 2, paths: window.uPlot.paths.stepped?.({ align: 1 }), value: (/** @type {any} */ _, /** @type {number | null} */ it) => (it === null || it === undefined ? "" : number(it, 4)), points: { show: false } };
  const { axes: [timeAxis, axis] } = axes(unit);
  const shown = (/** @type {number | null | undefined} */ it) => (it === null || it === undefined ? t("none") : number(it));
  const rows = () =>
    table(
      title,
      [t("time"), ...(hasBelow ? [t("bought", { unit }), t("soldIn", { unit })] : [unit]), ...(hasMoney ? [t("whatItCost")] : []), ...(priceUnit ? [priceUnit] : []), ...(lit ? [lit] : []), ...(versus ? [versus] : []), t("notes")],
      bars.map((bar) => [
        at(bar.time),
        shown(bar.value),
        ...(hasBelow ? [shown(bar.below || null)] : []),
        ...(hasMoney ? [bar.money ?? ""] : []),
        ...(priceUnit ? [bar.price === null || bar.price === undefined ? t("none") : number(bar.price, 4)] : []),
        ...(lit ? [shown(bar.lit)] : []),
        ...(versus ? [shown(bar.other)] : []),
        bar.note ?? "",
      ]),
    );
  const most = bars.reduce((best, bar) => ((bar.value ?? -1) > (best.value ?? -1) ? bar : best), bars[0]);
  return draw({
    title,
    when,
    summary: [most?.value ? t("highest", { value: number(most.value), unit, time: at(most.time) }) : t("noValues"), ...(lit ? [lit] : []), ...(versus ? [t("outline", { versus })] : [])],
    pieces: [],
    data,
    behind: rows,
    options: {
      axes: [timeAxis, axis, ...(priceUnit ? [{ ...axis, scale: "price", side: /** @type {const} */ (1), label: priceUnit, grid: { show: false } }] : [])],
      scales: { x: { time: true, range: range ? () => range : (_, min, max) => [min - step * 0.2, max + step] }, y: { range: (_, min, max) => [Math.min(0, min * 1.1), Math.max(max * 1.1, 0.01)] } },
      series: [{ value: (_, it) => (it ? at(it) : "") }, one(hasBelow ? t("boughtShort") : unit, 0), ...(hasBelow ? [one(t("soldShort"), 1)] : []), ...(lit ? [part] : []), ...(versus ? [outline] : []), ...(priceUnit ? [price] : [])],
      cursor: { drag: { x: false, y: false } },
      hooks: { ready: [(plot) => plot.over.addEventListener("click", () => {
        const bar = bars[plot.cursor.idx ?? -1];
        if (bar) select?.(bar.time);
      })] },
    },
  });
}

/**
 * @param {{title: string, when: string, summary: string[], pieces: Node[], data: any, behind: () => Node, limit?: Limit, options: Partial<import("../vendor/uPlot.js").Options>}} asked
 */
function draw({ title, when, summary, pieces, data, behind, limit, options }) {
  const place = h("div", { class: "plot", role: "img", "aria-label": t("labelled", { name: title, text: summary.join(t("between")) }) });
  /** @type {Plot | null} */
  let plot = null;
  const colours = (options.series ?? []).slice(1).map(({ stroke }) => String(stroke ?? ""));
  const take = h("button", { type: "button", class: "small", onclick: () => plot && savePicture(plot.ctx.canvas, { title, when, summary, colours: pieces.length ? colours : [] }) }, t("picture"));
  const node = h("figure", null, place, h("figcaption", null, ...summary.map((text, place) => h("span", null, pieces[place], text)), take), tableBehind(title, behind));
  const size = new ResizeObserver(() => {
    if (!node.isConnected) {
      size.disconnect();
      plot?.destroy();
      return;
    }
    const width = place.clientWidth;
    if (!plot && width) {
      plot = new window.uPlot(/** @type {any} */ ({ width, height: HEIGHT, ...options }), data, place);
      if (limit) limitLine(plot, limit);
    } else if (plot && Math.abs(plot.width - width) > 1) plot.setSize({ width, height: HEIGHT });
  });
  size.observe(place);
  return node;
}

/** @param {string | null} unit */
function axes(unit) {
  const { text, grid } = colours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const values = (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((it) => it.toLocaleString(locale));
  return {
    axes: [
      { ...axis, space: 75, values: (/** @type {any} */ _, /** @type {number[]} */ splits, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number} */ step) => splits.map((it, place) => tick(it, step, place)) },
      { ...axis, label: shownUnit(unit), labelSize: 18, values, size: 54 },
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
