// Charts by uPlot: lines in their band, bars, and the table behind each. Asks for no data.

import { h, svg, table, tableBehind } from "./dom.js";
import { absent } from "./lack.js";
import { day, isolated, moment, number, shownUnit, shownValue } from "./format.js";

/** @typedef {import("./vendor/uPlot.js")} Plot */
/** @typedef {{time: number, mean: number | null, min?: number | null, max?: number | null, coverage?: number}} Point time in seconds */
/** @typedef {{label: string, points: Point[]}} Line */

/** The patterns of lines, so that none is told by its colour alone. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4], [12, 6], [3, 6], [14, 3, 3, 3, 3, 3]];
const HEIGHT = 260;
/** The longest range in days in which nights are shaded. */
const MAX_NIGHTS = 31;

/** The colours of the page, which change with light and dark. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { lines: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => of(`--line-${n}`)), text: of("--text"), grid: of("--grid"), night: of("--night") };
}

/**
 * A chart of lines on one axis of time, and its table.
 * @param {{title: string, unit: string | null, lines: Line[], range: [number, number], step?: number, lacks?: boolean, select?: (from: number, to: number) => void}} asked
 */
export function lineChart({ title, unit, lines, range, step, lacks = false, select }) {
  const withBand = lines.length === 1 && lines[0].points.some((point) => point.min !== undefined);
  const shown = (/** @type {number | null | undefined} */ value) =>
    value === null || value === undefined ? value : shownValue(value, unit);
  const columns = lines.flatMap(({ points }) => {
    const column = (/** @type {"mean" | "min" | "max"} */ name) =>
      withGaps(points.map((point) => [point.time, shown(point[name]) ?? null]), step);
    return withBand ? [column("mean"), column("min"), column("max")] : [column("mean")];
  });
  const data = joined(columns);
  if (!columns.some((column) => column.some(([, value]) => value !== null))) return nothing(lacks);
  const at = whenOf(step);
  const { lines: strokes, night } = colours();
  const looks = lines.map((_, place) => ({ stroke: strokes[place % strokes.length], dash: DASHES[(place + Math.floor(place / strokes.length)) % DASHES.length] }));
  /** @type {import("./vendor/uPlot.js").Series[]} */
  const series = lines.flatMap(({ label }, place) => {
    const { stroke, dash } = looks[place];
    const value = (/** @type {any} */ _, /** @type {number | null | undefined} */ it) => (it === null || it === undefined ? "" : number(it));
    const few = columns[place].length < 60;
    const mean = { label, stroke, value, width: 2, dash, points: { show: few, size: 5 } };
    const edge = { stroke: "transparent", value, points: { show: false } };
    return withBand ? [mean, { ...edge, label: "min" }, { ...edge, label: "max" }] : [mean];
  });
  // Each with a piece of its line, because the legend of the chart has colours only.
  const pieces = looks.map(({ stroke, dash }) => svg("svg", { class: "piece", viewBox: "0 0 40 4", "aria-hidden": "true" }, svg("path", { d: "M0 2H40", stroke, "stroke-width": "3", "stroke-dasharray": dash.join(" ") })));
  return draw({
    title,
    summary: summaryOf(lines, unit),
    pieces: lines.length > 1 ? pieces : [],
    data,
    behind: () => tableOf(title, unit, lines, at),
    options: {
      ...axes(unit),
      scales: { x: { time: true, range: () => range } },
      series: [{ value: (_, it) => (it ? at(it) : "") }, ...series],
      bands: withBand ? [{ series: [3, 2], fill: `${strokes[0]}38` }] : [],
      hooks: {
        drawClear: [(plot) => nights(plot, night)],
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
 * A chart of bars, and its table. What is sold hangs below the axis.
 * @param {{title: string, unit: string, bars: {time: number, value: number | null, below?: number | null, note?: string}[], lacks?: boolean}} asked
 */
export function barChart({ title, unit, bars, lacks = false }) {
  if (!bars.some(({ value, below }) => value !== null || below)) return nothing(lacks);
  const { lines } = colours();
  const step = bars.length > 1 ? bars[bars.length - 1].time - bars[bars.length - 2].time : 3600;
  const at = whenOf(step);
  const hasBelow = bars.some((bar) => bar.below);
  /** @type {any[]} */
  const data = [bars.map((bar) => bar.time), bars.map((bar) => bar.value)];
  if (hasBelow) data.push(bars.map((bar) => (bar.below ? -bar.below : null)));
  const paths = window.uPlot.paths.bars?.({ size: [0.8, 60], align: 1 });
  const value = (/** @type {any} */ _, /** @type {number | null} */ it) => (it === null || it === undefined ? "" : number(Math.abs(it)));
  const one = (/** @type {string} */ label, /** @type {number} */ place) => ({ label, stroke: lines[place], fill: `${lines[place]}99`, paths, value, points: { show: false } });
  const rows = () =>
    table(
      title,
      ["Time", ...(hasBelow ? [`Bought, ${unit}`, `Sold, ${unit}`] : [unit]), "Notes"],
      bars.map((bar) => [
        at(bar.time),
        bar.value === null ? "none" : number(bar.value),
        ...(hasBelow ? [bar.below ? number(bar.below) : "none"] : []),
        bar.note ?? "",
      ]),
    );
  const most = bars.reduce((best, bar) => ((bar.value ?? -1) > (best.value ?? -1) ? bar : best), bars[0]);
  return draw({
    title,
    summary: [most?.value ? `highest ${number(most.value)} ${unit}, ${at(most.time)}` : "no values"],
    pieces: [],
    data,
    behind: rows,
    options: {
      ...axes(unit),
      scales: { x: { time: true, range: (_, min, max) => [min - step * 0.2, max + step] }, y: { range: (_, min, max) => [Math.min(0, min * 1.1), Math.max(max * 1.1, 0.01)] } },
      series: [{ value: (_, it) => (it ? at(it) : "") }, one(hasBelow ? "bought" : unit, 0), ...(hasBelow ? [one("sold", 1)] : [])],
      cursor: { drag: { x: false, y: false } },
    },
  });
}

/**
 * @param {{title: string, summary: string[], pieces: Node[], data: any, behind: () => Node, options: Partial<import("./vendor/uPlot.js").Options>}} asked
 */
function draw({ title, summary, pieces, data, behind, options }) {
  const place = h("div", { class: "plot", role: "img", "aria-label": `${title}: ${summary.join("; ")}` });
  const node = h("figure", null, place, h("figcaption", null, ...summary.map((text, place) => h("span", null, pieces[place], text))), tableBehind(title, behind));
  /** @type {Plot | null} */
  let plot = null;
  const size = new ResizeObserver(() => {
    if (!node.isConnected) {
      size.disconnect();
      plot?.destroy();
      return;
    }
    const width = place.clientWidth;
    if (!plot && width) plot = new window.uPlot(/** @type {any} */ ({ width, height: HEIGHT, ...options }), data, place);
    else if (plot && Math.abs(plot.width - width) > 1) plot.setSize({ width, height: HEIGHT });
  });
  size.observe(place);
  return node;
}

/** @param {string | null} unit */
function axes(unit) {
  const { text, grid } = colours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const values = (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((it) => it.toLocaleString());
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
  const day = date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  if (step >= 2_419_200) return date.toLocaleDateString(undefined, { month: "short", year: "2-digit" });
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  if (step >= 86_400 || isMidnight) return day;
  const time = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return place === 0 ? `${time}\n${day}` : time;
}

/**
 * How the time of a row of so many seconds is written: that of a day or a month has no hour.
 * @param {number} [step]
 * @returns {(seconds: number) => string}
 */
function whenOf(step = 0) {
  if (step >= 2_419_200) return (it) => new Date(it * 1000).toLocaleDateString(undefined, { month: "long", year: "numeric" });
  return (it) => (step > 80_000 ? day(it * 1000) : moment(it * 1000));
}

/** @param {boolean} lacks whether the server is still summing up */
function nothing(lacks) {
  return h("p", null, absent(lacks, "No values in this range."));
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
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = colour;
  const first = new Date(from * 1000);
  for (let date = new Date(first.getFullYear(), first.getMonth(), first.getDate() - 1); date.getTime() / 1000 < to; date.setDate(date.getDate() + 1)) {
    const dusk = new Date(date).setHours(22) / 1000;
    const dawn = new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1, 6).getTime() / 1000;
    const [left, right] = [Math.max(dusk, from), Math.min(dawn, to)].map((it) => plot.valToPos(it, "x", true));
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
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
    if (!lows.length) return `${isolated(label)}: no values`;
    const low = lows.reduce((a, b) => Math.min(a, b));
    const high = highs.reduce((a, b) => Math.max(a, b));
    return `${isolated(label)}: ${of(low)} to ${of(high)}`;
  });
  const thin = lines.flatMap(({ points }) => points).filter((it) => it.coverage !== undefined && it.coverage < 0.5).length;
  return thin ? [...parts, `Thin, with less than half of the usual readings: ${thin}`] : parts;
}

/**
 * @param {string} title
 * @param {string | null} unit
 * @param {Line[]} lines
 * @param {(seconds: number) => string} at
 */
function tableOf(title, unit, lines, at) {
  const shown = (/** @type {number | null | undefined} */ it) => (it === null || it === undefined ? "none" : number(shownValue(it, unit)));
  if (lines.length === 1) {
    const { points } = lines[0];
    const rows = points.map((it) => [at(it.time), shown(it.mean), shown(it.min), shown(it.max), it.coverage === undefined ? "" : `${Math.round(it.coverage * 100)} %`]);
    return table(`${title}, ${shownUnit(unit)}`, ["Time", "Mean", "Min", "Max", "Coverage"], rows);
  }
  const times = [...new Set(lines.flatMap(({ points }) => points.map((it) => it.time)))].sort((a, b) => a - b);
  const byTime = lines.map(({ points }) => new Map(points.map((it) => [it.time, it.mean])));
  const rows = times.map((time) => [at(time), ...byTime.map((line) => shown(line.get(time)))]);
  return table(`${title}, ${shownUnit(unit)}`, ["Time", ...lines.map(({ label }) => label)], rows);
}
