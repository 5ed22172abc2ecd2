// The view of heat maps: rooms against hours, and a month of days against hours. Draws no line.

import { choose, chosen } from "../data/address.js";
import { hoursOfRoom, hoursOfRooms } from "../data/history.js";
import { beginning, home, linesOf, metricsOf, roomName } from "../data/home.js";
import { range } from "../data/range.js";
import { dateBar, titleOf } from "../parts/datebar.js";
import { card, fill, h, select } from "../parts/dom.js";
import { clock, day, moment, words } from "../words/format.js";
import { isLacking } from "../data/lacking.js";
import { lackNote } from "../parts/lack.js";
import { inPlace } from "../parts/place.js";
import { shadeTable } from "../parts/shades.js";
import { t } from "../words/words.js";

/** @typedef {import("../parts/shades.js").Line} Line */

const HOUR = 3_600_000;
/** @type {import("../data/range.js").Span[]} */
const SPANS = ["24h", "day", "month"];

/** @param {HTMLElement} main */
export async function heat(main) {
  const bar = h("div");
  const rooms = h("div");
  const days = h("div");
  fill(main, h("h1", { class: "hidden" }, t("heatMap")), bar, card(t("roomsByHour"), rooms), card(t("daysByHour"), days));
  return async () => {
    const known = await home();
    const metrics = [...metricsOf(known.devices)].filter(([, it]) => it.kind !== "counter");
    if (!metrics.length) return fill(rooms, h("p", null, t("noReadingsYet")));
    const metric = metrics.some(([name]) => name === chosen("metric")) ? chosen("metric") : metrics[0][0];
    const having = known.rooms.filter((it) => known.devices.some((device) => device.room === it.room_id && device.metrics[metric]));
    const room = having.some((it) => it.room_id === chosen("room")) ? chosen("room") : (having[0]?.room_id ?? "");
    const unit = metrics.find(([name]) => name === metric)?.[1].unit ?? null;
    const shown = range("24h", SPANS);
    const choices = [
      select(t("metric"), metrics.map(([name]) => [name, words(name)]), metric, (value) => choose({ metric: value })),
      select(t("roomOfMonth"), having.map((it) => [it.room_id, it.name || it.room_id]), room, (value) => choose({ room: value })),
    ];
    dateBar(bar, shown, { spans: SPANS, usual: "24h", begins: beginning(known), compares: false, choices });
    const end = Math.min(shown.to.getTime(), Date.now());
    await Promise.all([
      inPlace(rooms, async () => {
        // The last day of what is shown.
        const from = new Date(shown.span === "day" ? shown.from : end - 23 * HOUR);
        from.setMinutes(0, 0, 0);
        const to = shown.span === "day" ? Math.min(shown.to.getTime(), Date.now()) : end;
        const answer = await hoursOfRooms(known, metric, from, new Date(to));
        const hours = Array.from({ length: 24 }, (_, n) => new Date(from.getTime() + n * HOUR)).map((it) => ({ key: String(it.getTime()), name: String(it.getHours()), isMajor: it.getHours() % 6 === 0 }));
        const all = linesOf(known, answer.data, metric).map(({ room, label, points }) => ({ name: label, group: known.rooms.find((it) => it.room_id === room)?.outside === true ? t("outside") : "", cells: new Map(points.map(({ time, mean }) => [String(time * 1000), mean])) }));
        const lines = [...all.filter(({ group }) => !group), ...all.filter(({ group }) => group)];
        fill(rooms, shadeTable({ title: t("ofEachRoom", { metric: words(metric) }), corner: t("hour"), unit, columns: hours, lines, lacks: isLacking(answer), when: (line, { key }) => `${line.name}, ${moment(Number(key))}` }), lackNote(answer));
      }),
      inPlace(days, async () => {
        if (!room) return fill(days);
        const from = shown.span === "month" ? shown.from : new Date(new Date(end).getFullYear(), new Date(end).getMonth(), new Date(end).getDate() - 30);
        const answer = await hoursOfRoom(room, metric, from, new Date(end));
        /** @type {Map<string, Line>} */
        const lines = new Map();
        for (const row of answer.data) {
          if (!row[metric]) continue;
          const at = new Date(row.timestamp);
          const name = day(at);
          if (!lines.has(name)) lines.set(name, { name, cells: new Map() });
          lines.get(name)?.cells.set(String(at.getHours()), row[metric].mean);
        }
        const hours = Array.from({ length: 24 }, (_, n) => ({ key: String(n), name: String(n), isMajor: n % 6 === 0 }));
        const title = t("byDayAndHour", { metric: words(metric), room: roomName(known, room) });
        fill(days, shown.span === "month" && h("p", null, titleOf(shown)), shadeTable({ title, corner: t("hour"), unit, columns: hours, lines: [...lines.values()].reverse(), lacks: isLacking(answer), when: (line, { key }) => `${line.name}, ${clock(new Date(2000, 0, 1, Number(key)))}` }), lackNote(answer));
      }),
    ]);
  };
}
