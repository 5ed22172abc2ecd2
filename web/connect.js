// The view for a newcomer: the lines that send a first reading, with this server's address, and its arrival.

import { address } from "./api.js";
import { card, fill, h } from "./dom.js";
import { age, clock, quantity, words } from "./format.js";
import { deviceName, home } from "./home.js";

/** The address without the slash at its end. */
const server = address.replace(/\/$/, "");
const host = new URL(address);
const token = "TOKEN";

/** @type {[string, string, string][]} the sender, a word on it, and what to copy */
const SENDERS = [
  ["curl", "A first reading from a terminal.", `curl ${server}/readings -H 'authorization: Bearer ${token}' \\
  --json '{"device_id": "my-sensor", "room": "study", "temperature": 21.5}'`],
  ["ESPHome", "In the device's YAML; temperature is the id of a sensor there.", `http_request:
  timeout: 10s
  verify_ssl: false

interval:
  - interval: 60s
    then:
      - http_request.post:
          url: ${server}/readings
          request_headers:
            Content-Type: application/json
            Authorization: Bearer ${token}
          json: |-
            root["device_id"] = "esphome-study";
            root["room"] = "study";
            root["temperature"] = id(temperature).state;`],
  ["Home Assistant", "In configuration.yaml; each sensor of the list is stored as it changes.", `influxdb:
  api_version: 2
  ssl: ${host.protocol === "https:"}
  host: ${host.hostname}
  port: ${host.port || (host.protocol === "https:" ? 443 : 80)}
  token: ${token}
  organization: home
  bucket: home
  include:
    entities:
      - sensor.study_temperature`],
  ["Telegraf", "In telegraf.conf.", `[agent]
  interval = "60s"

[[outputs.influxdb_v2]]
  urls = ["${server}"]
  token = "${token}"
  organization = "home"
  bucket = "home"`],
  ["Tasmota", "In the console of the plug. With an ESP8266 it speaks http only.", `Rule1 ON Tele-ENERGY#Power DO WebQuery ${server}/readings POST [Content-Type: application/json|Authorization: Bearer ${token}] {"device_id": "tasmota-plug", "current_w": %value%} ENDON
Rule1 1
TelePeriod 60`],
  ["Shelly", "A script of a device of the second generation or later; all that it measures is stored.", `Timer.set(60000, true, function () {
  Shelly.call("Shelly.GetStatus", {}, function (status) {
    Shelly.call("HTTP.Request", {
      method: "POST",
      url: "${server}/readings/shelly?device=shelly-plug",
      headers: {"Content-Type": "application/json", "Authorization": "Bearer ${token}"},
      body: JSON.stringify(status),
    });
  });
});`],
];

/** @param {HTMLElement} main */
export async function connect(main) {
  const arrived = h("div", { role: "status" });
  const shown = empty(arrived);
  fill(main, shown);
  const since = Date.now();
  return async () => {
    const { devices } = await home(1_000);
    const newest = devices
      .filter((it) => it.latest)
      .sort((a, b) => (a.latest?.timestamp ?? "").localeCompare(b.latest?.timestamp ?? ""))
      .at(-1);
    if (!newest?.latest) return fill(arrived, h("p", { class: "big" }, "Waiting for a first reading ..."));
    const at = new Date(newest.latest.timestamp).getTime();
    const isNew = at >= since - 60_000;
    const values = Object.entries(newest.latest.metrics).map(([name, { value }]) => `${words(name)} ${quantity(value, newest.metrics[name]?.unit)}`);
    fill(
      arrived,
      h("p", { class: "big" }, isNew ? "Reading received" : "Waiting for a new reading ..."),
      h("p", null, `${isNew ? "" : "The newest so far: "}${deviceName(newest)}: ${values.join(", ")}, ${age(at)} (${clock(at)}).`),
    );
  };
}

/**
 * The lines to copy.
 * @param {Node} [arrived] where the first reading is told
 */
export function empty(arrived) {
  const isLocal = host.hostname === "127.0.0.1" || host.hostname === "localhost" || host.hostname === "[::1]";
  return h(
    "div",
    null,
    h("h1", null, "Connect a device"),
    card("This server", h("p", null, "Its address is ", h("code", null, server), "."), arrived ?? h("p", null, "There are no devices yet. ", h("a", { href: "#connect" }, "Wait for the first reading"), "."),
      isLocal && h("p", { class: "note" }, "Only this machine reaches that address. For devices in your network run cargo run -- --auth --host 0.0.0.0 and open the page by this machine's own address."),
      h("p", { class: "note" }, `In the lines below ${token} is a write token, made by `, h("code", null, "roomtide token create --scope write --device ID"), ", or with --any for a sender of many devices; without --auth any word will do."),
    ),
    ...SENDERS.map(([name, text, lines]) => card(name, h("p", null, text), copyable(name, lines))),
  );
}

/**
 * @param {string} name
 * @param {string} lines
 */
function copyable(name, lines) {
  const said = h("span", { role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(lines);
    fill(said, "copied");
  };
  return h(
    "div",
    null,
    h("pre", { tabindex: 0, "aria-label": `Lines for ${name}` }, lines),
    // Browsers give the clipboard to pages of https and of this machine only.
    navigator.clipboard && h("button", { type: "button", "aria-label": `Copy the lines for ${name}`, onclick: () => copy().catch(() => fill(said, "cannot be copied here")) }, "Copy"),
    " ",
    said,
  );
}
