// The half of Connect where Roomtide asks: tiles of makers, the form of one, and a card for each source. Reads no answer
// of a maker.

import { choose, chosen } from "../data/address.js";
import { forget, home } from "../data/home.js";
import { deleteSource, freeId, sourcesAndKinds, toggleSource } from "../data/polled.js";
import { card, fill, h } from "../parts/dom.js";
import { age, moment, quantity, since, stateWord, words } from "../words/format.js";
import { linkTo } from "../parts/link.js";
import { inPlace } from "../parts/place.js";
import { askForToken, guarded } from "../parts/token.js";
import { listed, named, t } from "../words/words.js";

/** @typedef {import("../data/polled.js").Source} Source */
/** @typedef {import("../data/polled.js").Kind} Kind */
/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/api.js").Device} Device */

/** The most values of a device that its source's card shows. */
const MAX_VALUES = 5;
/** The settings of an address without a form. */
const NO_FORM = { kind: "", source: "" };

/**
 * @param {HTMLElement} place
 * @returns {() => Promise<unknown>} shows what is known now
 */
export function sources(place) {
  const news = h("p", { role: "status", class: "big" });
  const newest = h("div");
  const form = h("div");
  const cards = h("div");
  fill(place, news, newest, form, cards);
  let shownForm = "";
  /** The source that was saved here, whose first reading somebody waits for. */
  let saved = "";

  return async function show() {
    const [{ data, kinds }, known] = await Promise.all([sourcesAndKinds(), home(1_000)]);
    // Settings are shown to those who may edit them.
    const mayEdit = !data.length || data.some((source) => source.secrets);
    const edited = data.find((source) => source.id === chosen("source"));
    const kind = kinds.find((kind) => kind.kind === (edited?.kind ?? chosen("kind")));

    const wanted = !mayEdit ? "none" : kind ? `form ${kind.kind} ${edited?.id ?? ""}` : "tiles";
    if (wanted !== shownForm) {
      if (!mayEdit) fill(form, setUp());
      else if (!kind) fill(form, tiles(kinds));
      else {
        const { sourceForm } = await import("../parts/sourceform.js");
        const done = (/** @type {string} */ id) => {
          saved = id;
          forget();
          choose(NO_FORM);
        };
        fill(form, sourceForm({ kind, source: edited, id: edited?.id ?? freeId(kind.kind, data), known, done, cancel: () => choose(NO_FORM) }));
        /** @type {HTMLElement | null} */ (form.querySelector("input:enabled"))?.focus();
      }
      // Whoever leaves a form by a key goes on where its tile is.
      if (wanted === "tiles") document.getElementById(`kind-${shownForm.split(" ")[1]}`)?.focus({ preventScroll: true });
      shownForm = wanted;
    }

    const entry = (/** @type {Source} */ source) => sourceCard(source, kinds.find(({ kind }) => kind === source.kind), known, show);
    const fresh = data.find((source) => source.id === saved);
    const text = fresh ? newsOf(fresh, known) : "";
    if (news.textContent !== text) news.textContent = text;
    fill(newest, fresh && entry(fresh));
    fill(cards, ...data.filter((source) => source !== fresh).map(entry), !data.length && h("p", { class: "note" }, t("noSourcesYet")));
  };
}

/** @param {Kind[]} kinds */
function tiles(kinds) {
  return card(t("whatToAsk"),
    h("p", null, t("asksWhy")),
    h("div", { class: "kinds" }, ...kinds.map((kind) => {
      const title = titleOfKind(kind);
      return h("button", { type: "button", id: `kind-${kind.kind}`, onclick: () => choose({ kind: kind.kind, source: "" }) }, h("strong", null, title), title !== kind.title && kind.kind !== "json" && h("span", { class: "note" }, kind.title));
    })),
  );
}

/** The button for people who may only read: it asks for an admin's token. */
function setUp() {
  const ask = async () => {
    if (await askForToken("admin", "")) window.dispatchEvent(new Event("changed"));
  };
  return h("p", null, h("button", { type: "button", onclick: ask }, t("setUpSources")));
}

/** The name of a kind: in the reader's language, where it is no maker's name. @param {Kind} kind */
function titleOfKind(kind) {
  return named(`kind_${kind.kind}`, kind.title);
}

/** @param {Source} source @param {Home} known */
function devicesOf(source, known) {
  return known.devices.filter((device) => source.devices.includes(device.device_id));
}

/** The first result of a source that was just saved. @param {Source} source @param {Home} known */
function newsOf(source, known) {
  const isThere = devicesOf(source, known).some((device) => device.latest);
  if (isThere) return t("readingReceived");
  return source.state.state === "failing" ? t("source_failing") : t("savedAsked");
}

/**
 * @param {Source} source
 * @param {Kind | undefined} kind
 * @param {Home} known
 * @param {() => Promise<unknown>} show
 */
function sourceCard(source, kind, known, show) {
  const { id, state } = source;
  const title = kind ? titleOfKind(kind) : source.kind;
  const name = id === source.kind ? title : t("labelled", { name: title, text: id });
  const isWrong = source.on && state.state === "failing";
  const word = source.on ? named(`source_${state.state}`, state.state) : t("source_paused");
  const devices = devicesOf(source, known);
  const times = [
    state.last_success && t("sourceLast", { time: since(state.last_success), age: age(state.last_success) }),
    source.on && state.next && t("sourceNext", { time: since(state.next) }),
    t("askedEvery", { host: source.host, every: state.every }),
    state.requests_today !== undefined && t("requestsToday", { n: state.requests_today }),
  ];

  return h("section", { class: "card", id: `source-${id}` },
    h("h2", null, name, " ", h("span", { class: isWrong ? "band high" : "band" }, word)),
    source.on && state.failing_since && h("p", { class: "warn" }, t("failsSince", { time: moment(state.failing_since) })),
    state.error && h("p", { class: "warn" }, state.error),
    h("p", { class: "note" }, times.filter(Boolean).join(" ")),
    devices.length > 0 && h("ul", null, ...devices.map((device) => h("li", null, linkTo(device), " ", valuesOf(device)))),
    source.credit && h("p", { class: "note" }, source.credit),
    source.secrets && controls(source, name, show),
  );
}

/** The newest values of a device. @param {Device} device */
function valuesOf({ latest, metrics }) {
  if (!latest) return t("waitingFirst");
  const values = Object.entries(latest.metrics).slice(0, MAX_VALUES);
  return listed([...values.map(([name, { value }]) => `${words(name)} ${stateWord(name, value) || quantity(value, metrics[name]?.unit)}`), age(latest.timestamp)]);
}

/**
 * The buttons for people who may edit a source.
 * @param {Source} source
 * @param {string} name
 * @param {() => Promise<unknown>} show
 */
function controls(source, name, show) {
  const { id } = source;
  const said = h("p", { role: "alert" });
  const doing = (/** @type {string} */ what, /** @type {string} */ text, /** @type {string} */ label, /** @type {() => Promise<unknown>} */ act) =>
    h("button", { type: "button", id: `${what}-${id}`, "aria-label": label, onclick: () => inPlace(said, () => guarded(act).then(show)) }, text);
  const toggle = () => toggleSource(source);
  const remove = async () => {
    if (confirm(t("deleteSourceSure", { name }))) await deleteSource(id);
  };
  return h("div", null,
    h("div", { class: "buttons" },
      h("button", { type: "button", id: `edit-${id}`, "aria-label": t("editWhat", { name }), onclick: () => choose({ kind: "", source: id }) }, t("edit")),
      source.on ? doing("pause", t("pause"), t("pauseSource", { name }), toggle) : doing("pause", t("resume"), t("resumeWhat", { name }), toggle),
      doing("delete", t("delete"), t("deleteWhat", { name }), remove),
    ),
    said,
  );
}
