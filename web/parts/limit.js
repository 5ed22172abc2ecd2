// The line of a limit in a chart, which a person moves with a finger, a mouse or the arrow keys. Asks nobody.

import { t } from "../words/words.js";
import { h } from "./dom.js";
import { number } from "../words/format.js";

/**
 * Puts the line over a chart. While it is moved nobody is told; when it is let go, `done` is.
 * @param {import("../vendor/uPlot.js")} plot
 * @param {import("./chart.js").Limit} limit
 */
export function limitLine(plot, { value, done }) {
  let now = value;
  const label = h("span");
  const line = h("div", { class: "limit", role: "slider", tabindex: 0, "aria-label": t("limit"), "aria-orientation": "vertical" }, label);
  const scale = () => ({ min: plot.scales.y.min ?? 0, max: plot.scales.y.max ?? 1 });
  const place = () => {
    const { min, max } = scale();
    line.style.top = `${Math.min(plot.over.clientHeight, Math.max(0, plot.valToPos(now, "y")))}px`;
    label.textContent = number(now);
    for (const [name, it] of Object.entries({ valuenow: now, valuemin: min, valuemax: max })) line.setAttribute(`aria-${name}`, String(it));
  };
  const set = (/** @type {number} */ wanted) => {
    const { min, max } = scale();
    // As fine as a person aims.
    const grain = 10 ** Math.floor(Math.log10((max - min) / 50));
    now = Number((Math.round(wanted / grain) * grain).toPrecision(12));
    place();
  };
  line.addEventListener("pointerdown", (event) => {
    line.setPointerCapture(event.pointerId);
    event.preventDefault();
    event.stopPropagation();
    line.focus();
  });
  line.addEventListener("pointermove", (event) => {
    if (line.hasPointerCapture(event.pointerId)) set(plot.posToVal(event.clientY - plot.over.getBoundingClientRect().top, "y"));
  });
  line.addEventListener("pointerup", () => done(now));
  line.addEventListener("keydown", (event) => {
    const { min, max } = scale();
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    set(now + (by * (max - min)) / 50);
    done(now);
  });
  plot.over.append(line);
  // An image may hold nothing that one can reach.
  plot.root.parentElement?.setAttribute("role", "group");
  place();
  plot.hooks.setSize = [...(plot.hooks.setSize ?? []), place];
}
