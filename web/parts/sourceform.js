// The form of a source: its members as the server lists them, a test, the rooms of what it found. Knows no maker; the
// only kind that it knows is `json`, whose numbers people choose themselves.

import { deviceName } from "../data/home.js";
import { alerts, channels } from "../data/rules.js";
import { headersOf, metricAt, placeholdersOf, putSource, rulesOf, testSource, unwatch, watch } from "../data/polled.js";
import { named, rich, t } from "../words/words.js";
import { quantity, stateWord, words } from "../words/format.js";
import { card, field, fill, h } from "./dom.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/polled.js").Source} Source */
/** @typedef {import("../data/polled.js").Kind} Kind */
/** @typedef {import("../data/polled.js").Tested} Tested */
/** @typedef {import("../data/polled.js").Member} Member */
/** @typedef {HTMLInputElement | HTMLSelectElement} Input */
/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {{known: Home, kind: Kind, source?: Source, id: string, done: (id: string) => void, cancel: () => void}} About `source` if it is saved already */

/** The most values of a device that are shown. */
const MAX_VALUES = 5;
/** Members of the kind `json` that say where a secret goes, or what is read of the answer, and have no field. */
const WITHOUT_FIELD = ["method", "basic", "body", "format", "at", "each", "only", "time", "device", "fill", "metrics"];

/** A field of one line. @param {Record<string, any>} [props] */
function line(props = {}) {
  return h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props });
}

/** @param {About} about */
export function sourceForm({ known, kind, source, id, done, cancel }) {
  const isJson = kind.kind === "json";
  const said = h("p", { role: "alert" });
  const found = h("div");
  const own = line({ value: id, required: true, pattern: "[\\w.:\\-]{1,100}", disabled: Boolean(source) });
  const every = line({ value: source?.every ?? "", placeholder: kind.every });
  const fields = isJson ? jsonFields(source) : memberFields(kind, source);
  const numbers = numberList(source);

  /** The body of the test, and of what is saved. */
  const body = () => ({
    ...source,
    kind: kind.kind,
    ...fields.read(),
    ...(isJson && { metrics: numbers.read() }),
    every: every.value.trim() || undefined,
  });
  const attempt = async (/** @type {() => Promise<unknown>} */ act) => {
    fill(said, t("asking"));
    form.setAttribute("aria-busy", "true");
    for (const wrong of form.querySelectorAll("[aria-invalid]")) wrong.removeAttribute("aria-invalid");
    try {
      await guarded(act);
      fill(said);
    } catch (error) {
      const { message, fields: names = [] } = /** @type {import("../data/api.js").Failure} */ (error);
      fill(said, h("span", { class: "warn" }, message));
      const wrong = names.map((name) => form.querySelector(`[name="${CSS.escape(name.replace(/^secrets\./, ""))}"]`)).find(Boolean);
      wrong?.setAttribute("aria-invalid", "true");
      if (wrong instanceof HTMLElement) wrong.focus();
    } finally {
      form.removeAttribute("aria-busy");
    }
  };
  const test = async () => {
    const tested = await testSource(own.value.trim(), body());
    numbers.show(tested);
    const told = await tellBox(own.value.trim());
    const rooms = roomFields(tested, known, source);
    const save = async () => {
      await putSource(own.value.trim(), { ...body(), rooms: { ...source?.rooms, ...rooms.read() } });
      await told.save(named(`kind_${kind.kind}`, kind.title));
      done(own.value.trim());
    };
    const saves = h("form", { onsubmit: submit(() => attempt(save)) },
      tested.devices.length > 0 && h("h3", null, t("testFound", { n: tested.devices.length })),
      rooms.node,
      tested.rejected.length > 0 && h("p", { class: "warn" }, t("refusedValues", { n: tested.rejected.length, why: tested.rejected[0] })),
      ...tested.warnings.map((warning) => h("p", { class: "warn" }, warning)),
      isJson && numbers.node,
      told.node,
      h("div", { class: "buttons" }, h("button", { type: "submit" }, t("save"))),
    );
    fill(found, saves);
    /** @type {HTMLElement | null} */ (saves.querySelector("h3"))?.scrollIntoView({ block: "nearest" });
  };

  const asks = h("form", { onsubmit: submit(() => attempt(test)), oninput: () => fill(found) },
    ...(isJson ? [field(t("deviceIdField"), own)] : []),
    fields.node,
    h("details", { class: "behind" }, h("summary", null, t("moreSettings")),
      h("div", { class: "controls" }, !isJson && field(t("sourceId"), own), field(t("everyField"), every), ...fields.more),
    ),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, t("test")), h("button", { type: "button", onclick: cancel }, t("cancel"))),
  );
  const form = card(named(`kind_${kind.kind}`, kind.title), h("p", { class: "note" }, named(`where_${kind.kind}`, kind.where)), asks, found, said);
  return form;
}

/** @param {() => unknown} act */
function submit(act) {
  return (/** @type {Event} */ event) => {
    event.preventDefault();
    act();
  };
}

/**
 * A field of a secret. One that is saved is not shown, and stays where nothing is typed.
 * @param {string} name
 * @param {Source} [source]
 */
function secretField(name, source) {
  const isSaved = Boolean(source?.secrets?.includes(name) && !source.lacks_secrets);
  return h("input", { type: "password", name, autocomplete: "off", spellcheck: "false", required: !isSaved, placeholder: isSaved ? t("unchanged") : null });
}

/** What was typed, by name; without what was left empty, and without a flag that is on. @param {Map<string, Input>} inputs */
function typedIn(inputs) {
  const typed = (/** @type {Input} */ input) => input.type !== "checkbox" ? input.value.trim() : /** @type {HTMLInputElement} */ (input).checked ? "" : "false";
  return Object.fromEntries([...inputs].map(([name, input]) => [name, typed(input)]).filter(([, value]) => value));
}

/**
 * The input of a member, by its form. A flag that nobody set is on.
 * @param {Member} member
 * @param {any} value
 * @returns {Input}
 */
function memberInput({ name, form, range, choices = [], is_needed }, value) {
  const common = { name, required: is_needed };
  switch (form) {
    case "flag":
      return h("input", { type: "checkbox", name, checked: value ?? true });
    case "number":
      return line({ ...common, type: "number", step: "any", min: range?.[0], max: range?.[1], value: value ?? "" });
    case "choice":
      return h("select", common, ...["", ...choices].map((choice) => h("option", { value: choice, selected: choice === value }, choice)));
    default:
      return line({ ...common, value: value ?? "" });
  }
}

/**
 * The members of a kind as the server lists them.
 * @param {Kind} kind
 * @param {Source} [source]
 */
function memberFields(kind, source) {
  /** @type {Map<string, Input>} */
  const secrets = new Map();
  /** @type {Map<string, Input>} */
  const members = new Map();
  for (const member of kind.members) {
    const { name } = member;
    if (member.form === "secret") secrets.set(name, secretField(name, source));
    else members.set(name, memberInput(member, source?.[name]));
  }

  const labelled = (/** @type {Member} */ { name, form, hint }) => {
    const [text, input] = [named(`member_${name}`, hint), secrets.get(name) ?? /** @type {Input} */ (members.get(name))];
    return form === "flag" ? h("label", { class: "check" }, input, text) : field(text, input);
  };
  const read = () => {
    const given = typedIn(secrets);
    const cleared = Object.fromEntries([...members.keys()].map((name) => [name, undefined]));
    return { ...cleared, ...typedIn(members), ...(Object.keys(given).length && { secrets: given }) };
  };
  return {
    node: h("div", { class: "controls" }, ...kind.members.filter((member) => member.is_needed).map(labelled), placeButton(members)),
    more: kind.members.filter((member) => !member.is_needed).map(labelled),
    read,
  };
}

/**
 * Takes the place of this browser, for a kind that wants one.
 * @param {Map<string, Input>} members
 */
function placeButton(members) {
  const [latitude, longitude] = [members.get("latitude"), members.get("longitude")];
  if (!latitude || !longitude || !navigator.geolocation) return null;
  const said = h("span", { role: "status" });
  const take = () => navigator.geolocation.getCurrentPosition(
    ({ coords }) => {
      // A hundredth of a degree is a kilometre: near enough for weather, and no address.
      latitude.value = coords.latitude.toFixed(2);
      longitude.value = coords.longitude.toFixed(2);
      fill(said);
    },
    () => fill(said, t("placeUnknown")),
  );
  return h("span", null, h("button", { type: "button", onclick: take }, t("placeHere")), " ", said);
}

/**
 * The request of the kind `json`: its address, its headers, and a field for each secret that they have a place for. With
 * a secret for a saved source, a person confirms where it goes: somebody else may have prepared the source.
 * @param {Source} [source]
 */
function jsonFields(source) {
  const headers = h("textarea", { name: "headers", rows: 3, spellcheck: "false", placeholder: "x-api-key: {key}" });
  headers.value = Object.entries(source?.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n");
  const url = line({ name: "url", type: "url", required: true, value: source?.url ?? "", placeholder: "https://" });
  const places = h("div", { class: "controls" });
  /** @type {Map<string, Input>} */
  const secrets = new Map();

  const sure = h("input", { type: "checkbox", required: true, name: "sure" });
  const question = h("div", { role: "status" });
  const askIfSure = () => {
    const host = URL.canParse(url.value) ? new URL(url.value).host : url.value;
    const goes = source && Object.keys(typedIn(secrets)).length;
    fill(question, goes ? h("label", { class: "check" }, sure, t("secretGoes", { host })) : null);
  };
  places.addEventListener("input", askIfSure);

  const others = source ? JSON.stringify([source.body, source.basic]) : "";
  const prepared = WITHOUT_FIELD.filter((name) => source?.[name] !== undefined).map((name) => `${name}: ${JSON.stringify(source?.[name])}`);
  const showSecrets = () => {
    const names = placeholdersOf(url.value, headers.value, others);
    for (const name of secrets.keys()) if (!names.includes(name)) secrets.delete(name);
    for (const name of names) if (!secrets.has(name)) secrets.set(name, secretField(name, source));
    fill(places, ...[...secrets].map(([name, input]) => field(t("secretNamed", { name }), input)));
    sure.checked = false;
    askIfSure();
  };
  url.addEventListener("input", showSecrets);
  headers.addEventListener("input", showSecrets);
  showSecrets();

  const read = () => {
    const [given, lines] = [typedIn(secrets), headersOf(headers.value)];
    return { url: url.value.trim(), headers: Object.keys(lines).length ? lines : undefined, ...(Object.keys(given).length && { secrets: given }) };
  };
  return {
    node: h("div", null, h("div", { class: "fields" }, field(t("sourceUrl"), url), field(t("headerLines"), headers)), h("p", { class: "note" }, t("secretPlaces", { key: "{key}" }), source && ` ${t("secretAgain")}`), prepared.length > 0 && h("div", null, t("savedBeside"), h("pre", null, prepared.join("\n"))), places, question),
    /** @type {HTMLElement[]} */
    more: [],
    read,
  };
}

/**
 * The numbers of an answer, ticked and named by a person. What was chosen before is ticked.
 * @param {Source} [source]
 */
function numberList(source) {
  /** @type {{at: string, pointer: import("../data/polled.js").Pointer, box: HTMLInputElement, name: HTMLInputElement, value?: number | string}[]} */
  const rows = [];
  const add = (/** @type {import("../data/polled.js").Pointer} */ pointer, /** @type {string} */ metric, /** @type {boolean} */ isChosen) => {
    const at = typeof pointer === "string" ? pointer : pointer.at;
    const box = h("input", { type: "checkbox", checked: isChosen });
    rows.push({ at, pointer, box, name: line({ value: metric, pattern: "[a-z][a-z0-9_]*", "aria-label": t("metricNameOf", { at }) }) });
  };
  for (const [metric, pointer] of Object.entries(source?.metrics ?? {})) add(pointer, metric, true);

  const node = h("div");
  const show = (/** @type {Tested} */ { numbers = {} }) => {
    for (const at of Object.keys(numbers)) if (!rows.some((row) => row.at === at)) add(at, metricAt(at), false);
    const entries = rows.map(({ at, box, name }) => h("li", null, h("label", { class: "check" }, box, at in numbers ? `${at}: ${numbers[at]}` : at), name));
    fill(node, h("h3", null, t("chooseNumbers")), h("ul", { class: "rules" }, ...entries));
  };
  const read = () => {
    const ticked = rows.filter(({ box }) => box.checked).map(({ name, pointer }) => [name.value.trim(), pointer]);
    return ticked.length ? Object.fromEntries(ticked) : undefined;
  };
  return { node, show, read };
}

/**
 * The devices that a test found, with their values and a room for each.
 * @param {Tested} tested
 * @param {Home} known
 * @param {Source} [source]
 */
function roomFields({ devices, readings }, known, source) {
  const entries = devices.map(({ id, name, room }) => {
    const before = source?.rooms?.[id];
    const device = known.devices.find((device) => device.device_id === id);
    const proposed = before?.room ?? device?.room ?? room ?? "";
    const title = name || (device ? deviceName(device) : id);
    const isTaken = h("input", { type: "checkbox", checked: before !== null });
    const input = line({ value: proposed, list: "source-rooms", required: true, pattern: "[\\w.:\\-]{1,100}", name: `rooms.${id}` });
    isTaken.addEventListener("change", () => { input.disabled = !isTaken.checked; });
    input.disabled = !isTaken.checked;

    const values = Object.assign({}, ...readings.filter((reading) => reading.device === id).map((reading) => reading.metrics));
    const texts = Object.entries(values).slice(0, MAX_VALUES).map(([metric, value]) => valueText(metric, value, (device ?? known.devices.find((other) => other.metrics[metric]))?.metrics[metric]?.unit));
    const read = () => {
      if (!isTaken.checked) return null;
      const chosen = input.value.trim();
      // The maker's name becomes the room's name only if the proposed room is kept.
      const roomName = chosen === before?.room ? before.name : chosen === room ? name : undefined;
      return { room: chosen, ...(roomName && { name: roomName }) };
    };
    const node = h("li", null,
      h("label", { class: "check" }, isTaken, h("strong", null, title), h("span", { class: "note" }, texts.join(", "))),
      field(t("roomOf", { device: title }), input),
    );
    return { id, node, read };
  });
  const rooms = h("datalist", { id: "source-rooms" }, ...known.rooms.map((room) => h("option", { value: room.room_id }, room.name ?? "")));
  return {
    node: h("div", null, h("ul", { class: "rules" }, ...entries.map((entry) => entry.node)), rooms),
    read: () => Object.fromEntries(entries.map(({ id, read }) => [id, read()])),
  };
}

/**
 * @param {string} metric
 * @param {any} told a number, or one with its unit
 * @param {string | null | undefined} unit
 */
function valueText(metric, told, unit) {
  const value = Number(typeof told === "object" ? told?.value : told);
  return `${words(metric)} ${stateWord(metric, value) || quantity(value, unit ?? told?.unit)}`;
}

/**
 * The box that has rules tell when the source fails; where nothing can be told, it says what is missing.
 * @param {string} id
 */
async function tellBox(id) {
  const known = await Promise.all([alerts(), channels()]).catch(() => null);
  if (!known) return { node: null, save: async () => {} };
  const [{ data: rules }, { data: sent }] = known;
  if (!sent.length) {
    const node = h("p", { class: "note" }, ...rich("tellNeedsChannel", { alerts: h("a", { href: "#alerts?open=channel" }, t("alerts")) }));
    return { node, save: async () => {} };
  }

  const wasTold = rules.some((rule) => rulesOf(id).includes(rule.id));
  const box = h("input", { type: "checkbox", checked: wasTold });
  const save = async (/** @type {string} */ name) => {
    if (box.checked && !wasTold) await watch(id, { failing: t("sourceFails", { name }), silent: t("readySilent", { name }) });
    if (!box.checked && wasTold) await unwatch(id);
  };
  return { node: h("div", null, h("label", { class: "check" }, box, t("tellFailing")), h("p", { class: "note" }, t("tellFailingWhy"))), save };
}
