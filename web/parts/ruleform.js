// The form of a rule beside its chart: a limit that is moved or typed, and when it would have told. Sends no message.

import { deviceName } from "../data/home.js";
import { previewRule, putRule } from "../data/rules.js";
import { t } from "../words/words.js";
import { choose, chosen } from "../data/address.js";
import { field, fill, h, select } from "./dom.js";
import { meantValue, moment, number, shownUnit, shownValue, words } from "../words/format.js";
import { guarded } from "./token.js";

/** @typedef {import("../data/home.js").Home} Home */

/** The limit to begin with, by metric, in the metric's own unit. @type {Record<string, number>} */
const USUAL = { temperature: 26, humidity: 65, co2: 1200, current_w: 3000, battery: 20, pm25: 35 };

/** How long nobody types before the past is asked, in milliseconds. */
const PAUSE = 400;

/** What somebody has written so far, by metric: the view is drawn again under it. @type {Map<string, {subject: string, side: "above" | "below", value: number, minutes: string, name: string}>} */
const drafts = new Map();
/** What each draft would have told. @type {Map<string, {said: string, episodes: [number, number][]}>} */
const previews = new Map();

/**
 * @param {{known: Home, room: string, metric: string, unit: string | null, redraw: (limit: import("./chart.js").Limit, episodes: [number, number][]) => void}} about
 */
export function ruleForm({ known, room, metric, unit, redraw }) {
  const devices = known.devices.filter((it) => it.metrics[metric] && (!room || it.room === room));
  const rooms = known.rooms.filter((it) => (!room || it.room_id === room) && known.devices.some((device) => device.room === it.room_id && device.metrics[metric]));
  /** @type {[string, string][]} */
  const subjects = [...rooms.map((it) => /** @type {[string, string]} */ ([`mean_of_room:${it.room_id}`, t("meanOfRoom", { room: it.name || it.room_id })])), ...devices.map((it) => /** @type {[string, string]} */ ([`device:${it.device_id}`, deviceName(it)]))];
  const values = devices.flatMap((it) => it.latest?.metrics[metric]?.value ?? []);
  const draft = drafts.get(metric) ?? { subject: subjects[0]?.[0] ?? "", side: /** @type {"above" | "below"} */ (metric === "battery" ? "below" : "above"), value: shownValue(USUAL[metric] ?? Math.ceil(Math.max(0, ...values) * 1.1), unit), minutes: "10", name: "" };
  const isOffered = (/** @type {string} */ wanted) => subjects.some(([it]) => it === wanted);
  if (!drafts.has(metric) && isOffered(chosen("of"))) draft.subject = chosen("of");
  if (!isOffered(draft.subject)) draft.subject = subjects[0]?.[0] ?? "";
  drafts.set(metric, draft);
  const said = h("p", { role: "status" });
  const value = h("input", { id: `limit-${metric}`, type: "number", step: "any", required: true, value: String(draft.value), oninput: () => { draft.value = Number(value.value); soon(); } });
  const minutes = h("input", { id: `minutes-${metric}`, type: "number", min: 0, max: 1440, required: true, value: draft.minutes, oninput: () => { draft.minutes = minutes.value; soon(); } });
  const name = h("input", { id: `name-${metric}`, type: "text", maxlength: 100, autocomplete: "off", value: draft.name, oninput: () => { draft.name = name.value; } });
  const subject = () => subjects.find(([it]) => it === draft.subject)?.[1] ?? "";
  const rule = () => {
    const [kind, ...id] = draft.subject.split(":");
    const limit = String(Number(meantValue(draft.value, unit).toPrecision(10)));
    // The space in a French number has no sign in the subject of an e-mail.
    const name = t("ruleName", { subject: subject(), metric: words(metric), side: t(draft.side), value: number(draft.value), unit: shownUnit(unit) }).replace(/\s/g, " ");
    return { name: draft.name || name, [kind]: id.join(":"), metric, [draft.side]: limit, for: Number(draft.minutes) > 0 ? `${draft.minutes}m` : "0s", on: true };
  };
  const show = () => {
    const found = previews.get(metric);
    fill(said, found?.said ?? "");
    redraw({ value: draft.value, done: (it) => { draft.value = it; value.value = String(it); preview(); } }, found?.episodes ?? []);
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let typing;
  const soon = () => {
    clearTimeout(typing);
    typing = setTimeout(preview, PAUSE);
  };
  let asked = 0;
  const preview = async () => {
    asked += 1;
    const mine = asked;
    try {
      const found = await previewRule(rule());
      // Something else was chosen meanwhile.
      if (mine !== asked) return;
      const all = found.subjects.flatMap(({ episodes }) => episodes);
      previews.set(metric, {
        said: wouldHaveTold(found),
        episodes: all.map((it) => [new Date(it.since).getTime() / 1000, it.ended ? new Date(it.ended).getTime() / 1000 : Date.now() / 1000]),
      });
      show();
    } catch (error) {
      fill(said, h("span", { class: "warn" }, /** @type {any} */ (error).message));
    }
  };
  const save = async () => {
    const id = `${metric}-${Date.now().toString(36)}`;
    await guarded(() => putRule(id, rule()));
    drafts.delete(metric);
    previews.delete(metric);
    location.hash = "#alerts";
  };
  // Deferred until the chart is in the page.
  queueMicrotask(() => (previews.has(metric) ? show() : preview().then(show)));
  return h("form", { class: "rule", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); save().catch((error) => fill(said, h("span", { class: "warn" }, error.message))); } },
    h("div", { class: "controls" },
      select(t("of"), subjects, draft.subject, (it) => { draft.subject = it; preview(); }),
      select(t("when"), [["above", t("above")], ["below", t("below")]], draft.side, (it) => { draft.side = it === "below" ? "below" : "above"; preview(); }),
      field(t("limitIn", { unit: shownUnit(unit) }), value),
      field(t("forMinutes"), minutes),
      field(t("nameOptional"), name),
    ),
    h("p", { class: "note" }, t("limitHint")),
    said,
    h("div", { class: "buttons" }, h("button", { type: "submit" }, t("saveAlert")), h("button", { type: "button", onclick: () => choose({ alert: "" }) }, t("cancel"))),
  );
}

/** How often a rule would have told something, in a sentence. @param {Awaited<ReturnType<typeof previewRule>>} found */
export function wouldHaveTold({ episodes: count, subjects }) {
  const last = subjects.flatMap(({ episodes }) => episodes.map(({ fired }) => fired)).sort().at(-1);
  return count ? t("wouldHaveTold", { n: count, count, last: last ? moment(last) : "" }) : t("wouldNotHaveTold");
}
