// The lines that a sender needs, with this server's address, and with a token where the server asks for one. Makes none.

import { ingest, ofData, program } from "./api.js";

/** The address at which readings are stored, without the slash at its end. */
export const server = ingest.replace(/\/$/, "");
const host = new URL(ingest);
/** Whether that address is of this machine only. */
export const isLocal = /^(127\..*|localhost|\[::1\])$/.test(host.hostname);
/** The name by which other machines reach the server; a placeholder where the page's own is of this machine only. */
export const name = isLocal ? "ADDRESS" : host.hostname;
const reached = isLocal ? server.replace(host.hostname, name) : server;
const ports = `${location.port === "8080" ? "" : ` --port ${location.port}`}${host.port === location.port ? "" : ` --ingest-port ${host.port}`}`;
/** The command that starts the server for other machines. */
export const start = `${program} --auth --host 0.0.0.0${ports}${ofData}`;

/** @typedef {{title: string, key: string, device: string, lines: (device: string, room: string, token: string) => string}} Sender without a device it sends for many */

/** A header of a token, between other text; nothing where the server asks for none. @param {string} token @param {string} before @param {string} after */
function bearer(token, before, after) {
  return token && `${before}Bearer ${token}${after}`;
}

/** @type {Sender[]} */
export const SENDERS = [
  { title: "curl", key: "curl", device: "my-sensor", lines: (device, room, token) => `curl ${server}/readings${bearer(token, " -H 'authorization: ", "'")} \\
  --json '{"device_id": "${device}", "room": "${room}", "temperature": 21.5}'` },
  { title: "ESPHome", key: "esphome", device: "esphome-study", lines: (device, room, token) => `http_request:
  timeout: 10s
  verify_ssl: false

interval:
  - interval: 60s
    then:
      - http_request.post:
          url: ${reached}/readings
          request_headers:
            Content-Type: application/json${bearer(token, "\n            Authorization: ", "")}
          json: |-
            root["device_id"] = "${device}";
            root["room"] = "${room}";
            root["temperature"] = id(temperature).state;` },
  { title: "Home Assistant", key: "homeAssistant", device: "", lines: (_, __, token) => `influxdb:
  api_version: 2
  ssl: ${host.protocol === "https:"}
  host: ${name}
  port: ${host.port || (host.protocol === "https:" ? 443 : 80)}
  token: ${token || "none"}
  organization: home
  bucket: home
  include:
    entities:
      - sensor.study_temperature` },
  { title: "Telegraf", key: "telegraf", device: "", lines: (_, __, token) => `[agent]
  interval = "60s"

[[outputs.influxdb_v2]]
  urls = ["${reached}"]
  token = "${token || "none"}"
  organization = "home"
  bucket = "home"
  content_encoding = "identity"` },
  { title: "Tasmota", key: "tasmota", device: "tasmota-plug", lines: (device, room, token) => `Rule1 ON Tele-ENERGY#Total DO Var1 %value% ENDON ON Tele-ENERGY#Power DO WebQuery ${reached}/readings/tasmota?device=${device}&room=${room} POST [Content-Type: application/json${bearer(token, "|Authorization: ", "")}] {"ENERGY": {"Power": %value%, "Total": %var1%}} ENDON
Rule1 1
TelePeriod 60` },
  { title: "Shelly", key: "shelly", device: "shelly-plug", lines: (device, room, token) => `Timer.set(60000, true, function () {
  Shelly.call("Shelly.GetStatus", {}, function (status) {
    Shelly.call("HTTP.Request", {
      method: "POST",
      url: "${reached}/readings/shelly?device=${device}&room=${room}",
      headers: {"Content-Type": "application/json"${bearer(token, ', "Authorization": "', '"')}},
      body: JSON.stringify(status),
    });
  });
});` },
  { title: "", key: "other", device: "boiler", lines: (device, room, token) => `${reached}/readings/quick?device=${device}&room=${room}&temperature=55.5&p=${token || "TOKEN"}` },
];
