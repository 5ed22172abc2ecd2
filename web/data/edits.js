// Edits of devices and rooms, and verdicts about the steps of their counters. Draws nothing.

import { get, patch, path } from "./api.js";
import { forgetSteps } from "./consumption.js";
import { forget } from "./home.js";

/** @param {string} id @param {Record<string, unknown>} edit */
export async function editDevice(id, edit) {
  await patch(path("devices", id), edit);
  forget();
}

/** @param {string} id @param {Record<string, unknown>} edit */
export async function editRoom(id, edit) {
  await patch(path("rooms", id), edit);
  forget();
}

/**
 * Adds a verdict to those of the device, which the API takes as a whole, or takes it back.
 * @param {import("./api.js").EventRow} event
 * @param {string | null} verdict
 */
export async function judgeStep(event, verdict) {
  const at = event.to?.timestamp ?? event.timestamp;
  /** @type {import("./api.js").Device} */
  const device = await get(path("devices", event.device_id));
  const others = (device.metrics[event.metric]?.verdicts ?? []).filter((it) => new Date(it.timestamp).getTime() !== new Date(at).getTime());
  await editDevice(event.device_id, { metrics: { [event.metric]: { verdicts: verdict ? [...others, { timestamp: at, verdict }] : others } } });
  forgetSteps();
}
