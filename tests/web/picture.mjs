// The pictures of the documents: `node picture.mjs PROGRAM TOOLS` makes them of the sample home, by a clock that stands.
// Without arguments it tells whether they were made of the page as it is.
//
// Each has in its text a hash of the files of `web`.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";

import { launched, settled } from "./browser.mjs";
import { Server } from "./server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const [program, tools] = process.argv.slice(2);
const lastWeek = new Date(Date.now() - 7 * 86_400_000).toISOString().slice(0, 10);
const PICTURES = [
  { name: "docs/page.png", view: `energy?span=week&d=${lastWeek}`, viewport: { width: 1280, height: 632 }, deviceScaleFactor: 1 },
  { name: "docs/phone.png", view: "now", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
];

function hashOfPage() {
  const hash = createHash("sha256");
  const entries = readdirSync(join(root, "web"), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of entries.map((entry) => join(entry.parentPath, entry.name)).sort()) hash.update(path.slice(root.length)).update(readFileSync(path));
  return hash.digest("hex");
}

/** A chunk with a text before the last one of a picture: https://www.w3.org/TR/png-3/#11tEXt */
function withText(picture, text) {
  const chunk = Buffer.from(`....tEXtweb\0${text}....`, "latin1");
  chunk.writeUInt32BE(chunk.length - 12);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return Buffer.concat([picture.subarray(0, -12), chunk, picture.subarray(-12)]);
}

async function make() {
  const home = new Server(program, ["--memory"]);
  const browser = await launched(tools);
  try {
    await home.start("Try, in another terminal");
    await home.rolledUp();
    const now = Math.floor(Date.now() / 60_000) * 60_000;
    for (const { name, view, ...size } of PICTURES) {
      const page = await browser.newPage({ ...size, locale: "en-GB", timezoneId: "Europe/Brussels", colorScheme: "light" });
      await page.clock.setFixedTime(now);
      await page.goto(`${home.url}/#${view}`);
      await settled(page);
      // Since when a room is cool comes behind the rest.
      await page.waitForTimeout(3_000);
      writeFileSync(join(root, name), withText(await page.screenshot(), hashOfPage()));
    }
  } finally {
    await browser.close();
    await home.remove();
  }
}

if (program) await make();
for (const { name } of PICTURES) {
  const [, made] = /tEXtweb\0([0-9a-f]{64})/.exec(readFileSync(join(root, name), "latin1")) ?? [];
  assert.equal(made, hashOfPage(), `${name} is of another page; make it anew: node tests/web/picture.mjs PROGRAM TOOLS`);
}
