// The view for a newcomer: the lines that send a first reading, with this server's address, and its arrival.

import { address, ingest, store } from "./api.js";
import { card, fill, h } from "./dom.js";
import { age, clock, quantity, words } from "./format.js";
import { deviceName, home } from "./home.js";
import { guarded } from "./token.js";

/** The address at which readings are stored, without the slash at its end. */
const server = ingest.replace(/\/$/, "");
const host = new URL(ingest);
const isLocal = /^(127\..*|localhost|\[::1\])$/.test(host.hostname);
/** The name by which other machines reach the server; a placeholder where the page's own is of this machine only. */
const name = isLocal ? "ADDRESS" : host.hostname;
const reached = isLocal ? server.replace(host.hostname, name) : server;
const ports = `${location.port === "8080" ? "" : ` --port ${location.port}`}${host.port === location.port ? "" : ` --ingest-port ${host.port}`}`;
const start = `cargo run -- --auth --host 0.0.0.0${ports}`;
const token = "TOKEN";

/** @type {[string, string, string, string][]} the sender, its device or none for many, a word on it, and what to copy */
const SENDERS = [
  ["curl", "my-sensor", "A first reading from a terminal.", `curl ${server}/readings -H 'authorization: Bearer ${token}' \\
  --json '{"device_id": "my-sensor", "room": "study", "temperature": 21.5}'`],
  ["ESPHome", "esphome-study", "In the device's YAML; temperature is the id of a sensor there.", `http_request:
  timeout: 10s
  verify_ssl: false

interval:
  - interval: 60s
    then:
      - http_request.post:
          url: ${reached}/readings
          request_headers:
            Content-Type: application/json
            Authorization: Bearer ${token}
          json: |-
            root["device_id"] = "esphome-study";
            root["room"] = "study";
            root["temperature"] = id(temperature).state;`],
  ["Home Assistant", "", "In configuration.yaml; each sensor of the list is stored as it changes.", `influxdb:
  api_version: 2
  ssl: ${host.protocol === "https:"}
  host: ${name}
  port: ${host.port || (host.protocol === "https:" ? 443 : 80)}
  token: ${token}
  organization: home
  bucket: home
  include:
    entities:
      - sensor.study_temperature`],
  ["Telegraf", "", "In telegraf.conf.", `[agent]
  interval = "60s"

[[outputs.influxdb_v2]]
  urls = ["${reached}"]
  token = "${token}"
  organization = "home"
  bucket = "home"
  content_encoding = "identity"`],
  ["Tasmota", "tasmota-plug", "In the console of the plug, the three lines one after another: it posts its power and its meter by WebQuery every minute. To an address of https only an ESP32 posts; give an ESP8266 a server at home.", `Rule1 ON Tele-ENERGY#Total DO Var1 %value% ENDON ON Tele-ENERGY#Power DO WebQuery ${reached}/readings/tasmota?device=tasmota-plug&room=study POST [Content-Type: application/json|Authorization: Bearer ${token}] {"ENERGY": {"Power": %value%, "Total": %var1%}} ENDON
Rule1 1
TelePeriod 60`],
  ["Shelly", "shelly-plug", "A script of a device of the second generation or later; all that it measures is stored.", `Timer.set(60000, true, function () {
  Shelly.call("Shelly.GetStatus", {}, function (status) {
    Shelly.call("HTTP.Request", {
      method: "POST",
      url: "${reached}/readings/shelly?device=shelly-plug",
      headers: {"Content-Type": "application/json", "Authorization": "Bearer ${token}"},
      body: JSON.stringify(status),
    });
  });
});`],
  ["Any other device", "boiler", "One that can only call an address. Here the token is never left out: it has to be a write token, also without --auth.", `${reached}/readings/quick?device=boiler&room=cellar&temperature=55.5&p=${token}`],
];

/** What the first lines send. */
const FIRST = { device_id: "my-sensor", room: "study", temperature: 21.5 };

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
  return h(
    "div",
    null,
    h("h1", null, "Connect a device"),
    card("This server", h("p", null, server === address.replace(/\/$/, "") ? "Its address is " : "Readings are stored at ", h("code", null, server), "."), arrived ?? h("p", null, "There are no devices yet. ", h("a", { href: "#connect" }, "Wait for the first reading"), "."),
      isLocal && elsewhere("Only this machine reaches that address."),
      h("p", { class: "note" }, `In the lines below ${token} is a write token, made by the command there; a server without --auth takes any word. Add --data-dir if the server was started with it, and --table and --region for a deployed system. Commands are for the folder of the repository; where you installed roomtide, write that in place of cargo run --.`),
    ),
    ...SENDERS.map(([title, device, text, lines]) => card(title, h("p", null, text), h("p", { class: "note" }, `${token}: `, h("code", null, `cargo run -- token create --scope write ${device ? `--device ${device}` : "--any"}`)), isLocal && lines.includes(name) && elsewhere(`${name} is this machine's in your network, such as 192.168.1.20.`), copyable(title, lines), title === "curl" && sender())),
  );
}

/** Sends the first reading from here. */
function sender() {
  const said = h("span", { role: "status" });
  const send = async () => {
    await guarded(() => store(FIRST), "write");
    fill(said, "sent");
  };
  return h("p", null, h("button", { type: "button", onclick: () => send().catch((error) => fill(said, error.message)) }, "Send it from here"), " ", said);
}

/**
 * How the server is reached from other machines.
 * @param {string} text
 */
function elsewhere(text) {
  return h("p", { class: "note" }, `${text} For other machines start the server by `, h("code", null, start), ".");
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
