// The sources that Roomtide asks, what a form makes of one, and the rules that tell when one fails. Draws nothing.

import { Failure, get, send, setToken } from "./api.js";
import { alerts, deleteRule, pauseRule, putRule } from "./rules.js";

/** @typedef {{name: string, form: "secret" | "text" | "number" | "flag" | "choice", range?: [number, number], choices?: string[], is_needed: boolean, hint: string}} Member */
/** @typedef {{kind: string, title: string, members: Member[], every: string, credit: string | null, where: string}} Kind */
/** @typedef {{room: string, name?: string}} SourceRoom */
/** @typedef {string | {at: string}} Pointer where a value is in an answer */
/** @typedef {{state: string, every: string, last_success?: string | null, failing_since?: string | null, error?: string | null, next?: string | null, requests_today?: number}} SourceState */
/** @typedef {{id: string, kind: string, host: string, devices: string[], on: boolean, every?: string, credit: string | null, state: SourceState, rooms?: Record<string, SourceRoom | null>, secrets?: string[], lacks_secrets?: boolean, headers?: Record<string, string>, metrics?: Record<string, Pointer>} & Record<string, any>} Source who may edit it sees its rooms, the names of its secrets, and the members of its kind */
/** @typedef {{devices: {id: string, name?: string, room?: string}[], readings: {device?: string, metrics: Record<string, any>}[], rejected: string[], numbers: Record<string, number | string>, warnings: string[]}} Tested */

/** The longest time for which a rule is paused. */
const MAX_PAUSE = "365d";
/** The placeholders that are times. */
const TIMES = /^((from|to)(_minute|_unix|_date)?|now(_unix)?)$/;

/** All sources and kinds, as an admin sees them if there is an admin's token. @returns {Promise<{data: Source[], kinds: Kind[]}>} */
export async function sourcesAndKinds() {
  try {
    return await send("GET", "sources");
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 401) throw error;
    // The admin's token is no good: what the reader sees is shown, and the next edit asks for another.
    setToken("admin", "", false);
    return get("sources");
  }
}

/** @param {string} id @param {Record<string, unknown>} settings @returns {Promise<Source>} */
export function putSource(id, settings) {
  return send("PUT", `sources/${encodeURIComponent(id)}`, settings);
}

/** Asks once and stores nothing. @param {string} id @param {Record<string, unknown>} settings @returns {Promise<Tested>} */
export function testSource(id, settings) {
  return send("POST", "sources/test", { ...settings, id });
}

/** @param {string} id */
export async function deleteSource(id) {
  await send("DELETE", `sources/${encodeURIComponent(id)}`);
  await unwatch(id);
}

/** The rules about a source: when it fails, and when nothing is heard of it. @param {string} id */
export function rulesOf(id) {
  return [`source-${id}-failing`, `source-${id}-silent`];
}

/**
 * Tells by the channels when a source fails, and when nothing is heard of it.
 * @param {string} id
 * @param {{failing: string, silent: string}} names
 */
export async function watch(id, names) {
  const [failing, silent] = rulesOf(id);
  const device = `source:${id}`;
  await putRule(failing, { name: names.failing, device, metric: "failing", above: 0, for: "30m" });
  await putRule(silent, { name: names.silent, device, silent_for: "4h" });
}

/** @param {string} id */
export function unwatch(id) {
  return ofRules(id, deleteRule);
}

/** Pauses or resumes a source and the rules about it, because a paused source is silent. @param {Source} source */
export async function toggleSource(source) {
  await putSource(source.id, { ...source, on: !source.on });
  await ofRules(source.id, (rule) => pauseRule(rule, source.on ? MAX_PAUSE : null));
}

/**
 * Does something with each rule about a source that is there.
 * @param {string} id
 * @param {(rule: string) => Promise<unknown>} act
 */
async function ofRules(id, act) {
  const { data } = await alerts();
  for (const rule of data.filter((rule) => rulesOf(id).includes(rule.id))) await act(rule.id);
}

/** An id that no source has yet. @param {string} kind @param {Source[]} sources */
export function freeId(kind, sources) {
  const isTaken = (/** @type {string} */ id) => sources.some((source) => source.id === id);
  let number = 1;
  while (isTaken(number === 1 ? kind : `${kind}-${number}`)) number += 1;
  return number === 1 ? kind : `${kind}-${number}`;
}

/** The names of the secrets that texts have places for, such as `{key}`. @param {string[]} texts */
export function placeholdersOf(...texts) {
  const names = texts.flatMap((text) => [...text.matchAll(/\{([a-z0-9_]+)\}/g)].map(([, name]) => name));
  return [...new Set(names)].filter((name) => !TIMES.test(name));
}

/** Headers of lines, each NAME: VALUE. @param {string} lines */
export function headersOf(lines) {
  const pairs = lines.split("\n").filter((line) => line.trim()).map((line) => {
    const [name, ...rest] = line.split(":");
    return [name.trim(), rest.join(":").trim()];
  });
  return Object.fromEntries(pairs);
}

/** The name of a metric that a place in an answer suggests: `/flow/tempIn` is `temp_in`. @param {string} at */
export function metricAt(at) {
  const named = at.split("/").filter((part) => /\p{L}/u.test(part)).at(-1) ?? "";
  const snake = named.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase().replace(/[^a-z0-9]+/g, "_");
  return snake.replace(/^[^a-z]+|_+$/g, "") || "value";
}
