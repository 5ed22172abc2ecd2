// The view of alerts: rules and their states, rules to begin with, channels, and the acknowledgement by a message's
// link. Judges nothing.

import { CHANNELS } from "../data/channels.js";
import { acknowledgeByLink, acknowledgeRule, alerts as allAlerts, channels as allChannels, deleteChannel, deleteRule, historyOf, linksIn, pauseRule, previewRule, putChannel, putRule, testChannel } from "../data/rules.js";
import { memory } from "../data/memory.js";
import { WEAK, battery, deviceName, home, inFront, powerOf, roomName } from "../data/home.js";
import { choose, chosen } from "../data/address.js";
import { behind, card, field, fill, h, select, states } from "../parts/dom.js";
import { moment, number, quantity, since, stateWord, words } from "../words/format.js";
import { inPlace } from "../parts/place.js";
import { wouldHaveTold } from "../parts/ruleform.js";
import { guarded } from "../parts/token.js";
import { named, t } from "../words/words.js";

/** @typedef {import("../data/rules.js").Rule} Rule */
/** @typedef {import("../data/rules.js").Channel} Channel */
/** @typedef {import("../data/home.js").Home} Home */
/** @typedef {import("../data/api.js").Device} Device */
/** @typedef {import("../words/words.js").Key} Key */

/** The most ready rules of a kind. */
const MAX_READY = 5;
/** Previews of the messages that rules would have sent, and how long a preview is used, in milliseconds. */
const previews = memory();
const PREVIEW_AGE = 3_600_000;
/** The channels that have a tile each; the others are behind one. */
const TILES = ["ntfy", "telegram", "email"];

/** @param {HTMLElement} main */
export async function alerts(main) {
  const links = linksIn(location.hash);
  if (links.length) return acknowledged(main, links);
  const rules = h("div");
  const ready = h("div");
  const channels = h("div");
  const state = states(main);
  const show = async () => {
    const known = await home();
    const [all, sent] = await Promise.all([allAlerts(), allChannels()]);
    state("alerts", () => [h("h1", { class: "hidden" }, t("alerts")), card(t("channels"), channels), card(t("rules"), rules), card(t("readyRules"), ready)]);
    if (!rules.contains(document.activeElement) || document.activeElement?.tagName === "BUTTON") fill(rules, ...ruleList(known, all.data, show));
    fill(ready, ...readyRules(known, all.data, show));
    if (!channels.querySelector("form")?.contains(document.activeElement)) fill(channels, ...channelList(sent.data, show));
  };
  return show;
}

/**
 * A button that does something and says what went wrong.
 * @param {string} text
 * @param {() => Promise<unknown>} act
 * @param {Element} said
 * @param {string} [label]
 */
function doing(text, act, said, label) {
  return h("button", { type: "button", "aria-label": label, onclick: () => inPlace(said, () => guarded(act)) }, text);
}

/**
 * @param {Home} known
 * @param {string} subject such as device:f1
 */
function subjectName(known, subject) {
  const [kind, ...rest] = subject.split(":");
  const id = rest.join(":");
  if (kind === "room") return roomName(known, id);
  const device = known.devices.find((it) => it.device_id === id);
  return device ? deviceName(device) : id;
}

/**
 * What a rule is about, in a sentence.
 * @param {Home} known
 * @param {Rule} rule
 */
export function sentence(known, rule) {
  const subject = rule.device ? subjectName(known, `device:${rule.device}`) : rule.mean_of_room ? t("meanOfRoom", { room: roomName(known, rule.mean_of_room) }) : rule.room ? t("devicesIn", { room: roomName(known, rule.room) }) : rule.kind ? t("devicesOfKind", { kind: rule.kind }) : t("devicesWithTag", { tag: rule.tag ?? "" });
  if (rule.silent_for) return t("ruleSilent", { subject });
  if (rule.budget_kwh) return t("ruleBudget", { subject, kwh: number(Number(rule.budget_kwh)), per: named(`per_${rule.per}`, rule.per ?? "") });
  if (rule.demand_kw) return t("ruleDemand", { subject, kw: rule.demand_kw === "peak" ? t("yourPeak") : `${number(Number(rule.demand_kw))} kW` });
  if (rule.counter) return t("ruleCounter", { subject, events: rule.counter.map((it) => named(`event_${it}`, it)).join(", ") });
  const unit = unitOf(known, rule);
  const side = rule.above !== undefined ? t("aboveValue", { value: quantity(Number(rule.above), unit) }) : t("belowValue", { value: quantity(Number(rule.below), unit) });
  const held = rule.for && !/^0/.test(rule.for) ? t("heldFor", { time: rule.for }) : "";
  return t("labelled", { name: subject, text: `${words(rule.metric ?? "")} ${side}${held}` });
}

/**
 * @param {Home} known
 * @param {Rule} rule
 */
function unitOf(known, { metric = "" }) {
  return known.devices.find((it) => it.metrics[metric])?.metrics[metric].unit;
}

/**
 * The value of a state in brackets, in the metric's words; without a metric, the server's text.
 * @param {Home} known
 * @param {Rule} rule
 * @param {string} [value]
 */
function told(known, rule, value = "") {
  const isMeasured = rule.metric && !rule.counter;
  return value && `(${isMeasured ? stateWord(rule.metric ?? "", Number(value)) || quantity(Number(value), unitOf(known, rule)) : value})`;
}

/**
 * @param {Home} known
 * @param {Rule[]} rules
 * @param {() => Promise<unknown>} show
 */
function ruleList(known, rules, show) {
  if (!rules.length) return [h("p", null, t("noRules"))];
  const sorted = [...rules].sort((a, b) => b.firing - a.firing || b.pending - a.pending || a.name.localeCompare(b.name));
  return [h("ul", { class: "rules" }, ...sorted.map((rule) => ruleEntry(known, rule, show)))];
}

/**
 * @param {Home} known
 * @param {Rule} rule
 * @param {() => Promise<unknown>} show
 */
function ruleEntry(known, rule, show) {
  const said = h("p", { role: "alert" });
  const isPaused = rule.paused_until && new Date(rule.paused_until).getTime() > Date.now();
  const lasting = rule.states.filter((it) => it.phase !== "normal");
  const now = isPaused ? t("pausedUntil", { time: moment(rule.paused_until ?? 0) }) : !rule.on ? t("switchedOff") : rule.firing ? t("phase_firing") : rule.pending ? t("phase_pending") : t("phase_normal");
  const after = (/** @type {() => Promise<unknown>} */ act) => async () => { await act(); await show(); };
  return h("li", { class: rule.firing ? "firing" : "" },
    h("strong", null, rule.name), " ", h("span", { class: rule.firing && !isPaused ? "band high" : "band" }, now),
    h("p", { class: "note" }, sentence(known, rule)),
    lasting.length > 0 && h("ul", null, ...lasting.map((it) => h("li", null,
      t("stateSince", { subject: subjectName(known, it.subject), phase: named(`phase_${it.phase}`, it.phase), time: since(it.since ?? it.last ?? 0), value: told(known, rule, it.value) }), " ",
      it.phase === "firing" || it.phase === "recovering" ? (it.acknowledged ? h("span", { class: "note" }, t("acknowledged")) : doing(t("acknowledge"), after(() => acknowledgeRule(rule.id, it.subject)), said, t("acknowledgeWhat", { name: rule.name }))) : null,
    ))),
    h("div", { class: "buttons" },
      isPaused ? doing(t("resume"), after(() => pauseRule(rule.id, null)), said, t("resumeWhat", { name: rule.name })) : doing(t("pauseDay"), after(() => pauseRule(rule.id, "1d")), said, t("pauseWhat", { name: rule.name })),
      doing(t("delete"), after(async () => { if (confirm(t("deleteSure", { name: rule.name }))) await deleteRule(rule.id); }), said, t("deleteWhat", { name: rule.name })),
    ),
    behind(`history-${rule.id}`, t("history"), () => {
      const place = h("div");
      inPlace(place, async () => {
        const { data } = await historyOf(rule.id);
        fill(place, data.length ? h("ul", null, ...data.map((it) => h("li", null, t("labelled", { name: moment(it.at), text: it.text })))) : h("p", null, t("noHistory")));
      });
      return place;
    }),
    said,
  );
}

/**
 * Rules that fit what is in the home, each made by one tap.
 * @param {Home} known
 * @param {Rule[]} rules
 * @param {() => Promise<unknown>} show
 */
function readyRules(known, rules, show) {
  /** @type {{id: string, title: string, why: string, rule: Record<string, unknown>}[]} */
  const offered = [];
  const offer = (/** @type {string} */ id, /** @type {string} */ title, /** @type {string} */ why, /** @type {Record<string, unknown>} */ rule) => offered.push({ id, title, why, rule: { name: title, ...rule } });
  const kindOf = (/** @type {Device} */ it) => `${it.kind ?? ""} ${it.name ?? ""} ${it.device_id}`.toLowerCase();
  for (const it of known.devices) {
    const [device, name] = [it.device_id, deviceName(it)];
    if (it.metrics.temperature && /freezer|gefrier|g[ée]lateur|冷凍/.test(kindOf(it))) offer(`freezer-${device}`, t("readyFreezer", { name }), t("readyFreezerWhy", { limit: quantity(-12, "°C", 0) }), { device, metric: "temperature", above: -12, clear: -15, for: "20m", repeat: "6h" });
    for (const metric of Object.keys(it.metrics)) {
      if (/leak|water_alarm|flood/.test(metric)) offer(`leak-${device}`, t("readyLeak", { name }), t("readyLeakWhy"), { device, metric, above: 0.5, for: "0s", repeat: "1h", ignores_quiet_hours: true });
    }
  }
  for (const room of known.rooms) {
    const isDamp = known.devices.some((it) => it.room === room.room_id && it.metrics.humidity && !it.metrics.humidity.not_of_room);
    const name = room.name || room.room_id;
    if (isDamp && room.outside !== true && /cellar|basement|keller|bath|bad|cave|sous.sol|bain|地下|浴/i.test(`${room.room_id} ${name}`)) offer(`damp-${room.room_id}`, t("readyDamp", { name }), t("readyDampWhy"), { mean_of_room: room.room_id, metric: "humidity", above: 75, clear: 70, for: "2h" });
  }
  // A contact is closed at 1; a metric whose name says open is open at 1.
  const openOf = (/** @type {Device} */ it) => Object.keys(it.metrics).find((metric) => /^contact$|(^|_)open$/.test(metric));
  for (const it of known.devices.filter(openOf).slice(0, MAX_READY)) offer(`open-${it.device_id}`, t("readyOpen", { name: deviceName(it) }), t("readyOpenWhy"), { device: it.device_id, metric: openOf(it), [openOf(it) === "contact" ? "below" : "above"]: 0.5, for: "30m" });
  // The weakest first.
  const charge = (/** @type {Device} */ it) => battery(it) ?? 101;
  const sensors = known.devices.filter((it) => charge(it) <= 100 || it.metrics.temperature).sort((a, b) => charge(a) - charge(b)).slice(0, MAX_READY);
  for (const it of sensors.filter((it) => charge(it) <= 100)) offer(`battery-${it.device_id}`, t("readyBattery", { name: deviceName(it) }), t("batteryBelow", { limit: WEAK }), { device: it.device_id, metric: it.metrics.battery ? "battery" : "battery_percent", below: WEAK, clear: WEAK + 5 });
  // Devices of one kind are one rule.
  const kinds = [...new Set(known.devices.flatMap(({ kind }) => kind ?? []))];
  for (const kind of kinds) offer(`silent-kind-${kind}`, t("readySilentKind", { kind }), t("readySilentWhy"), { kind, silent_for: "usual" });
  for (const it of sensors.filter(({ kind }) => !kind)) offer(`silent-${it.device_id}`, t("readySilent", { name: deviceName(it) }), t("readySilentWhy"), { device: it.device_id, silent_for: "usual" });
  const meter = inFront(known, known.devices.filter((it) => powerOf(it) !== null))[0];
  if (meter) offer(`peak-${meter.device_id}`, t("readyPeak", { name: deviceName(meter) }), t("readyPeakWhy"), { device: meter.device_id, demand_kw: "peak", period: "15m" });
  const open = offered.filter(({ id }) => !rules.some((it) => it.id === id));
  if (!open.length) return [h("p", null, t("noReady"))];
  return [h("ul", { class: "rules columns" }, ...open.map((it) => {
    const said = h("p", { role: "alert" });
    const would = () => {
      const told = h("p", { class: "note", role: "status" }, "…");
      inPlace(told, async () => fill(told, wouldHaveTold(await previews(it.id, PREVIEW_AGE, () => previewRule(it.rule)))));
      return told;
    };
    return h("li", null, h("strong", null, it.title), h("p", { class: "note" }, it.why), behind(`would-${it.id}`, t("wouldTell"), would), doing(t("tellMe"), async () => { await putRule(it.id, it.rule); await show(); }, said, t("labelled", { name: t("tellMe"), text: it.title })), said);
  }))];
}

/**
 * The name of a kind of channel: in the reader's language, where it is no maker's name.
 * @param {string} of
 */
const titleOfKind = (of) => named(`channel_${of}`, CHANNELS[of]?.title ?? of);

/**
 * @param {Channel[]} channels
 * @param {() => Promise<unknown>} show
 */
function channelList(channels, show) {
  const entry = (/** @type {Channel} */ it) => {
    const said = h("p", { role: "status" });
    const test = async () => { await testChannel(it.id); fill(said, t("testSent")); };
    return h("li", null,
      h("strong", null, it.name), ` ${titleOfKind(it.kind)}`,
      it.quiet_hours && h("span", { class: "note" }, ` ${t("quiet", { hours: it.quiet_hours })}`),
      it.failing_since && h("p", { class: "warn" }, t("failingSince", { time: since(it.failing_since) }), it.next && ` ${t("triedAgain", { time: since(it.next) })}`),
      it.waiting ? h("p", { class: "note" }, t("waiting", { n: it.waiting, count: it.waiting })) : null,
      h("div", { class: "buttons" }, doing(t("sendTest"), test, said, t("labelled", { name: t("sendTest"), text: it.name })), doing(t("delete"), async () => { if (confirm(t("deleteSure", { name: it.name }))) await deleteChannel(it.id); await show(); }, said, t("deleteWhat", { name: it.name }))),
      said,
    );
  };
  const kind = chosen("channel");
  const tile = (/** @type {string} */ of, /** @type {string} */ title, /** @type {boolean} */ isChosen) => h("button", { type: "button", id: `channel-${of}`, "aria-pressed": String(isChosen), onclick: () => choose({ channel: isChosen ? "" : of }) }, title);
  const others = Object.keys(CHANNELS).filter((of) => !TILES.includes(of));
  return [
    channels.length ? h("ul", { class: "rules" }, ...channels.map(entry)) : h("p", null, t("noChannels")),
    h("div", { class: "kinds", role: "group", "aria-label": t("addChannel") }, ...TILES.map((of) => tile(of, titleOfKind(of), kind === of)), tile(others[0], t("others"), others.includes(kind))),
    kind in CHANNELS && channelForm(kind, others, show),
  ];
}

/**
 * @param {string} kind
 * @param {string[]} others the kinds without a tile
 * @param {() => Promise<unknown>} show
 */
function channelForm(kind, others, show) {
  const said = h("p", { role: "alert" });
  const name = h("input", { type: "text", required: true, maxlength: 100, autocomplete: "off" });
  const quiet = h("input", { type: "text", placeholder: "22:00-07:00", autocomplete: "off" });
  const secrets = CHANNELS[kind].members.map(({ name: member, type, required }) => ({ member, input: h("input", { type, required, autocomplete: "off", spellcheck: "false" }) }));
  const save = async () => {
    const id = `${kind}-${Date.now().toString(36)}`;
    const members = Object.fromEntries(secrets.filter(({ input }) => input.value.trim()).map(({ member, input }) => [member, input.value.trim()]));
    await guarded(() => putChannel(id, { kind, name: name.value.trim(), ...(quiet.value.trim() && { quiet_hours: quiet.value.trim() }), ...members }));
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    choose({ channel: "" });
    await show();
  };
  return h("form", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); inPlace(said, save); } },
    h("div", { class: "controls" },
      others.includes(kind) && select(t("by"), others.map((of) => [of, titleOfKind(of)]), kind, (channel) => choose({ channel })),
      field(t("name"), name),
      ...secrets.map(({ member, input }) => field(named(`secret_${member}`, member), input)),
      field(t("quietHours"), quiet),
    ),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, t("save"))),
    said,
  );
}

/**
 * The page that the link of a message opens: a button for each episode.
 * @param {HTMLElement} main
 * @param {{rule: string, subject: string, key: string}[]} links
 */
async function acknowledged(main, links) {
  const entry = (/** @type {{rule: string, subject: string, key: string}} */ link) => {
    const said = h("p", { role: "status" });
    const act = async () => {
      const { since: from } = await acknowledgeByLink(link);
      fill(said, t("acknowledgedSince", { time: since(from) }));
    };
    return h("li", null, h("strong", null, link.rule), ` ${link.subject.replace(/^\w+:/, "")} `, h("button", { type: "button", onclick: () => inPlace(said, act) }, t("acknowledge")), said);
  };
  fill(main, h("h1", null, t("acknowledge")), h("section", { class: "card" }, h("p", null, t("acknowledgeWhy")), h("ul", { class: "rules" }, ...links.map(entry)), h("p", null, h("a", { href: "#alerts" }, t("allAlerts")))));
  return async () => {};
}
