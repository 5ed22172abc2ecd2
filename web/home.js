// The devices and rooms that every view shows, and what can be said of them. Draws nothing.

import { list } from "./api.js";

/** @typedef {import("./api.js").Device} Device */
/** @typedef {import("./api.js").Room} Room */
/** @typedef {{devices: Device[], rooms: Room[]}} Home */

/** @type {{at: number, home: Promise<Home>} | null} */
let known = null;

/**
 * The devices with their newest values, and the rooms. Views that ask within some seconds share one answer.
 * @param {number} [maxAge] milliseconds
 * @returns {Promise<Home>}
 */
export function home(maxAge = 5_000) {
  if (!known || Date.now() - known.at > maxAge) {
    const asked = Promise.all([list("devices", { latest: 1 }), list("rooms")]);
    const mine = { at: Date.now(), home: asked.then(([devices, rooms]) => ({ devices, rooms })) };
    known = mine;
    mine.home.catch(() => {
      if (known === mine) known = null;
    });
  }
  return known.home;
}

/** Forgets what is known, after an edit. */
export function forget() {
  known = null;
}

/** @param {Device} device */
export function deviceName(device) {
  return device.name || device.device_id;
}

/**
 * @param {Home} home
 * @param {string | null | undefined} id
 */
export function roomName(home, id) {
  return home.rooms.find((room) => room.room_id === id)?.name || id || "no room";
}

/**
 * The metrics that any device has, by name, those first that people look at first.
 * @param {Device[]} devices
 * @returns {Map<string, import("./api.js").Metric>}
 */
export function metricsOf(devices) {
  const first = ["temperature", "humidity", "co2", "current_w"];
  /** @type {Map<string, import("./api.js").Metric>} */
  const all = new Map();
  for (const device of devices) {
    for (const [name, metric] of Object.entries(device.metrics)) if (!all.has(name)) all.set(name, metric);
  }
  const place = (/** @type {string} */ name) => (first.indexOf(name) + 1 || 99);
  return new Map([...all].sort(([a], [b]) => place(a) - place(b) || a.localeCompare(b)));
}

/**
 * The power of a device now in W, if it measures one.
 * @param {Device} device
 */
export function powerOf(device) {
  for (const [name, metric] of Object.entries(device.metrics)) {
    const value = device.latest?.metrics[name]?.value;
    if (value === undefined || metric.kind === "counter") continue;
    if (metric.unit === "W" || name === "current_w" || name === "power") return value;
    if (metric.unit === "kW") return value * 1000;
  }
  return null;
}

/** Tells whether a room is outside, where no comfort is judged. @param {string} text */
export function isOutside(text) {
  return /outs|outdoor|garden|balcon|terrace|roof/i.test(text);
}
