// The one bar of the views with history: which time, back and forth, of what, and what it is compared with. Asks nobody.

import { choose } from "../data/address.js";
import { VERSUS, dateOf, dayOf, startOf } from "../data/range.js";
import { t } from "../words/words.js";
import { buttons, fill, h, select, sign } from "./dom.js";
import { day, fullDay, midnight, month, moment, written } from "../words/format.js";

/** @typedef {import("../data/range.js").Range} Range */
/** @typedef {import("../data/range.js").Span} Span */

const CALENDAR = "M5 5h14v15H5zM5 10h14M9 3v4M15 3v4";
/** @type {[Span, import("../words/words.js").Key][]} */
const SPANS = [["24h", "span24h"], ["day", "day"], ["week", "spanWeek"], ["month", "month"], ["year", "year"]];
/** @type {Record<string, import("../words/words.js").Key>} */
const VERSUS_WORDS = { "": "vsNothing", day: "vsDay", weekday: "vsWeekday", month: "vsMonth", year: "vsYear" };

/**
 * The time of a range in words.
 * @param {Range} range
 */
export function titleOf({ span, from, to }) {
  if (span === "24h") return t("last24h");
  const isThisYear = from.getFullYear() === new Date().getFullYear();
  if (span === "day") return isThisYear ? day(from) : fullDay(from);
  if (span === "month") return month(from);
  if (span === "year") return written(from, { year: "numeric" });
  const short = /** @type {const} */ ({ day: "numeric", month: "short" });
  return t("fromTo", { from: written(from, short), to: written(to.getTime() - 1, isThisYear ? short : { ...short, year: "numeric" }) });
}

/**
 * @param {string} versus
 * @param {Span} span
 */
function versusWord(versus, span) {
  return t(versus === "weekday" && span === "week" ? "vsWeek" : VERSUS_WORDS[versus]);
}

/** What a range is compared with, in words. @param {Range} range */
export function versusOf({ versus, span }) {
  return versusWord(versus, span);
}

/** What each bar shows. A bar with the same content is not made again, because somebody may be using it. @type {WeakMap<Element, string>} */
const shown = new WeakMap();

/**
 * Makes the bar. Items that are seldom wanted are behind a button; on a phone, all but the time and its spans are.
 * @param {Element} place
 * @param {Range} range
 * @param {{spans: Span[], usual: Span, begins: Date | null, compares?: boolean, title?: string, choices?: (Node | null)[], menu?: Node[]}} about `choices` say of what, `menu` is what is seldom wanted
 */
export function dateBar(place, range, { spans, usual, begins, compares = true, title = titleOf(range), choices = [], menu = [] }) {
  const state = [location.hash, begins?.getTime(), dayOf(midnight(0)), ...choices.map((choice) => choice?.textContent)].join(" ");
  if (shown.get(place) === state) return;
  shown.set(place, state);
  const step = (/** @type {string} */ id, /** @type {string} */ sign, /** @type {string} */ label, /** @type {string} */ to) =>
    h("button", { type: "button", class: "step", id, "aria-label": label, disabled: !to, onclick: () => goTo(to, range, usual) }, sign);
  const date = h("input", { type: "date", id: "date", "aria-label": t("date"), max: dayOf(midnight(0)), min: begins ? dayOf(begins) : null, value: dayOf(range.span === "24h" ? midnight(0) : range.from), onchange: () => dateOf(date.value) && goTo(date.value, range, usual) });
  const history = begins && h("p", { class: "note" }, t("historyBegins", { time: moment(begins) }));
  const isBefore = begins && range.from < startOf("day", begins);
  const isOpen = place.firstElementChild?.classList.contains("open");
  const more = h("button", { type: "button", class: "step", id: "more-of-bar", "aria-label": t("moreSettings"), "aria-expanded": String(Boolean(isOpen)), onclick: () => more.setAttribute("aria-expanded", String(bar.classList.toggle("open"))) }, "…");
  const bar = h("section", { class: isOpen ? "datebar open" : "datebar", "aria-label": t("dateBar") },
    h("div", { class: "steps" },
      step("before", "‹", t("stepBefore"), range.before),
      h("strong", { class: "title", "aria-live": "polite" }, title),
      step("after", "›", t("stepAfter"), range.after),
      h("span", { class: "step date" }, sign(CALENDAR), date),
    ),
    h("div", { class: "choices" }, ...choices),
    compares && h("div", { class: "versus" }, select(t("compareWith"), VERSUS[range.span].map((it) => [it, versusWord(it, range.span)]), range.versus, (value) => choose({ vs: value }))),
    spans.length > 1 && buttons(t("span"), spans.map((it) => /** @type {[string, string]} */ ([it, t(SPANS.find(([span]) => span === it)?.[1] ?? "span")])), range.span, (value) => choose({ span: value === usual ? "" : value, zoom: "" })),
    more,
    isBefore && history,
    h("div", { class: "menu controls" }, ...menu, !isBefore && history),
  );
  fill(place, bar);
}

/**
 * @param {string} to
 * @param {Range} range
 * @param {Span} usual
 */
function goTo(to, range, usual) {
  if (!to) return;
  const isToday = dateOf(to)?.getTime() === midnight(0).getTime();
  const span = range.span === "24h" ? "day" : range.span;
  choose({ d: isToday ? "" : to, span: span === usual ? "" : span, zoom: "", part: "" });
}

/** Keys and swipes that step. */
export function listenForSteps() {
  const press = (/** @type {string} */ id) => /** @type {HTMLButtonElement | null} */ (document.getElementById(id))?.click();
  window.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.closest("input, select, textarea, dialog, [role=region], [role=slider]");
    if (isTyping || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "ArrowLeft") press("before");
    if (event.key === "ArrowRight") press("after");
  });
  let [startX, startY] = [0, 0];
  window.addEventListener("touchstart", (event) => {
    const isHeld = event.target instanceof Element && event.target.closest(".plot, .scroll, input, select, pre");
    [startX, startY] = isHeld || event.touches.length > 1 ? [NaN, NaN] : [event.touches[0].clientX, event.touches[0].clientY];
  }, { passive: true });
  window.addEventListener("touchend", (event) => {
    const { clientX, clientY } = event.changedTouches[0];
    const [x, y] = [clientX - startX, clientY - startY];
    if (Math.abs(x) > 70 && Math.abs(x) > 2 * Math.abs(y)) press(x > 0 ? "before" : "after");
  }, { passive: true });
}
