// Tables whose cells are shaded from the lowest to the highest value, each group of lines by a scale of its own; warm and
// cold have a colour each. Asks nobody.

import { t } from "../words/words.js";
import { fill, h } from "./dom.js";
import { number, shownUnit, shownValue } from "../words/format.js";
import { absent } from "./lack.js";

/** @typedef {{name: string, cells: Map<string, number>, group?: string}} Line */
/** @typedef {{key: string, name: string, isMajor?: boolean}} Column */

/** The number of shades. */
const SHADES = 8;

/**
 * @param {{title: string, corner: string, unit: string | null, columns: Column[], lines: Line[], lacks: boolean, numbers?: boolean, when: (line: Line, column: Column) => string, choose?: (line: Line, column: Column) => void}} asked `numbers` tells whether cells have their values in writing
 */
export function shadeTable({ title, corner, unit, columns, lines, lacks, numbers = true, when, choose }) {
  const all = lines.flatMap(({ cells }) => [...cells.values()]);
  if (!all.length) return h("p", null, absent(lacks, t("noValuesInRange")));
  const groups = [...new Set(lines.map(({ group = "" }) => group))];
  /** @type {Map<string, {low: number, high: number}>} */
  const scales = new Map(groups.flatMap((group) => {
    const values = lines.filter((it) => (it.group ?? "") === group).flatMap(({ cells }) => [...cells.values()]);
    return values.length ? [[group, { low: values.reduce((a, b) => Math.min(a, b)), high: values.reduce((a, b) => Math.max(a, b)) }]] : [];
  }));
  const of = (/** @type {Line} */ line) => scales.get(line.group ?? "") ?? { low: 0, high: 1 };
  const text = (/** @type {number} */ value, { low, high } = { low: value, high: value }) => number(shownValue(value, unit), shownValue(high, unit) - shownValue(low, unit) < 10 && high < 100 ? 1 : 0);
  const told = h("p", { class: "note", role: "status" });
  const cell = (/** @type {Line} */ line, /** @type {Column} */ column) => {
    const value = line.cells.get(column.key);
    if (value === undefined) return h("td", null);
    const { low, high } = of(line);
    const shade = Math.min(SHADES - 1, Math.floor(((value - low) / (high - low || 1)) * SHADES));
    const words = `${text(value, of(line))} ${shownUnit(unit)}, ${when(line, column)}`;
    const say = () => {
      fill(told, words);
      choose?.(line, column);
    };
    return h("td", { class: `s${shade}`, title: words, onclick: say, onpointerenter: () => fill(told, words) }, h("span", { class: numbers ? "figure" : "hidden" }, text(value, of(line))));
  };
  const scale = [...scales].map(([group, it]) => t("scale", { group: group && t("labelled", { name: group, text: "" }), low: text(it.low, it), high: text(it.high, it) })).join(t("between"));
  const shades = Array.from({ length: SHADES }, (_, n) => h("span", { class: `s${n} scale` }));
  const region = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h("table", { class: `heat${numbers ? "" : " squares"}${/C$/.test(unit ?? "") ? " sided" : ""}` },
      h("caption", null, t("labelled", { name: `${title}, ${shownUnit(unit)}`, text: scale }), " ", h("span", { "aria-hidden": "true" }, ...shades)),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, corner), ...columns.map(({ name, isMajor }) => h("th", { scope: "col", class: isMajor ? "" : "minor" }, h("span", null, name))))),
      h("tbody", null, ...lines.map((line, n) => h("tr", { class: n && line.group !== lines[n - 1].group ? "apart" : null }, h("th", { scope: "row", title: line.name }, line.name), ...columns.map((it) => cell(line, it))))),
    ),
  );
  // Once the table is in the page, it is scrolled to its newest columns if it is wider than the screen.
  queueMicrotask(() => { region.scrollLeft = region.scrollWidth; });
  return h("div", null, region, told);
}
