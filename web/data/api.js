// Requests to the public API: tokens, pages, failures, how many at once. Draws nothing.

import { t } from "../words/words.js";
import { isLacking } from "./lacking.js";
import { askShared, csvShared, takeShared } from "./shared.js";

/** @typedef {{kind: string, unit: string | null, max_w?: number, modulus?: number, tolerance?: number, verdicts?: {timestamp: string, verdict: string}[], in_room_means?: boolean, hourly_until?: string, not_of_room?: string, role?: string}} Metric */
/** @typedef {{value: number, timestamp: string}} Value */
/** @typedef {{timestamp: string, metrics: Record<string, Value>}} Latest */
/** @typedef {{device_id: string, name: string | null, room: string | null, room_pinned: boolean, kind: string | null, tags: string[], behind?: string, in_room_means?: boolean, metrics: Record<string, Metric>, first_seen: string, latest?: Latest | null}} Device */
/** @typedef {{room_id: string, name: string | null, home?: string | null, outside?: boolean | null}} Room */
/** @typedef {{timestamp: string, device_id?: string, room_id?: string, partial?: boolean, coverage?: number} & Record<string, any>} Row */
/** @typedef {{data: Row[], units: Record<string, string | null>, rollups_lack?: Record<string, any>}} Series */
/** @typedef {{timestamp: string, kwh: number | null, kwh_sold?: number, device_id?: string, flags: string[], estimated?: boolean, partial?: boolean}} EnergyRow */
/** @typedef {{timestamp: string, device_id: string, metric: string, events: string[], amount?: number, from?: Value, to?: Value, amount_if_wrapped?: number, verdict?: string, verdicts?: string[]}} EventRow */
/** @typedef {{data: EnergyRow[], total_kwh: number | null, total_kwh_sold?: number, events?: EventRow[], events_has_more?: boolean, devices?: {device_id: string, total_kwh?: number | null, role?: string}[], left_out?: {device_id: string, reason: string, behind?: string}[], counted_kwh?: number | null, rest_kwh?: number | null, rest?: {timestamp: string, kwh: number | null}[], unsure?: {device_id: string, metrics: string[]}[], rollups_lack?: Record<string, any>}} Energy */
/** @typedef {Record<string, string | number | boolean | undefined>} Params */

/** @typedef {"read" | "write" | "admin"} Use what a token is for */

const KEPT = "roomtide.token";
/** The most requests at once: an account of AWS may run no more than ten functions at a time. */
const MAX_AT_ONCE = 4;

/** The tokens, in this tab only; the reader's is kept in this browser if its owner says so. */
const tokens = { read: localStorage.getItem(KEPT) ?? "", write: "", admin: "" };

/** A failure, in the server's own words where there are any. */
export class Failure extends Error {
  /**
   * @param {number} status 0 without an answer
   * @param {string} message
   * @param {number} retryAfter seconds; 0 where the server does not say
   * @param {Use} use
   * @param {string[]} fields the members of the body that are wrong
   */
  constructor(status, message, retryAfter, use = "read", fields = []) {
    super(message);
    this.use = use;
    this.fields = fields;
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Tells whether the same request may succeed later. */
  get isTransient() {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }

  /** Tells whether nothing can be read without another token. */
  get needsToken() {
    return this.use === "read" && (this.status === 401 || this.status === 403);
  }
}

/** The address of the API, with a slash at its end: that of the page. */
export const address = new URL(".", location.href).href;

/** The address at which readings are stored, with a slash at its end: the one that the server names, else the page's. */
export const ingest = new URL(document.querySelector("meta[name=ingest]")?.getAttribute("content") || address).href;

/** The command as the server's owner calls it. */
export const program = document.querySelector("meta[name=command]")?.getAttribute("content") || "roomtide";
const data = document.querySelector("meta[name=data]")?.getAttribute("content");
/** The option after the command that names this server's data; empty if the command finds the data without it. */
export const ofData = data ? ` ${data}` : "";

/**
 * @param {Use} use
 * @param {string} token
 * @param {boolean} keep
 */
export function setToken(use, token, keep) {
  tokens[use] = token;
  if (use !== "read") return;
  if (keep && token) localStorage.setItem(KEPT, token);
  else localStorage.removeItem(KEPT);
}

/** Forgets the tokens, also the one that is kept in this browser. */
export function forgetTokens() {
  setToken("admin", "", false);
  setToken("write", "", false);
  setToken("read", "", false);
  takeShared(new URLSearchParams());
  globalThis.caches?.delete("roomtide-data");
}

/**
 * Takes the reader's token out of the address of a link (#token=rt_...), and keeps it. If another token is kept, asks
 * the person first. Tells whether another token is in use now.
 */
export function takeToken() {
  const token = /^#token=([\w-]+)/.exec(location.hash)?.[1];
  if (!token) return false;
  const link = new URLSearchParams(location.hash.slice(1));
  // The token is removed at once, so that neither the history nor the address bar shows it.
  history.replaceState(null, "", `${location.pathname}${location.search}#now`);
  const kept = localStorage.getItem(KEPT);
  if (kept === token && tokens.read === token) return false;
  if (kept && kept !== token && !confirm(t("replaceToken"))) return false;
  takeShared(link);
  setToken("read", token, true);
  return true;
}

/** Whether the last known answers may be shown at once, as when the page opens. */
let isFirst = true;

/** The number of provisional answers: those that the worker had kept, or that lack something. */
let provisionals = 0;

export function provisional() {
  return provisionals;
}

/** From now on, answers of the server come first, not the last known ones. */
export function askServer() {
  isFirst = false;
}

/** Tells whether answers may be kept in this browser: where no token is needed, or where its owner keeps the token. */
function isKept() {
  return !tokens.read || tokens.read === localStorage.getItem(KEPT);
}

/** Tells whether a token is in use. */
export function hasToken() {
  return tokens.read !== "";
}

/**
 * @param {string} path
 * @param {Params} [params]
 */
export function url(path, params = {}) {
  const asked = new URL(path, address);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) asked.searchParams.set(name, String(value));
  }
  return asked;
}

/**
 * The path of something with an id.
 * @param {string} kind
 * @param {string} id
 * @param {string} [what]
 */
export function path(kind, id, what = "") {
  return `${kind}/${encodeURIComponent(id)}${what && `/${what}`}`;
}

let underWay = 0;
/** @type {(() => void)[]} */
const waiting = [];

/**
 * Sends a request when fewer than the most are under way.
 * @param {URL} asked
 * @param {RequestInit} init
 */
async function inTurn(asked, init) {
  if (underWay < MAX_AT_ONCE) underWay += 1;
  else await new Promise((go) => waiting.push(() => go(undefined)));
  try {
    return await fetch(asked, init);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else underWay -= 1;
  }
}

/** The time of the last change here. For a minute after it, the browser's own copies of answers may be outdated. */
let changed = 0;

/**
 * @param {string} method
 * @param {URL} asked
 * @param {Use} use
 * @param {any} [body]
 * @returns {Promise<Response>}
 */
async function request(method, asked, use, body) {
  const token = tokens[use] || tokens.read;
  /** @type {Record<string, string>} */
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  // Lists of readings are not kept, because old ones do not answer a later question; nor are answers to an admin.
  if (method === "GET" && use === "read" && isKept() && !asked.pathname.endsWith("/readings") && navigator.serviceWorker?.controller) headers["x-known"] = isFirst ? "keep first" : "keep";
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    const cache = Date.now() - changed < 60_000 ? "no-cache" : "default";
    answer = await inTurn(asked, { method, headers, cache, body: body === undefined ? undefined : JSON.stringify(body) });
    if (method !== "GET") changed = Date.now();
  } catch {
    throw new Failure(0, t("noAnswer"), 0, use);
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const retryAfter = Number(answer.headers.get("retry-after")) || 0;
  // API Gateway itself answers with a message.
  const words = problem.detail || problem.message || t("answers", { status: answer.status });
  const fields = (problem.errors ?? []).map((/** @type {{field?: string}} */ error) => error.field ?? "");
  throw new Failure(answer.status, words, retryAfter, use, fields);
}

/**
 * @param {string} path
 * @param {Params} [params]
 * @returns {Promise<any>}
 */
export async function get(path, params) {
  return askShared(path, params ?? {}, ask) ?? ask(path, params);
}

/**
 * @param {string} path
 * @param {Params} [params]
 * @returns {Promise<any>}
 */
async function ask(path, params) {
  const answer = await request("GET", url(path, params), "read");
  // An answer of the worker, in the server's place, says from when it is.
  const from = answer.headers.get("x-known-from");
  if (from) window.dispatchEvent(new CustomEvent("known", { detail: from }));
  const body = await answer.json();
  if (from || isLacking(body)) provisionals += 1;
  return body;
}

/**
 * All pages of a list.
 * @param {string} path
 * @param {Params} [params]
 * @returns {Promise<any[]>}
 */
export async function list(path, params = {}) {
  const all = [];
  let cursor;
  do {
    const page = await get(path, { limit: 1000, ...params, cursor });
    all.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return all;
}

/**
 * @param {string} path
 * @param {any} body
 * @returns {Promise<any>}
 */
export async function patch(path, body) {
  return (await request("PATCH", url(path), "admin", body)).json();
}

/**
 * An edit, or a question with a body or of an admin.
 * @param {"GET" | "POST" | "PUT" | "DELETE"} method
 * @param {string} path
 * @param {any} [body]
 * @param {Use} [use]
 * @returns {Promise<any>}
 */
export async function send(method, path, body, use = "admin") {
  return (await request(method, url(path), use, body)).json();
}

/**
 * Stores a reading, where readings are stored.
 * @param {Record<string, string | number>} reading
 * @returns {Promise<any>}
 */
export async function store(reading) {
  return (await request("POST", new URL("readings", ingest), "write", reading)).json();
}

/**
 * Saves an answer as a CSV file; the page tells a failure.
 * @param {string} path
 * @param {Params} params
 * @param {string} name
 */
export async function saveCsv(path, params, name) {
  const text = async (/** @type {string} */ path, /** @type {Params} */ params = {}) => (await request("GET", url(path, { ...params, format: "csv" }), "read")).text();
  try {
    save(new Blob([await (csvShared(path, params, text) ?? text(path, params))], { type: "text/csv" }), name);
  } catch (error) {
    window.dispatchEvent(new CustomEvent("failed", { detail: error }));
  }
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
