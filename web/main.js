// The page: which view is shown, when it asks again, and what goes wrong. Shows no data itself.

import { Failure, forgetTokens, hasToken, takeToken } from "./api.js";
import { charts } from "./charts.js";
import { connect } from "./connect.js";
import { device } from "./device.js";
import { fill, h } from "./dom.js";
import { energy } from "./energy.js";
import { duration } from "./format.js";
import { heat } from "./heat.js";
import { forget } from "./home.js";
import { now } from "./now.js";
import { askForToken } from "./token.js";

/** Milliseconds between two looks at the server. */
const INTERVAL = 30_000;
/** The longest wait after failures. */
const MAX_WAIT = 300_000;

/** @type {Record<string, (main: HTMLElement, rest: string) => Promise<() => Promise<unknown>>>} */
const VIEWS = { now, energy, charts, heat, device, connect };

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const signed = /** @type {HTMLElement} */ (document.getElementById("signed"));
const alert = /** @type {HTMLElement} */ (document.getElementById("alert"));

/** @type {{refresh: () => Promise<unknown>, timer: number, updated: number, failures: number, until: number, isBusy: boolean}} */
const state = { refresh: async () => {}, timer: 0, updated: 0, failures: 0, until: 0, isBusy: false };

/** Shows the view that the address names. */
async function route() {
  if (takeToken()) forget();
  const [name, ...rest] = location.hash.slice(1).split("/");
  // An address that is nearly right, such as #devices, is the view that is meant.
  const view = Object.keys(VIEWS).find((it) => it.startsWith(name) || name.startsWith(it)) ?? "now";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.charAt(0).toUpperCase()}${view.slice(1)} - Roomtide`;
  state.isBusy = false;
  state.refresh = await VIEWS[view](main, decodeURIComponent(rest.join("/")));
  await update();
}

/** Asks again, and plans when to ask next. */
async function update() {
  if (state.isBusy) return;
  const { refresh } = state;
  state.isBusy = true;
  window.clearTimeout(state.timer);
  main.setAttribute("aria-busy", "true");
  try {
    await refresh();
    if (refresh === state.refresh) succeed();
  } catch (error) {
    if (refresh === state.refresh) fail(error);
  } finally {
    if (refresh === state.refresh) {
      state.isBusy = false;
      main.removeAttribute("aria-busy");
    }
  }
}

function succeed() {
  state.failures = 0;
  state.updated = Date.now();
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
    tell(hasToken() ? error.message : "This server asks for an access token.");
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
  tell(navigator.onLine ? failure.message : "This browser is offline.");
  plan(failure.isTransient ? wait : INTERVAL);
}

/** @param {string} words */
function tell(words) {
  fill(alert, h("p", null, words, " ", h("button", { type: "button", onclick: update }, "Try again")));
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
  route().catch(fail);
}

/** Says how old the page is. */
function tick() {
  const old = state.updated ? `updated ${duration(Date.now() - state.updated)} ago` : "not updated yet";
  const isDown = alert.childElementCount > 0;
  // Whoever used a token here can take it back; the button stays as it is while there is one.
  if (hasToken() !== signed.childElementCount > 0) fill(signed, hasToken() && h("button", { type: "button", onclick: signOut }, "Forget the token"));
  fill(status, isDown ? `${old}; asks again in ${duration(state.until - Date.now())}` : old);
}

window.addEventListener("hashchange", () => route().catch(fail));
window.addEventListener("failed", (event) => fail(/** @type {CustomEvent} */ (event).detail));
window.addEventListener("online", update);
window.addEventListener("offline", () => fail(new Failure(0, "This browser is offline.", 0)));
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && Date.now() > state.until) update();
});
// The colours of a chart are drawn, so it is drawn again.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
window.setInterval(tick, 1_000);
route().catch(fail);
