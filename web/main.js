// The page: which view is shown, when it asks again, and what goes wrong. Shows no data itself.

import { addressOf, here } from "./data/address.js";
import { Failure, askServer, forgetTokens, hasToken, takeToken } from "./data/api.js";
import { forget } from "./data/home.js";
import { isShared } from "./data/shared.js";
import { registerWorker } from "./data/offline.js";
import { listenForSteps } from "./parts/datebar.js";
import { fill, h, sign } from "./parts/dom.js";
import { age, duration, moment } from "./words/format.js";
import { askForToken } from "./parts/token.js";
import { charts } from "./views/charts.js";
import { energy } from "./views/energy.js";
import { now } from "./views/now.js";
import { t } from "./words/words.js";

/** Milliseconds between two looks at the server. */
const INTERVAL = 30_000;
/** The longest wait after failures. */
const MAX_WAIT = 300_000;

/** @typedef {(main: HTMLElement, about: string) => Promise<() => Promise<unknown>>} View */

/**
 * The views with their names, in the order of the navigation. Views with a sign are in the bar of a phone. Views that
 * are seldom opened first are loaded when they are chosen.
 * @type {[string, () => View | Promise<View>, import("./words/words.js").Key, string][]}
 */
const VIEWS = [
  ["now", () => now, "now", "M3 11l9-8 9 8M5 10v10h14V10"],
  ["energy", () => energy, "energy", "M13 2L4 14h7l-1 8 9-12h-7z"],
  ["charts", () => charts, "charts", "M3 20h18M4 15l5-6 4 4 7-9"],
  ["alerts", async () => (await import("./views/alerts.js")).alerts, "alerts", "M6 16v-5a6 6 0 0112 0v5l2 2H4zM10 21h4"],
  ["year", async () => (await import("./views/year.js")).year, "year", ""],
  ["heat", async () => (await import("./views/heat.js")).heat, "heatMap", ""],
  ["device", async () => (await import("./views/device.js")).device, "devices", ""],
  ["connect", async () => (await import("./views/connect.js")).connect, "connect", ""],
];
/** The sign of the button for all other views. */
const MORE = "M5 12h.01M12 12h.01M19 12h.01";

/** The views that a link for others has. */
const SHARED_VIEWS = ["now", "energy", "charts", "year", "heat"];

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const nav = /** @type {HTMLElement} */ (document.querySelector("nav"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const signed = /** @type {HTMLElement} */ (document.getElementById("signed"));
const alert = /** @type {HTMLElement} */ (document.getElementById("alert"));

/** @type {{shown: string, refresh: () => Promise<unknown>, timer: number, updated: number, known: string, failures: number, until: number, isBusy: boolean, isAskedAgain: boolean}} */
const state = { shown: "", refresh: async () => {}, timer: 0, updated: 0, known: "", failures: 0, until: 0, isBusy: false, isAskedAgain: false };

/** Whether nothing was shown yet. */
let isFirst = true;

/** Shows the view that the address names. If the view is shown already, shows what was chosen in it. */
async function route() {
  if (takeToken()) {
    forget();
    // The page may be asking for the token that the address has brought.
    /** @type {HTMLDialogElement} */ (document.getElementById("token")).close();
  }
  const { view: name, about } = here();
  // An address that is nearly right, such as #devices, is the view that is meant.
  const wanted = location.hash.startsWith("#acknowledge=") ? "alerts" : name;
  const [view, load, title] = VIEWS.find(([view]) => view.startsWith(wanted) || wanted.startsWith(view)) ?? VIEWS[0];
  showNavigation(view);
  document.title = `${t(title)} - Roomtide`;
  const place = `${view}/${about}`;
  if (state.shown === place && !location.hash.startsWith("#acknowledge=")) {
    // The old content is dimmed until the chosen content is there.
    for (const old of main.querySelectorAll("figure, .heat")) old.setAttribute("aria-busy", "true");
    return update();
  }
  state.shown = place;
  state.isBusy = false;
  main.setAttribute("aria-busy", "true");
  // If the view cannot be loaded, the next update loads it again.
  state.refresh = async () => { state.shown = ""; await route(); };
  const { refresh } = state;
  try {
    const show = await load();
    // Somebody has chosen another view meanwhile.
    if (refresh !== state.refresh) return;
    state.refresh = await show(main, about);
  } catch (error) {
    if (refresh !== state.refresh) return;
    main.removeAttribute("aria-busy");
    throw error;
  }
  await update();
}

/** On a phone the views without a sign are behind "More". @param {string} shown */
function showNavigation(shown) {
  const offered = VIEWS.filter(([view]) => !isShared() || SHARED_VIEWS.includes(view));
  const link = (/** @type {(typeof VIEWS)[0]} */ [view, , key, path]) => h("a", { id: `nav-${view}`, href: addressOf(view), "aria-current": view === shown ? "page" : null }, path && sign(path), t(key));
  fill(
    nav,
    ...offered.filter(([, , , path]) => path).map(link),
    h("button", { type: "button", popovertarget: "others" }, sign(MORE), t("others")),
    h("div", { id: "others", class: "others", popover: "auto" }, ...offered.filter(([, , , path]) => !path).map(link)),
  );
}

/** Asks again, and plans when to ask next. */
async function update() {
  if (state.isBusy) {
    state.isAskedAgain = true;
    return;
  }
  const { refresh } = state;
  state.isBusy = true;
  state.isAskedAgain = false;
  state.known = "";
  window.clearTimeout(state.timer);
  main.setAttribute("aria-busy", "true");
  try {
    await refresh();
    if (refresh === state.refresh) succeed();
    // What was known last is shown; now the server is asked.
    if (state.known && isFirst) state.isAskedAgain = true;
  } catch (error) {
    if (refresh === state.refresh) fail(error);
  } finally {
    isFirst = false;
    askServer();
    if (state.isAskedAgain) forget();
    if (refresh === state.refresh) {
      state.isBusy = false;
      main.removeAttribute("aria-busy");
      if (state.isAskedAgain) update();
    }
  }
}

function succeed() {
  state.failures = 0;
  if (!state.known) state.updated = Date.now();
  fill(alert);
  plan(refreshInterval());
}

function refreshInterval() {
  // Whoever waits for a first reading wants to see it at once.
  return location.hash.startsWith("#connect") ? 4_000 : INTERVAL;
}

/** @param {unknown} error */
function fail(error) {
  if (error instanceof Failure && error.needsToken) {
    tell(hasToken() ? error.message : t("asksForToken"));
    plan(MAX_WAIT);
    askForToken("read", error.message).then((given) => {
      forget();
      return given ? update() : undefined;
    });
    return;
  }
  state.failures += 1;
  const failure = error instanceof Failure ? error : new Failure(0, error instanceof Error ? error.message : String(error), 0);
  const wait = Math.min(MAX_WAIT, Math.max(failure.retryAfter * 1000, Math.min(INTERVAL, 4_000 * 2 ** (state.failures - 1))));
  tell(navigator.onLine ? failure.message : t("offline"));
  plan(failure.isTransient ? wait : INTERVAL);
}

/** @param {string} words */
function tell(words) {
  fill(alert, h("p", null, words, " ", h("button", { type: "button", onclick: update }, t("tryAgain"))));
}

/** @param {number} wait */
function plan(wait) {
  state.until = Date.now() + wait;
  window.clearTimeout(state.timer);
  state.timer = window.setTimeout(() => {
    if (document.visibilityState === "visible") update();
  }, wait);
  tick();
}

function signOut() {
  forgetTokens();
  forget();
  state.shown = "";
  route().catch(fail);
}

/** Says how old the page is. */
function tick() {
  const old = state.known ? t("knownFrom", { time: moment(state.known), age: age(state.known) }) : state.updated ? t("updated", { age: duration(Date.now() - state.updated) }) : t("notUpdated");
  const isDown = alert.childElementCount > 0;
  // A button forgets the token in use. It is made once, so that it keeps the focus.
  if (hasToken() !== signed.childElementCount > 0) fill(signed, hasToken() && h("button", { type: "button", onclick: signOut }, t("forgetToken")));
  fill(status, isDown ? t("asksAgain", { old, time: duration(state.until - Date.now()) }) : old);
}

nav.setAttribute("aria-label", t("views"));
const skip = /** @type {HTMLElement} */ (document.getElementById("skip"));
skip.textContent = t("skip");
skip.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => route().catch(fail));
window.addEventListener("changed", () => { forget(); update(); });
window.addEventListener("failed", (event) => fail(/** @type {CustomEvent} */ (event).detail));
window.addEventListener("known", (event) => { state.known = /** @type {CustomEvent} */ (event).detail; });
navigator.serviceWorker?.addEventListener("message", ({ data }) => {
  if (data === "newer") fill(alert, h("p", { class: "newer" }, t("newerPage"), " ", h("button", { type: "button", onclick: () => location.reload() }, t("reload"))));
});
window.addEventListener("online", update);
window.addEventListener("offline", () => fail(new Failure(0, t("offline"), 0)));
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && Date.now() > state.until) update();
});
// The colours of a chart are drawn, so it is drawn again.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
window.setInterval(tick, 1_000);
listenForSteps();
registerWorker();
route().catch(fail);
