// Links for others, and tokens of senders, which an admin makes here. Draws nothing.

import { address, list, path, send, store } from "./api.js";

/** The most rooms that a link shows. */
const MAX_ROOMS = 99;

/**
 * Makes a link that shows a room, or the rooms of a home and its energy, and nothing else.
 * @param {"home" | "room"} kind
 * @param {string} id
 * @param {string} name
 * @param {string} expires
 */
export async function makeLink(kind, id, name, expires) {
  const rooms = kind === "room" ? [id] : (await list(path("homes", id, "rooms"))).map((/** @type {any} */ room) => room.room_id).slice(0, MAX_ROOMS);
  const { token } = await send("POST", "tokens", { scope: "view", rooms, ...(kind === "home" && { homes: [id] }), name, expires });
  const about = new URLSearchParams({ view: "1", ...(kind === "home" && { home: id }), rooms: rooms.join(",") });
  return `${address}#token=${token}&${about}`;
}

/** Makes a token with which a device writes. @param {string} device @returns {Promise<string>} */
export async function makeToken(device) {
  const { token } = await send("POST", "tokens", { scope: "write", device, name: device });
  return token;
}

/** Stores a reading as a sender does. @param {Record<string, string | number>} reading */
export function sendReading(reading) {
  return store(reading);
}
