// The rules that tell somebody, their states and the channels by which they tell. Draws nothing.

import { get, send } from "./api.js";
import { isShared } from "./shared.js";

/** @typedef {{subject: string, phase: string, since?: string, value?: string, acknowledged?: boolean, last?: string, silent?: boolean, count?: number}} State */
/** @typedef {{id: string, name: string, on: boolean, device?: string, room?: string, kind?: string, tag?: string, mean_of_room?: string, metric?: string, above?: string, below?: string, silent_for?: string, budget_kwh?: string, per?: string, demand_kw?: string, period?: string, counter?: string[], for?: string, paused_until?: string, states: State[], firing: number, pending: number}} Rule */
/** @typedef {{id: string, kind: string, name: string, quiet_hours?: string, failing_since?: string, next?: string, waiting?: number, waiting_since?: string}} Channel */
/** @typedef {{data: Rule[], channels: Channel[], firing: number, pending: number}} Alerts */

/** All rules; null for a link for others, which shows none. @returns {Promise<Alerts | null>} */
export async function alertsOrNone() {
  return isShared() ? null : alerts();
}

/** All rules. @returns {Promise<Alerts>} */
export function alerts() {
  return get("alerts");
}

/** @param {string} id @param {string | null} until */
export function pauseRule(id, until) {
  return send("POST", `alerts/${encodeURIComponent(id)}/pause`, { until });
}

/** @param {string} id @param {string} subject */
export function acknowledgeRule(id, subject) {
  return send("POST", `alerts/${encodeURIComponent(id)}/acknowledge`, subject ? { subject } : {});
}

/** @param {string} id */
export function deleteRule(id) {
  return send("DELETE", `alerts/${encodeURIComponent(id)}`);
}

/** @param {string} id @param {Record<string, unknown>} rule */
export function putRule(id, rule) {
  return send("PUT", `alerts/${encodeURIComponent(id)}`, rule);
}

/** @param {string} id @param {Record<string, unknown>} channel */
export function putChannel(id, channel) {
  return send("PUT", `channels/${encodeURIComponent(id)}`, channel);
}

/** @param {string} id */
export function testChannel(id) {
  return send("POST", `channels/${encodeURIComponent(id)}/test`, {});
}

/** @param {string} id */
export function deleteChannel(id) {
  return send("DELETE", `channels/${encodeURIComponent(id)}`);
}

/**
 * The episodes that a rule would have had; without ends, in the last seven days.
 * @param {Record<string, unknown>} rule
 * @param {{from?: string, to?: string}} [ends]
 * @returns {Promise<{episodes: number, subjects: {subject: string, episodes: {since: string, fired: string, ended: string | null}[]}[]}>}
 */
export function previewRule(rule, ends = {}) {
  return send("POST", "alerts/preview", { rule, ...ends }, "read");
}

/** The channels with what waits in them. @returns {Promise<{data: Channel[]}>} */
export function channels() {
  return get("channels");
}

/** What happened by a rule. @param {string} id @returns {Promise<{data: {at: string, news: string, text: string, subject: string}[]}>} */
export function historyOf(id) {
  return get(`alerts/${encodeURIComponent(id)}/history`, { limit: 20 });
}

/** The links of messages that the address has. @returns {{rule: string, subject: string, key: string}[]} */
export function linksIn(/** @type {string} */ hash) {
  if (!hash.startsWith("#acknowledge=")) return [];
  return hash.slice(1).split("&").flatMap((it) => {
    const [, rule, subject, key] = /^acknowledge=([^,]+),([^,]+),([\w-]+)$/.exec(it) ?? [];
    return key ? [{ rule: decodeURIComponent(rule), subject: decodeURIComponent(subject), key }] : [];
  });
}

/** Acknowledges by the link of a message, which needs no token. @param {{rule: string, subject: string, key: string}} link */
export function acknowledgeByLink(link) {
  return send("POST", "acknowledge", link, "read");
}
