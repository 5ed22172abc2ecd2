// The card that makes a link for others: some rooms, for some days, and nothing else. Shows no data.

import { hasToken, program } from "../data/api.js";
import { makeLink } from "../data/links.js";
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
    const link = await guarded(() => makeLink(kind === "home" ? "home" : "room", id, name.value.trim(), days));
    fill(said, copyable(t("link"), link));
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
