// Checks that every text of the page is in its catalogues: with a catalogue whose texts are in brackets, no word of the
// page is outside of them. Reads no data.

import assert from "node:assert/strict";

import { CHANNELS } from "../../web/data/channels.js";
import { words } from "../../web/words/en.js";

/** What is no word of the page, beside the makers of channels: names of products and files, units, commands. */
const OTHERS = /Roomtide|curl|ESPHome|Home Assistant|Telegraf|Tasmota|Shelly|CSV|kWh|ppm|°C|cargo run[^⟦]*|[\w.]*(token create|roomtide)[\w -]*/g;

/** Matches an English text of the page. `values` gives patterns for names in braces; any text matches the others. */
export function sentence(key, values = {}) {
  const pattern = words[key].replace(/[.?+*()[\]|]/g, String.raw`\$&`).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? ".*");
  return new RegExp(pattern);
}

/** Puts every text of the catalogue in brackets. */
export async function bracketed(page) {
  await page.route(/assets\/\w+\.en\.js/, async (route) => {
    const response = await route.fetch({ maxRetries: 3 });
    const script = await response.text();
    const body = script.replace(/(\w+: )("(?:[^"\\]|\\.)*")/g, (_, key, text) => `${key}${JSON.stringify(JSON.parse(text).split("|").map((it) => `⟦${it}⟧`).join("|"))}`);
    assert.notEqual(body, script, "the catalogue has texts");
    await route.fulfill({ response, body });
  });
}

/** The words of the page that are in no brackets and in no data. */
export async function unbracketed(page, data) {
  const texts = await page.evaluate(() => {
    // As a whole, because an element in the middle of a text divides it.
    const copy = document.body.cloneNode(true);
    for (const it of copy.querySelectorAll("script, style, pre, code, noscript, .uplot")) it.remove();
    for (const it of copy.querySelectorAll("p, li, td, th, dt, dd, h1, h2, h3, button, option, label, summary, a, span, div")) it.append("\n");
    const found = [copy.textContent];
    for (const element of document.querySelectorAll("[aria-label], [placeholder]")) found.push(element.getAttribute("aria-label") ?? "", element.getAttribute("placeholder") ?? "");
    return found;
  });
  const months = Array.from({ length: 12 }, (_, n) => ["short", "long"].map((month) => new Date(2026, n, 1).toLocaleString("en-GB", { month }))).flat();
  const days = Array.from({ length: 7 }, (_, n) => ["short", "long"].map((weekday) => new Date(2026, 0, n + 1).toLocaleString("en-GB", { weekday }))).flat();
  // Dates and lengths of time are written by the browser.
  const known = [...data, ...Object.values(CHANNELS).map((it) => it.title), ...months, ...days, "ago", "seconds", "second", "minutes", "minute", "hours", "hour", "days", "day", "in"].sort((a, b) => b.length - a.length);
  return texts.flatMap((text) => {
    let rest = text;
    // From the inside out, because texts are in texts.
    for (let before = ""; before !== rest;) {
      before = rest;
      rest = rest.replace(/⟦[^⟦⟧]*⟧/g, " ");
    }
    rest = rest.replace(OTHERS, " ");
    for (const it of known) rest = rest.replaceAll(it, " ");
    return rest.split("\n").filter((it) => /\p{L}{3,}/u.test(it)).map((it) => it.trim());
  });
}
