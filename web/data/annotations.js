// The notes that people made on charts: read, added, removed. Draws nothing.

import { Failure, list, send } from "./api.js";

/** @typedef {{annotation_id: string, from: string, to: string | null, text: string, device?: string, room?: string, home?: string}} Annotation */
/** @typedef {{id: string, from: number, to: number | null, text: string, device?: string, room?: string}} Note times in seconds */

/**
 * The notes in a range of time; empty from an earlier version of the server, which does not know notes.
 * @param {number} from milliseconds
 * @param {number} to
 * @returns {Promise<Note[]>}
 */
export async function marksOf(from, to) {
  try {
    /** @type {Annotation[]} */
    const rows = await list("annotations", { from: new Date(from).toISOString(), to: new Date(to).toISOString() });
    return rows.map((it) => ({ id: it.annotation_id, from: new Date(it.from).getTime() / 1000, to: it.to ? new Date(it.to).getTime() / 1000 : null, text: it.text, device: it.device, room: it.room }));
  } catch (error) {
    if (error instanceof Failure && (error.status === 404 || error.status === 405)) return [];
    throw error;
  }
}

/**
 * Keeps a note, at a time in milliseconds.
 * @param {number} from
 * @param {{device: string} | {room: string}} about
 * @param {string} text
 */
export function keepNote(from, about, text) {
  const id = `${new Date(from).toISOString()}-${Math.random().toString(36).slice(2, 10)}`;
  return send("PUT", `annotations/${encodeURIComponent(id)}`, { ...about, text });
}

/** @param {string} id */
export function dropNote(id) {
  return send("DELETE", `annotations/${encodeURIComponent(id)}`);
}
