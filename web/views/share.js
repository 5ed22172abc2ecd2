// The card that makes a link for others: some rooms, for some days, and nothing else. Shows no data.

import { address, hasToken, list, path, program, send } from "../data/api.js";
import { start } from "../data/senders.js";
import { copyable } from "../parts/copyable.js";
import { card, field, fill, h, select } from "../parts/dom.js";
import { inPlace } from "../parts/place.js";
import { guarded } from "../parts/token.js";
import { rich, t } from "../words/words.js";

/**
 * @param {import("../data/home.js").Home} known
 */
export function shareCard(known) {
  if (!known.rooms.length) return null;
  const command = (/** @type {string} */ it) => h("code", null, it);
  // Without a token everything was read.
  if (!hasToken()) return card(t("shareTitle"), h("p", null, ...rich("shareOpen", { command: command(start) })));
  const homes = [...new Set(known.rooms.flatMap((it) => it.home ?? []))];
  let what = homes.length ? `home ${homes[0]}` : `room ${known.rooms[0].room_id}`;
  let days = "30d";
  const name = h("input", { type: "text", required: true, maxlength: 100, autocomplete: "off" });
  const said = h("div", { role: "status" });
  const make = async () => {
    const [kind, ...rest] = what.split(" ");
    const id = rest.join(" ");
    const rooms = kind === "room" ? [id] : (await list(path("homes", id, "rooms"))).map((/** @type {any} */ it) => it.room_id).slice(0, 99);
    const asked = { scope: "view", rooms, ...(kind === "home" && { homes: [id] }), name: name.value.trim(), expires: days };
    const { token } = await guarded(() => send("POST", "tokens", asked));
    const about = new URLSearchParams({ view: "1", ...(kind === "home" && { home: id }), rooms: rooms.join(",") });
    fill(said, copyable(t("link"), `${address}#token=${token}&${about}`));
  };
  return card(t("shareTitle"),
    h("p", null, t("shareWhy")),
    h("form", { class: "controls", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); inPlace(said, make); } },
      select(t("what"), [...homes.map((it) => /** @type {[string, string]} */ ([`home ${it}`, t("homeNamed", { home: it })])), ...known.rooms.map((it) => /** @type {[string, string]} */ ([`room ${it.room_id}`, it.name || it.room_id]))], what, (it) => { what = it; }),
      select(t("forHowLong"), [["24h", t("oneDay")], ["7d", t("days7")], ["30d", t("days30")], ["365d", t("days365")]], days, (it) => { days = it; }),
      field(t("forWhom"), name),
      h("button", { type: "submit" }, t("makeLink")),
    ),
    said,
    h("p", { class: "note" }, ...rich("shareEnd", { list: command(`${program} token list`), revoke: command(`${program} token revoke ID`) }), ` ${t("commandWhere")}`),
  );
}
