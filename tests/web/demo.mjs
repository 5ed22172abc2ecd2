// The demo as a visitor has it: `node demo.mjs PROGRAM TOOLS [brief]` records one by `tools/demo`, serves it by a plain file
// server below a path, and uses it in time zones far apart. Prints figures.
//
// TOOLS is a folder with the package playwright-core; Chromium is the system's. `brief`: each view once, in one zone.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { VIEWS, launched, settled } from "./browser.mjs";

const [program, tools, scope] = process.argv.slice(2);
const isBrief = scope === "brief";
const ZONES = isBrief ? ["Asia/Tokyo"] : ["Asia/Tokyo", "America/St_Johns"];
const CLICKS = isBrief ? 10 : 60;
const BELOW = "/some/where/";
const LINK = "https://example.org/roomtide";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml" };
const SAID = /This demo has no recorded answer to that question|This is a demo of recorded answers: nothing is stored or changed/;

/** Serves the files of a folder and nothing else, as any static host does. */
async function served(folder) {
  const server = createServer(async (request, answer) => {
    const path = new URL(request.url, "http://host").pathname;
    const name = path === BELOW ? "index.html" : path.slice(BELOW.length);
    const file = path.startsWith(BELOW) ? await readFile(join(folder, name)).catch(() => null) : null;
    answer.writeHead(file ? 200 : 404, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" }).end(file ?? "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** A page in a zone, with what went wrong in it. */
async function open(browser, url, timezoneId) {
  const page = await (await browser.newContext({ timezoneId, locale: "en-GB" })).newPage();
  page.problems = [];
  page.requests = 0;
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(error.stack));
  page.on("dialog", (dialog) => dialog.dismiss());
  page.on("requestfailed", (request) => page.problems.push(`${request.url()} failed: ${request.failure().errorText}`));
  page.on("response", (response) => response.status() >= 400 && page.problems.push(`${response.url()} answers ${response.status()}`));
  page.on("request", (request) => {
    page.requests += 1;
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(url)) page.problems.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  await settled(page);
  return page;
}

/** Each view has all its answers, and shows the days of the recording. */
async function eachView(page) {
  const shown = {};
  for (const view of VIEWS) {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await page.locator(`#nav-${view.split("/")[0]}[aria-current=page]`).waitFor({ state: "attached" });
    await settled(page);
    shown[view] = await page.locator("main").innerText();
    assert.doesNotMatch(shown[view], SAID, view);
    assert.equal(await page.locator("#alert").innerText(), "", view);
    assert.ok(shown[view].length > 100, `${view} shows ${shown[view]}`);
  }
  assert.equal(await page.getByRole("button", { name: "CSV" }).filter({ visible: true }).count(), 0);
  assert.equal(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0, "no worker");
  return shown;
}

/** What was not recorded, and what would change something, is said in words. */
async function notRecorded(page) {
  await page.evaluate(() => { location.hash = "energy?d=2020-02-29"; });
  await page.getByText("This demo has no recorded answer to that question. Start Roomtide to ask it.").first().waitFor();
  await page.evaluate(() => { location.hash = "alerts"; });
  await page.getByRole("button", { name: /^Tell me/ }).first().click();
  await page.getByText("This is a demo of recorded answers: nothing is stored or changed.").first().waitFor();
}

/** Clicks on whatever can be clicked; the same for a seed. */
async function clicked(page, seed) {
  let state = seed;
  const random = (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  let unanswered = 0;
  for (let n = 0; n < CLICKS; n += 1) {
    if (n % 10 === 0) await page.evaluate((hash) => { location.hash = hash; }, VIEWS[random(VIEWS.length)]);
    await page.waitForTimeout(150);
    const pressed = await page.evaluate((share) => {
      const all = [...document.querySelectorAll("a[href^='#'], button, summary, select, .strip span, td")].filter((it) => it.checkVisibility() && !it.disabled);
      const it = all[Math.floor(share * all.length)];
      if (it instanceof HTMLSelectElement) {
        it.selectedIndex = (it.selectedIndex + 1) % it.options.length;
        it.dispatchEvent(new Event("change", { bubbles: true }));
      } else it.click();
      return `${location.hash} ${it.outerHTML.slice(0, 80)}`;
    }, random(1_000) / 1_000);
    await page.waitForTimeout(150);
    const told = await page.locator("body").innerText();
    unanswered += SAID.test(told) ? 1 : 0;
    assert.doesNotMatch(told, /NaN|undefined|Infinity|does not answer/, pressed);
    assert.deepEqual(page.problems, [], pressed);
  }
  return unanswered;
}

const started = Date.now();
const folder = join(mkdtempSync(join(tmpdir(), "roomtide-demo-")), "demo");
const made = spawnSync(fileURLToPath(new URL("../../tools/demo", import.meta.url)), [folder, program, tools], { encoding: "utf8", env: { ...process.env, ROOMTIDE_LINK: LINK, ROOMTIDE_DEMO: scope ?? "" } });
assert.equal(made.status, 0, made.stderr);
console.log(`figure  ${made.stdout.trim()}`);

const server = await served(folder);
const browser = await launched(tools);
try {
  const found = [];
  for (const [n, zone] of ZONES.entries()) {
    const page = await open(browser, `http://127.0.0.1:${server.address().port}${BELOW}`, zone);
    assert.match(await page.locator("#demo").innerText(), /^Demo: a sample home, recorded \d+ \w+ 20\d\d\. What Roomtide is$/);
    assert.equal(await page.locator("#demo a").getAttribute("href"), LINK);
    found.push(await eachView(page));
    const unanswered = await clicked(page, 7 + n);
    await notRecorded(page);
    assert.deepEqual(page.problems, []);
    console.log(`ok  ${zone}: ${VIEWS.length} views, ${CLICKS} clicks, after ${unanswered} of them a question without an answer; ${page.requests} requests, 0 failed, 0 of another host`);
    await page.context().close();
  }
  for (const other of found) assert.deepEqual(other, found[0], "the same days and hours in each zone");
  console.log(`all is well, after ${Math.round((Date.now() - started) / 1000)} s`);
} finally {
  await browser.close();
  server.close();
  rmSync(join(folder, ".."), { recursive: true });
}
