// Figures in large digits, comparisons in words, and small lines without axes. Asks nobody.

import { kwh, percent } from "../words/format.js";
import { rich, t } from "../words/words.js";
import { h, svg } from "./dom.js";

/** A value in large digits, with its unit in small letters. @param {string} text */
export function large(text) {
  const [, digits, unit] = /^(.*\d)\s(\D+)$/.exec(text) ?? [];
  return h("p", { class: "big" }, ...(digits ? [digits, h("small", null, ` ${unit}`)] : [text]));
}

/**
 * An amount of energy beside another one, in words.
 * @param {number | null} value
 * @param {number | null} other
 * @param {string} than
 */
export function compared(value, other, than) {
  if (value === null || other === null) return [t("labelled", { name: than, text: kwh(other) })];
  const change = other > 0 ? Math.round(((value - other) / other) * 100) : 0;
  const share = h("span", { class: change > 0 ? "more" : "less" }, percent(Math.abs(change) / 100));
  return rich(change > 0 ? "moreThan" : change < 0 ? "lessThan" : "sameAs", { share, than, other: kwh(other) });
}

/**
 * A line over its area, without axes, as wide as its place.
 * @param {string} kind its class
 * @param {string} label
 * @param {{time: number, value: number}[]} points
 */
export function smallLine(kind, label, points) {
  const values = points.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [from, to] = [points[0].time, points[points.length - 1].time];
  const place = (/** @type {{time: number, value: number}} */ { time, value }) => `${(((time - from) * 100) / (to - from || 1)).toFixed(2)} ${(28 - ((value - low) * 26) / (high - low || 1)).toFixed(2)}`;
  const line = `M${points.map(place).join("L")}`;
  return svg("svg", { class: kind, viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("path", { class: "area", d: `${line}V30H0Z` }), svg("path", { class: "line", d: line }));
}
