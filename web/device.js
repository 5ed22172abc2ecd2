// The view of one device, or of all: newest values, rooms it was in, what was odd, settings. Compares no devices.

import { get, list, patch, path, saveCsv } from "./api.js";
import { lineChart } from "./chart.js";
import { buttons, card, field, fill, h, select, states, table } from "./dom.js";
import { age, midnight, moment, quantity, shownUnit, words, zone } from "./format.js";
import { again, inPlace, showEvents } from "./energy.js";
import { deviceName, forget, home, isSilent, lastDay, roomName, silence } from "./home.js";
import { isLacking, lackNote } from "./lack.js";
import { guarded } from "./token.js";

/** @typedef {import("./api.js").Device} Device */
/** @typedef {import("./home.js").Home} Home */

/**
 * @param {HTMLElement} main
 * @param {string} id empty for all devices
 */
export async function device(main, id) {
  return id ? one(main, id) : all(main);
}

/** @param {Device} device */
export function linkTo(device) {
  return h("a", { href: `#device/${encodeURIComponent(device.device_id)}` }, deviceName(device));
}

/** @param {HTMLElement} main */
function all(main) {
  let shown = "all";
  const place = h("div");
  fill(main, h("h1", null, "Devices"), h("section", { class: "card list" }, place));
  async function show() {
    const known = await home();
    const { failure } = await lastDay();
    const silent = known.devices.filter((it) => isSilent(it));
    const choice = buttons("Show", [["all", `All ${known.devices.length}`], ["silent", `⚠ Silent ${silent.length}`]], shown, (value) => { shown = value; again(place, show); });
    const rows = (shown === "all" ? known.devices : silent).map((it) => [
      linkTo(it),
      silent.includes(it) ? h("span", { class: "warn" }, `⚠ silent ${silence(it)}`) : age(it.latest?.timestamp ?? 0),
      roomName(known, it.room),
      Object.keys(it.metrics).map(words).join(", "),
    ]);
    fill(place, choice, table(shown === "all" ? "All devices" : "Silent devices", ["Device", "Newest reading", "Room", "Metrics"], rows), failure && h("p", { class: "note" }, `Usual intervals are unknown: ${failure}`));
  }
  return show;
}

/**
 * @param {HTMLElement} main
 * @param {string} id
 */
function one(main, id) {
  let metric = "";
  const heading = h("h1", null, id);
  const values = h("div");
  const chart = h("div");
  const rooms = h("div");
  const odd = h("div");
  const settings = h("div");
  const state = states(main);
  let isShown = false;
  const showOdd = async () => {
    /** @type {{data: import("./api.js").EventRow[], has_more: boolean}} */
    const { data, has_more } = await get(path("devices", id, "events"), { from: midnight(-30).toISOString() });
    const events = h("div");
    await showEvents(events, data, showOdd);
    fill(odd, card("What was odd, last 31 days", events, has_more && h("p", { class: "note" }, "There are more.")));
  };
  async function show() {
    const known = await home();
    const found = known.devices.find((it) => it.device_id === id);
    if (!found) return state("none", () => [h("h1", null, "No such device"), h("p", null, `No device is called ${id}.`), h("p", null, h("a", { href: "#device" }, "All devices"))]);
    state("device", () => [heading, h("div", { class: "two" }, card("Newest values", values), card("Rooms", rooms)), card("Last 24 hours", chart), odd, card("Settings", settings)]);
    fill(heading, deviceName(found));
    fill(values, newest(found));
    metric ||= Object.keys(found.metrics).find((name) => found.metrics[name].kind !== "counter") ?? Object.keys(found.metrics)[0] ?? "";
    await Promise.all([
      inPlace(chart, async () => {
        if (!metric) return fill(chart, h("p", null, "No metric was sent."));
        const { kind, unit } = found.metrics[metric];
        const fn = kind === "counter" ? "increase" : "mean,min,max";
        const params = { metric, fn, every: "15m", tz: zone, from: "-24h", to: "now" };
        /** @type {import("./api.js").Series} */
        const answer = await get(path("devices", id, "series"), params);
        const { data } = answer;
        const points = data.filter((row) => row[metric]).map((row) => ({ time: new Date(row.timestamp).getTime() / 1000, coverage: row.coverage, mean: row[metric].increase ?? null, ...row[metric] }));
        const names = Object.keys(found.metrics).map((name) => /** @type {[string, string]} */ ([name, words(name)]));
        const now = Date.now() / 1000;
        fill(
          chart,
          h("div", { class: "controls" }, select("Metric", names, metric, (value) => { metric = value; again(chart, show); }), h("button", { type: "button", onclick: () => saveCsv(path("devices", id, "series"), params, `${id}-${metric}.csv`) }, "CSV")),
          lineChart({ title: `${words(metric)}${kind === "counter" ? " per 15 minutes" : ""}`, unit, lines: [{ label: words(metric), points }], range: [now - 86_400, now], step: 900, lacks: isLacking(answer) }),
          lackNote(answer),
        );
      }),
      inPlace(rooms, async () => {
        const stays = await list(path("devices", id, "stays"));
        const isThere = (/** @type {any} */ it) => !it.until && it.room === found.room;
        const rows = stays.map((it) => [roomName(known, it.room), moment(it.since), it.until ? moment(it.until) : isThere(it) ? "now" : "lately"]).reverse();
        // A stay that readings teach is known after 15 minutes.
        if (found.room && !stays.some(isThere)) rows.unshift([roomName(known, found.room), "lately", "now"]);
        fill(rooms, rows.length ? table("Where it has been", ["Room", "From", "To"], rows) : h("p", null, "It has been in no room."));
      }),
      !isShown && Object.values(found.metrics).some((it) => it.kind === "counter") && inPlace(odd, showOdd),
    ]);
    // A form that somebody fills in is left alone.
    if (!isShown) fill(settings, form(known, found, () => { isShown = false; return again(main, show); }));
    isShown = true;
  }
  return show;
}

/** @type {Record<string, string>} why the means of rooms leave a metric out */
const REASONS = { person: "a person said so", kind: "by its kind", metric: "by its name" };

/** @param {Device} device */
function newest(device) {
  const rows = Object.entries(device.metrics).map(([name, { unit, not_of_room }]) => {
    const value = device.latest?.metrics[name];
    const what = not_of_room ? h("span", null, words(name), h("span", { class: "note" }, ` not the room's: ${REASONS[not_of_room]}`)) : words(name);
    return [what, value ? quantity(value.value, unit) : "none", value ? age(value.timestamp) : ""];
  });
  return rows.length ? table("Each metric", ["Metric", "Value", "Age"], rows) : h("p", null, "No metric was sent.");
}

/**
 * @param {Home} known
 * @param {Device} device
 * @param {() => Promise<unknown>} changed
 */
function form(known, device, changed) {
  const text = (/** @type {string | null} */ value) => h("input", { type: "text", value: value ?? "", autocomplete: "off" });
  const name = text(device.name);
  const room = text(device.room);
  const kind = text(device.kind);
  const tags = text(device.tags.join(", "));
  let behind = device.behind ?? "";
  const inMeans = device.in_room_means === undefined ? "" : String(device.in_room_means);
  let chosenMeans = inMeans;
  const meters = known.devices.filter((it) => it !== device && hasEnergy(it)).map((it) => /** @type {[string, string]} */ ([it.device_id, deviceName(it)]));
  room.setAttribute("list", "rooms");
  const said = h("p", { role: "status" });
  const counters = Object.entries(device.metrics).filter(([, it]) => it.kind === "counter" || it.unit === "kWh");
  const figures = counters.map(([metric, it]) => ({ metric, it, inputs: { modulus: text(String(it.modulus ?? "")), max_w: text(String(it.max_w ?? "")), tolerance: text(String(it.tolerance ?? "")) } }));
  const save = async () => {
    /** @type {Record<string, any>} */
    const edit = {};
    if (name.value !== (device.name ?? "")) edit.name = name.value || null;
    if (room.value !== (device.room ?? "")) edit.room = room.value || null;
    if (kind.value !== (device.kind ?? "")) edit.kind = kind.value || null;
    if (tags.value !== device.tags.join(", ")) edit.tags = tags.value.split(",").map((it) => it.trim()).filter(Boolean);
    if (behind !== (device.behind ?? "")) edit.behind = behind || null;
    if (chosenMeans !== inMeans) edit.in_room_means = chosenMeans ? chosenMeans === "true" : null;
    for (const { metric, it, inputs } of figures) {
      for (const setting of /** @type {const} */ (["modulus", "max_w", "tolerance"])) {
        const given = inputs[setting].value.trim().replace(",", ".");
        if (given === String(it[setting] ?? "")) continue;
        // What is no number goes as it is, so that the server says what it expects.
        const value = given === "" ? null : Number.isNaN(Number(given)) ? given : Number(given);
        edit.metrics = { ...edit.metrics, [metric]: { ...edit.metrics?.[metric], [setting]: value } };
      }
    }
    if (!Object.keys(edit).length) return fill(said, "Nothing is changed.");
    await guarded(() => patch(path("devices", device.device_id), edit));
    forget();
    await changed();
  };
  return h(
    "form",
    {
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        save().catch((error) => fill(said, h("span", { class: "warn" }, error.message)));
      },
    },
    h("p", { class: "note" }, `Id ${device.device_id}, first reading ${moment(device.first_seen)}. Edits need an admin token where the server asks for tokens.`),
    h("div", { class: "controls" }, field("Name", name), field("Room (id)", room), field("Kind", kind), field("Tags, separated by commas", tags), select("Part of its room's means", [["", "as its kind says"], ["true", "yes"], ["false", "no, as a freezer"]], chosenMeans, (value) => { chosenMeans = value; }), hasEnergy(device) && meters.length > 0 && select("Behind the meter, which measures it too", [["", "none"], ...meters], behind, (value) => { behind = value; })),
    h("datalist", { id: "rooms" }, ...known.rooms.map((it) => h("option", { value: it.room_id }, it.name ?? ""))),
    ...figures.map(({ metric, it, inputs }) =>
      h(
        "fieldset",
        { class: "controls" },
        h("legend", null, `${words(metric)}, ${shownUnit(it.unit)}`),
        field("Begins again after (modulus)", inputs.modulus),
        field("Highest likely power, W", inputs.max_w),
        field("Tolerated fall", inputs.tolerance),
      ),
    ),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, "Save")),
    said,
  );
}

/** Tells whether a device measures power or energy. @param {Device} device */
function hasEnergy(device) {
  return Object.values(device.metrics).some(({ unit }) => /^[kM]?Wh?$/.test(unit ?? ""));
}
