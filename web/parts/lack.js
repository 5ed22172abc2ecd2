// The note of a view that answers lack readings because the server is still summing up. Asks nobody.

import { h } from "./dom.js";
import { moment } from "../words/format.js";
import { t } from "../words/words.js";

/** @typedef {import("../data/lacking.js").Answer} Answer */

/**
 * What is to be said beside figures that may lack something; null where they lack nothing.
 * @param {...(Answer | null | undefined)} answers
 */
export function lackNote(...answers) {
  const lack = answers.find((it) => it?.rollups_lack)?.rollups_lack;
  if (!lack) return null;
  const since = lack.changes_since ? ` ${t("lackSince", { time: moment(lack.changes_since) })}` : "";
  return h("p", { class: "note lack" }, h("strong", null, t("lack")), since);
}

/**
 * The words in the place of values that are not there.
 * @param {boolean} lacks
 * @param {string} words what to say where nothing is lacking
 */
export function absent(lacks, words) {
  return lacks ? t("notSummed") : words;
}
