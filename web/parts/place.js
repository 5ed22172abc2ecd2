// Places whose content is being asked for: dimmed meanwhile, and failures are told where the result would be. Asks nobody.

import { fill, h } from "./dom.js";

/**
 * Shows what a person chose; until it is there, what was there before is dimmed.
 * @param {Element} place
 * @param {() => Promise<unknown>} show
 */
export function again(place, show) {
  for (const old of place.querySelectorAll("figure, .heat")) old.setAttribute("aria-busy", "true");
  return show().catch((error) => window.dispatchEvent(new CustomEvent("failed", { detail: error })));
}

/**
 * Does something whose failure is shown where its result would be. What the whole page has to know is thrown on.
 * @param {Element} place
 * @param {() => Promise<unknown>} what
 */
export async function inPlace(place, what) {
  place.setAttribute("aria-busy", "true");
  try {
    await what();
  } catch (error) {
    if (/** @type {any} */ (error).isTransient || /** @type {any} */ (error).needsToken) throw error;
    fill(place, h("p", { class: "warn" }, error instanceof Error ? error.message : String(error)));
  } finally {
    place.removeAttribute("aria-busy");
  }
}
