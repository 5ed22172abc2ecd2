// The name of a device as a link to its view; for a link for others, which has none, the name alone.

import { deviceName } from "../data/home.js";
import { isShared } from "../data/shared.js";
import { h } from "./dom.js";

/** @param {import("../data/api.js").Device} device */
export function linkTo(device) {
  if (isShared()) return h("span", null, deviceName(device));
  return h("a", { href: `#device/${encodeURIComponent(device.device_id)}` }, deviceName(device));
}
