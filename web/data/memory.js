// Answers that are used for a while. An answer that may be old or lacks something is used once. Asks nobody itself.

import { provisional } from "./api.js";

/** Any answer is used for so many milliseconds, so that one update of the page asks for it once. */
const ONE_LOOK = 3_000;

export function memory() {
  /** @type {Map<string, {at: number, answer: Promise<any>}>} */
  const kept = new Map();
  /**
   * @template T
   * @param {string} key
   * @param {number} maxAge milliseconds
   * @param {() => Promise<T>} ask
   * @returns {Promise<T>}
   */
  const recent = (key, maxAge, ask) => {
    const old = kept.get(key);
    if (old && Date.now() - old.at <= Math.max(maxAge, ONE_LOOK)) return old.answer;
    const before = provisional();
    const made = { at: Date.now(), answer: ask() };
    kept.set(key, made);
    const drop = () => { made.at = 0; };
    made.answer.then(() => { if (provisional() !== before) drop(); }, drop);
    return made.answer;
  };
  recent.forget = () => kept.clear();
  return recent;
}
