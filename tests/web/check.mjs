// The page in a real browser, against servers on this machine: `node check.mjs PROGRAM TOOLS SCREENSHOTS`.
//
// TOOLS is a folder with the packages playwright-core and axe-core; Chromium is the system's. Prints figures.
// Deploys nothing.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

import { VIEWS, launched, settled } from "./browser.mjs";
import { INCOMPLETE, MISSING_HOUR, PRESETS, monthsWithPrices, pricesOfTomorrow, silentPump } from "./cost.mjs";
import { PlayedRemo, TOKEN } from "./remo.mjs";
import { Server } from "./server.mjs";
import { KINDS, PlayedSources } from "./sources.mjs";
import { bracketed, unbracketed } from "./words.mjs";

const [program, tools, screenshots] = process.argv.slice(2);
const require = createRequire(join(tools, "package.json"));
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const WIDTHS = [390, 820, 1600];
/** The most that the page and the files may weigh that come with it, and the most of those that come later, compressed. */
const MAX_BYTES = { first: 93 * 1024, later: 38 * 1024 };
const HOSTILE = ["<script>window.pwned = 1</script>", "\"><img src=x onerror='window.pwned = 1'>", "{{7*7}} ${8*8} %3Cb%3E", "\u202Egnp.exe", "ä".repeat(60)];

mkdirSync(screenshots, { recursive: true });
const browser = await launched(tools);
/** @type {Server[]} */
const servers = [];
const started = Date.now();

function server(...options) {
  const made = new Server(program, options);
  servers.push(made);
  return made;
}

/** A page whose console errors, failures and foreign requests are collected. */
async function open(url, options = {}, other = url) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 }, locale: "en-GB", timezoneId: "Europe/Brussels", serviceWorkers: "block", ...options });
  const page = await context.newPage();
  page.problems = [];
  page.requests = [];
  page.bytes = 0;
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(error.stack));
  page.on("dialog", (dialog) => page.problems.push(`a dialog says ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => {
    page.requests.push(request.url());
    if (!/^(blob|data)/.test(request.url()) && ![url, other].some((it) => new URL(request.url()).host === new URL(it).host)) page.problems.push(`asks ${request.url()}`);
  });
  page.setDefaultTimeout(20_000);
  page.setDefaultNavigationTimeout(30_000);
  return page;
}

async function show(page, url, view) {
  await page.goto(`${url}/#${view}`);
  await page.reload();
  await settled(page);
}

/** Waits until the server has what was edited: a page that is left takes its request along. */
async function stored(home, path, isSo) {
  for (let look = 0; !isSo(await home.ask("GET", path)); look += 1) {
    assert.ok(look < 100, `${path} never was as it was edited`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** What axe-core finds, and whether the page is wider than the window. */
async function examined(page, name) {
  await page.evaluate(axe);
  // A view that a phone's navigation has scrolled past is a link to `#VIEW`, and no link to a place in the page.
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], rules: { "skip-link": { enabled: false } } }));
  assert.deepEqual(violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`), [], name);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
}

function unproblematic(page) {
  // A server without optimisation on a busy machine may take too long; the page then asks again.
  assert.deepEqual(page.problems.filter((it) => !it.includes("status of 503")), []);
}

/** Only the checks whose name begins so, and what they need, while one works on the page; or all but those. */
const only = process.env.ROOMTIDE_WEB_ONLY?.split(",");
const except = process.env.ROOMTIDE_WEB_EXCEPT?.split(",") ?? [];

async function check(name, what) {
  const isNamed = (beginnings) => beginnings.some((it) => name.startsWith(it));
  if (isNamed(except) || (only && !isNamed(only))) return;
  const start = Date.now();
  await what();
  console.log(`ok  ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
}

const text = (page, selector) => page.locator(selector).innerText();

async function emptyHome() {
  const home = await server("--empty").start();
  const page = await open(home.url);
  await show(page, home.url, "now");
  assert.match(await text(page, "main"), /There are no devices yet/);
  assert.ok((await text(page, "main")).includes(`curl ${home.url}/readings`), "the server's own address");
  for (const sender of ["ESPHome", "Home Assistant", "Telegraf", "Tasmota", "Shelly"]) await page.getByRole("button", { name: sender }).waitFor();
  await page.screenshot({ path: join(screenshots, "empty-1600.png") });
  for (const view of ["energy", "charts", "year", "heat", "device", "alerts"]) {
    await show(page, home.url, view);
    await examined(page, `empty ${view}`);
  }
  await show(page, home.url, "connect");
  assert.match(await text(page, "main"), /Waiting for a first reading/);
  // Whoever looks at another view meanwhile sees the first reading there, too.
  const waiting = {};
  for (const [view, words] of [["now", "There are no devices yet"], ["energy", "No meter"], ["device/my-sensor", "No such device"], ["charts", "No metrics"], ["heat", "There are no readings yet"]]) {
    waiting[view] = await open(home.url);
    await show(waiting[view], home.url, view);
    await waiting[view].getByText(words).first().waitFor();
  }
  await home.ask("POST", "/readings", { device_id: "my-sensor", room: "study", temperature: 21.5, current_w: 60 });
  await page.getByText("Reading received").waitFor();
  for (const [view, shown] of [["now", ".room a"], ["energy", ".tile .big"], ["device/my-sensor", "[aria-label='Each metric']"], ["charts", "[data-metric=temperature] h2"], ["heat", "[aria-label='Temperature of each room by hour']"]]) {
    // Views share an answer of some seconds, so the first look may still be at the empty home.
    for (let look = 0; look < 10 && !(await waiting[view].locator(shown).count()); look += 1) {
      await waiting[view].evaluate(() => window.dispatchEvent(new Event("online")));
      await waiting[view].waitForTimeout(2_000);
    }
    await waiting[view].locator(shown).first().waitFor();
    if (view === "energy") {
      await waiting[view].getByText("One meter measures all.").waitFor();
      assert.equal(await waiting[view].locator(".strip").count(), 0, "one part is no strip");
    }
    unproblematic(waiting[view]);
    await waiting[view].context().close();
  }
  assert.match(await text(page, "main"), /my-sensor: .*Temperature 21\.5 °C/);
  // Where nobody needs a token, a link would hide nothing.
  await show(page, home.url, "connect");
  await page.getByText("This server asks for no token").waitFor();
  assert.equal(await page.getByRole("button", { name: "Make the link" }).count(), 0);
  await plug(home, page);
  // Before there is a stay, a device is in its room.
  await show(page, home.url, "device/my-sensor");
  await page.getByRole("row").filter({ hasText: /study\s*lately\s*now/ }).waitFor();
  unproblematic(page);
  return home;
}

/** Plays the plug that has the rule of the page: its lines are for other machines, and what it posts is stored. */
async function plug(home, page) {
  await show(page, home.url, "connect");
  const lines = async (name) => {
    await page.getByRole("button", { name, exact: true }).click();
    return text(page, `[aria-label="Lines for ${name}"]`);
  };
  for (const name of ["ESPHome", "Home Assistant", "Telegraf", "Tasmota", "Shelly", "Any other device"]) {
    assert.doesNotMatch(await lines(name), /127\.0\.0\.1/, name);
    await page.getByText(`ADDRESS is this machine's in your network, such as 192.168.1.20. For other machines start the server by cargo run -- --auth --host 0.0.0.0 --port ${home.port} --data-dir '${home.directory}/data'.`).waitFor();
    // A server that asks for no token is told none; only an address has to have a word in its place.
    assert.equal(/TOKEN|Bearer/.test(await lines(name)), name === "Any other device", name);
    await examined(page, `the lines for ${name}`);
  }
  const rule = await lines("Tasmota");
  assert.equal(await page.getByText(/token/i).count(), 1, "but that a link for others needs one");
  assert.ok(rule.split("\n")[0].length < 511, "what a rule may have");
  const [, address, headers, body] = /WebQuery (\S+) POST \[(.*?)\] (.*?) ENDON/.exec(rule);
  const answer = await fetch(address.replace("ADDRESS", "127.0.0.1"), {
    method: "POST",
    headers: Object.fromEntries(headers.split("|").map((it) => it.split(": "))),
    body: body.replace("%value%", "2635").replace("%var1%", "6.294"),
  });
  assert.equal(answer.status, 201, await answer.text());
  const { metrics } = await home.ask("GET", "/devices/tasmota-plug/latest");
  assert.deepEqual([metrics.current_w.value, metrics.cumulative_kwh_p.value], [2635, 6.294]);
}

/** Rooms of several sensors, one of them silent; a device without a room; meters that are added up until one is behind another. */
async function roomsOfMany(home) {
  const at = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
  const readings = [];
  for (let n = 0; n < 24; n += 1) {
    readings.push({ device_id: "twin-a", room: "twins", timestamp: at(n * 15), temperature: 20 + n / 10 });
    readings.push({ device_id: "twin-b", room: "twins", timestamp: at(n * 15 + 1), temperature: 22 + n / 5 });
    readings.push({ device_id: "twin-silent", room: "twins", timestamp: at(300 + n * 15), temperature: 27 });
  }
  readings.push({ device_id: "door", room: "porch", open: 0 }, { device_id: "roomless", temperature: 23 }, { device_id: "main", room: "cellar", current_w: 4000 }, { device_id: "fridge", room: "cellar", current_w: 100 });
  await home.ask("POST", "/readings", readings);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const page = await open(home.url);
  await show(page, home.url, "now");
  // All rooms have tiles of one size; one of them opens.
  const sizes = await page.locator(".rooms .room").evaluateAll((all) => all.map((it) => `${it.offsetWidth} ${it.offsetHeight}`));
  assert.equal(new Set(sizes).size, 1, sizes.join());
  const room = page.locator(".room", { has: page.getByRole("link", { name: "twins" }) });
  assert.match(await room.innerText(), /21\.0 °C/);
  await room.getByRole("button", { name: "Marks of twins" }).click();
  await settled(page);
  const tile = page.locator(".room-card");
  assert.match(await tile.innerText(), /Temperature 2 of 3 sensors\s*21\.0 °C\s*comfortable/);
  await tile.getByRole("img", { name: /Last 24 hours: 20\.0 to 27\.0 °C/ }).waitFor();
  const power = page.locator(".card", { has: page.getByRole("heading", { name: "Power", exact: true }) });
  assert.match(await power.innerText(), /6,795 W[^]*Added up: main, 4,000 W; tasmota-plug, 2,635 W; fridge, 100 W; my-sensor, 60 W\. Is one of these behind another\?/);
  assert.doesNotMatch(await power.innerText(), /Biggest consumer/, "it may be the meter of all");
  assert.match(await page.locator(".room", { has: page.getByRole("link", { name: "porch" }) }).innerText(), /closed\s*Contact/);
  await examined(page, "rooms of many");
  // Said where the page asks: the power of the fridge is then counted once.
  await power.getByRole("link", { name: "fridge" }).click();
  await page.getByLabel("Behind the meter").selectOption("main");
  await page.getByRole("button", { name: "Save" }).click();
  await stored(home, "/devices/fridge", ({ behind }) => behind === "main");
  await show(page, home.url, "now");
  await power.locator(".big", { hasText: "6,695 W" }).waitFor();
  assert.match(await power.innerText(), /6,695 W[^]*Biggest consumer: tasmota-plug/);
  assert.doesNotMatch(await power.innerText(), /Is one of these/);
  // A row of the heat map, and a line of the chart, is the room's series.
  const from = new Date(Date.now() - 23 * 3_600_000);
  from.setMinutes(0, 0, 0);
  const { data } = await home.ask("GET", `/rooms/twins/series?metric=temperature&fn=mean&every=1h&from=${from.toISOString()}&to=now`);
  const means = data.filter((it) => it.temperature).map((it) => it.temperature.mean);
  assert.ok(means.length > 10);
  await show(page, home.url, "heat");
  const map = page.getByRole("region", { name: "Temperature of each room by hour" });
  const cells = await map.getByRole("row").filter({ hasText: "twins" }).getByRole("cell").allInnerTexts();
  assert.ok(cells.filter(Boolean).every((it, n) => Math.abs(Number(it) - means[n]) <= 0.051), `${cells} ${means}`);
  assert.equal(cells.filter(Boolean).length, means.length);
  await map.getByRole("rowheader", { name: "roomless" }).waitFor();
  assert.equal(await map.getByRole("rowheader", { name: /twin-/ }).count(), 0);
  await show(page, home.url, "charts");
  const captions = await text(page, "[data-metric=temperature] figcaption");
  assert.match(captions, /twins\u2069: 2\d/);
  assert.doesNotMatch(await text(page, "main"), /Thin/, "none of them missed a reading");
  assert.match(captions, /roomless\u2069: 23/);
  assert.doesNotMatch(captions, /twin-/);
  await legendHides(page);
  // Which is silent, from the list of devices.
  await show(page, home.url, "devices");
  await page.getByRole("row").filter({ hasText: "twin-silent" }).filter({ hasText: "⚠ silent since" }).waitFor();
  await page.getByRole("button", { name: "⚠ Silent 1" }).click();
  await page.getByRole("table", { name: "Silent devices" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2, "the head and the silent one");
  await examined(page, "silent devices");
  unproblematic(page);
}

/** Lines are not told by colour alone: an entry of the legend lights its line and hides it, also after a reload. */
async function legendHides(page) {
  const inked = () => page.locator("[data-metric=temperature] canvas").evaluate((it) => { const { data } = it.getContext("2d").getImageData(0, 0, it.width, it.height); let sum = 0; for (let n = 3; n < data.length; n += 4) sum += data[n]; return sum; });
  const entry = page.locator("[data-metric=temperature] figcaption").getByRole("button", { name: /twins/ });
  await page.mouse.move(0, 0);
  await page.waitForTimeout(200);
  const before = await inked();
  await entry.focus();
  await page.waitForTimeout(200);
  assert.notEqual(await inked(), before, "it is bold, and the other lines are pale");
  await entry.press("Enter");
  await page.getByRole("button", { name: /twins/, pressed: false }).waitFor();
  assert.match(page.url(), /hide=Temperature%3A\+twins/);
  await page.reload();
  await settled(page);
  await page.getByRole("button", { name: /twins/, pressed: false }).waitFor();
  await page.waitForTimeout(200);
  assert.ok((await inked()) < before, "the line is gone");
  await entry.click();
  await page.getByRole("button", { name: /twins/, pressed: true }).waitFor();
  assert.doesNotMatch(page.url(), /hide/);
}

/** A freezer and a thermometer in one room: by its kind, and by a person's word, the one is not the room's. */
async function freezer(home) {
  await home.ask("POST", "/readings", [{ device_id: "chest", room: "pantry", temperature: -18 }, { device_id: "wall", room: "pantry", temperature: 21 }]);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const page = await open(home.url);
  const tile = page.locator(".room-card");
  await show(page, home.url, "now");
  assert.match(await page.locator(".room", { has: page.getByRole("link", { name: "pantry" }) }).innerText(), /1\.5 °C[^]*cool/);
  await show(page, home.url, "now?edit=pantry");
  assert.match(await tile.innerText(), /mean of 2 sensors\s*1\.5 °C\s*cool/);
  for (const [label, choose] of [["Kind", () => page.getByLabel("Kind", { exact: true }).fill("Freezer")], ["Part of", () => page.getByLabel("Part of its room's means").selectOption("false")]]) {
    await show(page, home.url, "device/chest");
    await choose();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(label === "Kind" ? "not the room's: by its kind" : "not the room's: a person said so").waitFor();
    await show(page, home.url, "now?edit=pantry");
    assert.match(await tile.innerText(), /Temperature\s*21\.0 °C\s*comfortable\s*chest not the room's\s*-18\.0 °C/);
    assert.match(await text(page, ".summary"), /Coldest: \u2068pantry\u2069, 21\.0 °C/);
    for (const [kind, value] of [["kind", null], ["in_room_means", null]]) await home.ask("PATCH", "/devices/chest", { [kind]: value });
  }
  // The same word can be given on the first screen, and "outside" beside it.
  await show(page, home.url, "now?edit=pantry");
  await tile.getByLabel("chest is not the room's air").check();
  await tile.getByText("not the room's", { exact: true }).waitFor();
  assert.equal((await home.ask("GET", "/devices/chest")).in_room_means, false);
  await tile.getByLabel("Outside: no comfort is judged").check();
  await stored(home, "/rooms/pantry", ({ outside }) => outside === true);
  await home.ask("PATCH", "/rooms/pantry", { outside: null });
  await home.ask("PATCH", "/devices/chest", { kind: "freezer", in_room_means: null });
  await show(page, home.url, "now");
  await examined(page, "a freezer");
  await page.screenshot({ path: join(screenshots, "freezer-1600.png"), fullPage: true });
  unproblematic(page);
}

/** While the server is still summing up, no view says that there was nothing. */
async function summingUp(home) {
  const page = await open(home.url);
  const lack = { changes_since: new Date(Date.now() - 3_600_000).toISOString(), quarters: 3 };
  const answer = async (route, change) => {
    const response = await route.fetch({ maxRetries: 3 });
    const body = await response.json();
    await route.fulfill({ response, json: { ...body, ...change(body), rollups_lack: lack } });
  };
  const lacks = [/\/(series|energy)\?/];
  for (const isEmpty of [true, false]) {
    const change = (body) => (isEmpty ? { data: [], ...("total_kwh" in body && { total_kwh: null }) } : {});
    await page.route(lacks[0], (route) => answer(route, change));
    for (const view of ["now", "energy", "charts", "charts/twins", "year", "heat", "device/my-sensor"]) {
      await show(page, home.url, view);
      const said = await text(page, "main");
      assert.match(said, /History is still being summed up\. What arrived since/, view);
      assert.doesNotMatch(said, /No values in this range|No energy in this time|No device measured energy|up to this time|on the same days/, view);
      if (isEmpty && view !== "now") assert.match(said, /Not summed up yet/, view);
      if (view === "energy") {
        const figures = await page.locator(".tile .big").allInnerTexts();
        assert.equal(figures.length, 3);
        if (isEmpty) assert.deepEqual(figures, Array(3).fill("Not summed up yet."));
        await page.screenshot({ path: join(screenshots, `summing-up-${isEmpty}.png`), fullPage: true });
      }
      if (!isEmpty) await examined(page, `summing up ${view}`);
    }
    await page.unroute(lacks[0]);
  }
  await show(page, home.url, "energy");
  assert.doesNotMatch(await text(page, "main"), /still being summed up/);
  unproblematic(page);
}

/** In the home that was empty: names that are code, a silent device, a weak battery, a suspect step. */
async function oddHome(home) {
  const now = Date.now();
  const at = (minutes) => new Date(now - minutes * 60_000).toISOString();
  const readings = HOSTILE.map((_, n) => ({ device_id: `odd-${n}`, room: `odd-${n}`, temperature: 20 + n, battery: n === 0 ? 12 : 90 }));
  for (let n = 0; n < 180; n += 1) readings.push({ device_id: "quiet", room: "study", timestamp: at(300 - n), humidity: 50 });
  [[120, 100], [105, 100.2], [90, 5_100], [75, 5_100.2], [60, 5_100.4]].forEach(([minutes, kwh]) => readings.push({ device_id: "plug", timestamp: at(minutes), cumulative_kwh_p: kwh }));
  await home.ask("POST", "/readings", readings);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  for (const [n, name] of HOSTILE.entries()) {
    await home.ask("PATCH", `/devices/odd-${n}`, { name });
    await home.ask("PATCH", `/rooms/odd-${n}`, { name });
  }
  const page = await open(home.url, { viewport: { width: 390, height: 800 } });
  for (const view of ["now", "charts", "year?metric=temperature", "heat", "device", "device/odd-0", "charts/odd-1", "alerts"]) {
    await show(page, home.url, view);
    await examined(page, `odd ${view}`);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  }
  await show(page, home.url, "device");
  for (const name of HOSTILE) assert.ok((await page.getByRole("link", { name, exact: true }).count()) > 0 || (await text(page, "main")).includes(name), name);
  await page.getByRole("button", { name: "Weak battery 1" }).click();
  await page.getByRole("table", { name: "Battery below 20 %" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2, "the head and the weak one");
  await show(page, home.url, "now");
  await page.getByRole("listitem").filter({ hasText: "quiet since" }).filter({ hasText: "usually every 60 s" }).waitFor();
  await page.getByRole("heading", { name: "Battery below 20 %" }).waitFor();
  await page.getByRole("heading", { name: "Steps of meters that nobody has judged" }).waitFor();
  await page.getByRole("listitem").filter({ hasText: "plug from 100.20 kWh to 5,100.00 kWh in 15 minutes" }).getByRole("link").click();
  await page.getByRole("listitem").filter({ hasText: "suspect" }).getByRole("button", { name: "Ignore it" }).waitFor();
  await show(page, home.url, "now");
  await page.screenshot({ path: join(screenshots, "odd-390.png"), fullPage: true });
  // The sum leaves out what is behind a meter; what was odd is told all the same, here and by the device.
  await home.ask("PATCH", "/devices/plug", { behind: "main" });
  await show(page, home.url, "now");
  await page.getByRole("listitem").filter({ hasText: "plug from 100.20 kWh to 5,100.00 kWh in 15 minutes" }).waitFor();
  await show(page, home.url, "device/plug");
  await page.getByRole("listitem").filter({ hasText: "suspect" }).filter({ hasText: "from 100.20 kWh to 5,100.00 kWh" }).waitFor();
  // Soon after midnight the step was yesterday.
  const day = await dayAgo(page, 90 / 1440);
  await show(page, home.url, `energy?d=${day}&span=day`);
  await page.getByRole("listitem").filter({ hasText: "suspect" }).getByRole("button", { name: "It is right" }).click();
  await page.getByText("A person accepted this step").waitFor();
  const { metrics } = await home.ask("GET", "/devices/plug");
  assert.deepEqual(metrics.cumulative_kwh_p.verdicts.map((it) => it.verdict), ["accept"]);
  await page.getByRole("listitem").filter({ hasText: "accepted" }).getByRole("button", { name: "Undo" }).click();
  await page.getByRole("listitem").filter({ hasText: "suspect" }).getByRole("button", { name: "Ignore it" }).waitFor();
  await examined(page, "odd energy");
  // An edit that is refused says so in the server's words; a good one is stored.
  await show(page, home.url, "device/my-sensor");
  await page.getByLabel("Room (id)").fill("a b");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("status").filter({ hasText: "room" }).waitFor();
  await page.getByLabel("Room (id)").fill("attic");
  await page.getByLabel("Name").fill("Attic sensor");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Attic sensor" }).waitFor();
  assert.equal((await home.ask("GET", "/devices/my-sensor")).room, "attic");
  // The browser itself notes the request that was refused.
  page.problems = page.problems.filter((it) => !it.includes("400"));
  unproblematic(page);
}

async function awayAndBack(home) {
  const page = await open(home.url);
  await show(page, home.url, "now");
  await home.stop();
  await page.getByRole("link", { name: "Charts", exact: true }).click();
  await page.getByRole("alert").getByText("does not answer").waitFor();
  assert.match(await text(page, "#status"), /asks again in/);
  await home.start();
  await page.waitForFunction(() => !document.querySelector("#alert p"));
  await page.locator("canvas").first().waitFor();
  // Told to wait, it says so and waits.
  let asked = 0;
  await page.route("**/devices?**", (route) => {
    asked += 1;
    return route.fulfill({ status: 503, headers: { "retry-after": "20" }, contentType: "application/problem+json", body: JSON.stringify({ detail: "The table takes no more just now." }) });
  });
  await page.getByRole("link", { name: "Now", exact: true }).click();
  await page.waitForTimeout(5_500);
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await page.getByRole("alert").getByText("The table takes no more just now.").waitFor();
  assert.match(await text(page, "#status"), /asks again in (20|19) s/);
  const before = asked;
  await page.waitForTimeout(3_000);
  assert.equal(asked, before, "it waits");
  await page.unroute("**/devices?**");
  await page.context().setOffline(true);
  await page.getByRole("alert").getByText("offline").waitFor();
  await page.context().setOffline(false);
  await page.waitForFunction(() => !document.querySelector("#alert p"));
  page.problems = page.problems.filter((it) => !/ERR_CONNECTION|ERR_INTERNET|ERR_EMPTY|ERR_NETWORK|503|Failed to load/.test(it));
  unproblematic(page);
}

async function manyDevices() {
  const home = await server("--empty").start();
  const readings = Array.from({ length: 500 }, (_, n) => ({ device_id: `d${n}`, room: `r${n % 60}`, temperature: 15 + (n % 10), humidity: 50 }));
  await home.ask("POST", "/readings", readings);
  const page = await open(home.url);
  page.setDefaultTimeout(60_000);
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  await show(page, home.url, "now");
  await page.getByText("500 of 500 devices report").waitFor();
  await page.getByText("Usual intervals are unknown").waitFor();
  assert.equal(await page.locator(".rooms .room").count(), 60);
  page.problems = page.problems.filter((it) => !it.includes("422"));
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

async function tokens() {
  const home = await server("--empty", "--auth").start();
  const [admin, read] = [home.token("admin"), home.token("read")];
  await home.ask("POST", "/readings", { device_id: "secret", room: "vault", temperature: 7 }, admin);
  const page = await open(home.url);
  const give = async (token, keep) => {
    await page.getByRole("dialog").getByLabel("Token", { exact: true }).fill(token);
    if (keep) await page.getByLabel("Keep it in this browser").check();
    await page.getByRole("button", { name: "Use it" }).click();
  };
  await page.goto(home.url);
  await page.getByRole("heading", { name: "Access token" }).waitFor();
  await examined(page, "the question for a token");
  await page.screenshot({ path: join(screenshots, "token-1600.png") });
  assert.ok(!(await page.content()).includes("vault"), "without a token nothing is known");
  await give("wrong", false);
  await page.getByText("The token is refused").waitFor();
  await give(read, false);
  await page.getByRole("link", { name: "vault" }).first().waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Access token" }).waitFor();
  await give(read, true);
  await page.getByRole("link", { name: "vault" }).first().waitFor();
  await page.reload();
  await page.getByRole("link", { name: "vault" }).first().waitFor();
  await page.goto(`${home.url}/#device/secret`);
  await page.getByLabel("Name").fill("Safe");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Admin token" }).waitFor();
  await give(admin, false);
  await page.getByRole("heading", { name: "Safe", exact: true }).waitFor();
  // A token that may only store is refused at once and again, also where it is kept, until another one is given.
  const write = home.token("write", "--any");
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.getByRole("heading", { name: "Access token" }).waitFor();
  assert.equal(await page.evaluate(() => localStorage.length), 0, "the kept token is forgotten");
  for (const keep of [false, true]) {
    await give(write, keep);
    await page.getByText("The token is refused: The token may only store readings.").waitFor();
    await page.getByText("Give one that may read.").waitFor();
  }
  await page.reload();
  await page.getByText("The token is refused: The token may only store readings.").waitFor();
  await examined(page, "a token that may only store");
  await give(read, true);
  await page.getByRole("heading", { name: "Safe", exact: true }).waitFor();
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  assert.ok(kept.includes(read) && !kept.includes(admin), "the admin's token is not kept");
  page.problems = page.problems.filter((it) => !/40[13]/.test(it));
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** Readings are stored at another address than the page's, as where each function has its own; a link brings the token. */
async function twoAddresses(isGuarded) {
  const home = await server("--empty", "--ingest-port", "0", ...(isGuarded ? ["--auth"] : [])).start("  engine");
  assert.notEqual(new URL(home.ingest).host, new URL(home.url).host);
  const page = await open(home.url, {}, home.ingest);
  if (isGuarded) {
    const read = home.token("read");
    await page.goto(`${home.url}/#token=${read}`);
    await settled(page);
    assert.equal(page.url(), `${home.url}/#now`, "the token is gone from the address");
    await page.goBack();
    assert.doesNotMatch(page.url(), /token/, "and from the history");
    await show(page, home.url, "now");
    // In a tab that is open, too.
    await page.evaluate(() => localStorage.clear());
    await page.evaluate((token) => { location.hash = `#token=${token}`; }, read);
    await page.waitForFunction(() => location.hash === "#now");
    assert.ok((await page.evaluate(() => JSON.stringify(localStorage))).includes(read));
    await otherToken(home, read);
  }
  await show(page, home.url, "connect");
  const shown = await text(page, "main");
  assert.ok(shown.includes(`curl ${home.ingest}/readings`) && shown.includes(`Readings are stored at ${home.ingest}`), shown);
  assert.ok(!shown.includes(home.url), "no device writes to the page's address");
  await page.getByRole("button", { name: "Send it from here" }).click();
  if (isGuarded) {
    await page.getByRole("heading", { name: "Write token" }).waitFor();
    await page.getByRole("dialog").getByLabel("Token", { exact: true }).fill(home.token("write", "--device", "my-sensor"));
    await page.getByRole("button", { name: "Use it" }).click();
  }
  await page.getByText("Reading received").waitFor();
  await examined(page, "two addresses");
  const written = page.requests.filter((it) => new URL(it).host === new URL(home.ingest).host);
  assert.deepEqual([...new Set(written)], [`${home.ingest}/readings`], "nothing is read there");
  // No third host, whatever a script would try.
  const refused = await page.evaluate(
    () => new Promise((resolve) => {
      document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), { once: true });
      fetch("http://127.0.0.1:9/").catch(() => {});
    }),
  );
  assert.equal(refused, "connect-src");
  for (const [address, path, method, output] of [[home.url, "/readings", "POST", "IngestUrl"], [home.ingest, "/", "GET", "PageUrl"], [home.ingest, "/devices", "GET", "PageUrl"]]) {
    const answer = await fetch(address + path, { method, body: method === "POST" ? "{}" : undefined });
    const isAsked = isGuarded && method === "POST";
    if (!isAsked) assert.match(`${answer.status} ${await answer.text()}`, new RegExp(`^404 .*${output}`), path);
  }
  page.problems = page.problems.filter((it) => !/40[13]|Content Security Policy|127\.0\.0\.1:9/.test(it));
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** A link with another token than the one that is kept replaces it only if the browser's owner says so. */
async function otherToken(home, read) {
  const other = home.token("read");
  const page = await open(home.url);
  await page.goto(`${home.url}/#token=${read}`);
  await settled(page);
  page.removeAllListeners("dialog");
  const asked = [];
  for (const [token, says, kept] of [[read, "dismiss", read], [other, "dismiss", read], [other, "accept", other], [other, "dismiss", other]]) {
    page.once("dialog", (dialog) => { asked.push(dialog.message()); dialog[says](); });
    await page.goto("about:blank");
    await page.goto(`${home.url}/#token=${token}`);
    await settled(page);
    page.removeAllListeners("dialog");
    assert.equal(page.url(), `${home.url}/#now`);
    assert.equal(await page.evaluate(() => localStorage.getItem("roomtide.token")), kept);
  }
  assert.deepEqual(asked, Array(2).fill("Replace the access token that this browser keeps?"), "the same token is no other");
  // In a tab that is open, too.
  page.once("dialog", (dialog) => dialog.dismiss());
  await page.evaluate(() => { location.hash = "#token=rt_wrong"; });
  await page.waitForFunction(() => location.hash === "#now");
  await settled(page);
  assert.equal(await page.evaluate(() => localStorage.getItem("roomtide.token")), other);
  unproblematic(page);
  await page.context().close();
}

/** However much a view wants to know, it asks four things at once. */
async function fourAtOnce(home) {
  const page = await open(home.url);
  let [underWay, most, all] = [0, 0, 0];
  await page.route(/\/(devices|rooms|series|energy|health)\b/, async (route) => {
    underWay += 1;
    all += 1;
    most = Math.max(most, underWay);
    const response = await route.fetch({ maxRetries: 3 });
    await page.waitForTimeout(300);
    underWay -= 1;
    await route.fulfill({ response });
  });
  await show(page, home.url, "energy");
  console.log(`figure  energy: ${all} requests, at most ${most} at once`);
  assert.ok(all > 4 && most === 4, `${most} of ${all}`);
  // The page asks again until the browser is closed, and nobody would answer it then.
  await page.unrouteAll({ behavior: "wait" });
  unproblematic(page);
}

/** A Home Assistant that sends a meter, its copy, ten plugs and a roof: one question, and one answer to it. */
async function houseOfMeters() {
  const home = await server("--empty").start();
  const names = ["house_meter", "house_copy", ...Array.from({ length: 10 }, (_, n) => `plug_${n}_energy`), "solar_energy"];
  const lines = [90, 60, 30].flatMap((minutes) => names.map((name) => `kWh,domain=sensor,entity_id=${name} device_class_str="energy",state_class_str="total_increasing",value=${200 - minutes / 60} ${Date.now() - minutes * 60_000}`));
  const answer = await fetch(`${home.url}/write?precision=ms`, { method: "POST", headers: { authorization: "Token any" }, body: lines.join("\n") });
  assert.equal(answer.status, 204, await answer.text());
  const all = async () => home.ask("GET", "/energy?from=-2h");
  assert.equal((await all()).unsure.length, 12);
  const page = await open(home.url, { viewport: { width: 390, height: 800 } });
  await show(page, home.url, "energy");
  await page.getByText("Not in these sums: sensor.solar_energy (production).").waitFor();
  assert.equal(await page.getByRole("combobox").count(), 1, "ten plugs are one question");
  await examined(page, "the question which meter measures all");
  await page.getByText("One by one").click();
  await examined(page, "the question, meter by meter");
  await page.getByRole("combobox", { name: "sensor.house_copy", exact: true }).selectOption("none");
  await page.getByLabel("The meter of the whole home").selectOption("sensor.house_meter");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("sensor.house_copy (counts as nothing)").waitFor();
  await page.getByRole("heading", { name: "Are these counted twice?" }).waitFor({ state: "detached" });
  const { unsure, devices, left_out } = await all();
  assert.deepEqual([unsure, devices.map((it) => it.device_id), left_out.length], [undefined, ["sensor.house_meter"], 12]);
  unproblematic(page);
}

/** A house with a meter, plugs behind it, a damp bath, a window and a freezer: a fortnight of quarters of an hour. */
async function houseOfPlugs() {
  const readings = [];
  const total = { meter: 1000, fridge: 10, washer: 50 };
  const now = Math.floor(Date.now() / 900_000) * 900_000;
  for (let at = now - 14 * 86_400_000; at <= now; at += 900_000) {
    const hour = new Date(at).getUTCHours();
    const watts = { fridge: 100, washer: hour === 9 ? 1800 : 0 };
    watts.meter = watts.fridge + watts.washer + 200;
    const timestamp = new Date(at).toISOString();
    for (const [device, power] of Object.entries(watts)) {
      readings.push({ device_id: device, room: { meter: "hall", fridge: "kitchen", washer: "bath" }[device], timestamp, current_w: power, cumulative_kwh_p: Number(total[device].toFixed(4)) });
      // After the reading: so each half hour is used evenly, and a part of it tells how much of it is used.
      total[device] += power / 4000;
    }
    readings.push({ device_id: "th-bath", room: "bath", timestamp, temperature: 22, humidity: at > now - 3 * 3_600_000 ? 72 : 55 });
    readings.push({ device_id: "th-kitchen", room: "kitchen", timestamp, temperature: 20 + hour / 10, humidity: 45 });
    readings.push({ device_id: "th-out", room: "garden", timestamp, temperature: 3 + hour / 10, humidity: 85 });
    readings.push({ device_id: "window", room: "kitchen", timestamp, contact: hour === 12 ? 0 : 1, pm25: 7 });
    // Six minutes, of which no row of a chart can tell.
    if (hour === 9) for (const [minute, contact] of [[7, 0], [13, 1]]) readings.push({ device_id: "window", room: "kitchen", timestamp: Math.floor(at / 1000) + 60 * minute, contact });
    if (at < now - 9 * 3_600_000) readings.push({ device_id: "lost", room: "kitchen", timestamp, battery: 12 });
  }
  const home = await server("--empty").startWith(readings);
  for (const plug of ["fridge", "washer"]) await home.ask("PATCH", `/devices/${plug}`, { behind: "meter" });
  await home.ask("PATCH", "/rooms/garden", { outside: true });
  for (let look = 0; look < 300; look += 1) {
    const { rollups_lack } = await home.ask("GET", "/energy?from=-15d");
    if (!rollups_lack) break;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  return home;
}

/** A day in the browser's zone, so many days ago, as the address writes it. */
const dayAgo = (page, days) => page.evaluate((it) => { const date = new Date(Date.now() - it * 86_400_000); return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`; }, days);

async function whereItWent(home) {
  const page = await open(home.url);
  await show(page, home.url, "energy");
  // Each day is like the one before, up to the newest reading, too.
  const today = await page.locator(".tile", { has: page.getByRole("heading", { name: "Today so far" }) }).innerText();
  const [, own, before] = /([\d.]+) kWh\s+the same as yesterday (?:up to this time|until \d\d:\d\d): ([\d.]+) kWh/.exec(today) ?? [];
  assert.ok(own && Math.abs(own - before) < 0.011 || /none|0\.00/.test(today), today);
  await show(page, home.url, "now");
  const now = await page.locator(".card", { has: page.getByRole("heading", { name: "Today so far" }) }).innerText();
  assert.ok(/the same as the mean of the last 7 days up to this time: [\d.]+ kWh/.test(now) || /none|0\.00/.test(now), now);
  await show(page, home.url, "energy?span=week&vs=weekday");
  const chosen = page.locator(".tile").first();
  assert.match(await chosen.innerText(), /week before up to the same time: [\d.]+ kWh/);
  const day = await dayAgo(page, 2);
  await show(page, home.url, `energy?d=${day}`);
  const parts = page.locator(".parts li");
  const amounts = async () => Object.fromEntries((await parts.allInnerTexts()).map((it) => [it.split("\n")[0].replace(/[\u2068\u2069]/g, ""), Number(/([\d.]+) kWh/.exec(it)[1])]));
  assert.deepEqual(await amounts(), { "Not on a plug": 4.8, fridge: 2.4, washer: 1.8 });
  assert.match(await chosen.innerText(), /9\.00 kWh/);
  assert.match(await parts.nth(0).innerText(), /53%/);
  await page.getByText(/as on a usual \w+day/).first().waitFor();
  const colour = () => page.locator("#part-washer .dot").getAttribute("class");
  const ofDay = await colour();
  // A part that is touched is lit, and the address says so.
  await page.getByRole("button", { name: /washer/ }).click();
  await settled(page);
  assert.match(page.url(), /part=washer/);
  await page.getByText("kWh by hour as a table").click();
  const row = page.getByRole("row").filter({ hasText: /1\.80/ }).first();
  await row.waitFor();
  // The parts of each bar add up to it, and the one that is lit is the first.
  const bars = await page.getByRole("region", { name: "kWh by hour" }).getByRole("row").allInnerTexts();
  assert.match(bars[0], /^Time\s+kWh\s+washer\s+Not on a plug\s+fridge/);
  for (const bar of bars.slice(1)) {
    const [sum, ...parts] = bar.split("\t").slice(1, 5).map(Number);
    assert.ok(Math.abs(parts.reduce((all, part) => all + part, 0) - sum) < 0.02, bar);
  }
  await examined(page, "a part is lit");
  // An open table, the part and the day stay: after a reload, and in another tab.
  await page.reload();
  await settled(page);
  assert.equal(await page.locator("details[open] table").count(), 1, "the table is open");
  assert.equal(await page.getByRole("button", { name: /washer/, pressed: true }).count(), 1);
  await page.getByRole("button", { name: "By room" }).click();
  await settled(page);
  assert.deepEqual(await amounts(), { "Not on a plug": 4.8, kitchen: 2.4, bath: 1.8 });
  await page.goBack();
  await settled(page);
  await page.getByRole("button", { name: /washer/, pressed: true }).waitFor();
  // Another day by a key, compared with the day before it.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.match(page.url(), new RegExp(`d=${await dayAgo(page, 3)}`));
  await page.getByLabel("Compare with").selectOption("day");
  await page.getByText(/the same as day before: 9\.00 kWh/).waitFor();
  await page.getByText("outline: day before").waitFor();
  for (const span of ["Week", "Month", "Year"]) {
    await page.getByRole("button", { name: span, exact: true }).click();
    await settled(page);
    assert.ok((await parts.count()) >= 3, span);
    assert.equal(await colour(), ofDay, "a device keeps its colour");
    await examined(page, `energy of a ${span}`);
  }
  // By a swipe.
  await page.goto("about:blank");
  const phone = await open(home.url, { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  await show(phone, home.url, "energy");
  await phone.evaluate(() => {
    const touch = (type, x) => { const it = new Touch({ identifier: 1, target: document.querySelector("h1"), clientX: x, clientY: 50 }); document.querySelector("h1").dispatchEvent(new TouchEvent(type, { touches: type === "touchend" ? [] : [it], changedTouches: [it], bubbles: true })); };
    touch("touchstart", 100);
    touch("touchend", 250);
  });
  await settled(phone);
  assert.match(phone.url(), new RegExp(`d=${await dayAgo(phone, 1)}`));
  await phone.screenshot({ path: join(screenshots, "plugs-390.png"), fullPage: true });
  await onPhone(home, phone);
  unproblematic(phone);
  unproblematic(page);
}

/** On a phone the first figure is in the upper half, and the bar at the foot has four signs, and the others behind one. */
async function onPhone(home, phone) {
  await phone.setViewportSize({ width: 390, height: 844 });
  for (const view of ["now", "energy"]) {
    await show(phone, home.url, view);
    const { y, height } = await phone.locator("main .big").first().boundingBox();
    assert.ok(y + height < 422, `the first figure of ${view} ends at ${y + height}`);
  }
  const inBar = async () => (await text(phone, "nav")).split("\n").filter(Boolean).join();
  assert.equal(await inBar(), "Now,Energy,Charts,Alerts,More");
  assert.equal(await phone.locator("nav > :is(a, button) .sign:visible").count(), 5);
  await phone.getByRole("button", { name: "More", exact: true }).click();
  await examined(phone, "what else there is");
  await phone.getByRole("link", { name: "Heat map" }).click();
  await settled(phone);
  assert.equal(await inBar(), "Now,Energy,Charts,Alerts,More", "it is closed again");
  // The rest of the bar of dates opens.
  await phone.getByRole("button", { name: "More settings" }).click();
  await phone.getByLabel("Metric").waitFor();
  await examined(phone, "the bar of dates");
}

/** The ten questions of somebody who has never seen the page; those about months and years are with three years. */
async function tenQuestions(home) {
  const page = await open(home.url);
  await show(page, home.url, "now");
  const attention = page.locator(".card", { has: page.getByRole("heading", { name: "What needs attention" }) });
  // Humid is what the API says, to the minute.
  const { data: humid } = await home.ask("GET", "/rooms/bath/conditions?from=-2d&humidity=65..");
  const since = await page.evaluate((at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }), humid.at(-1).from);
  await attention.getByRole("listitem").filter({ hasText: new RegExp(`bath humid since .*${since}$`) }).waitFor();
  await attention.getByRole("listitem").filter({ hasText: /lost since .* ago \(usually every 15 minutes\)/ }).waitFor();
  await attention.getByRole("listitem").filter({ hasText: /lost 12 %/ }).waitFor();
  assert.doesNotMatch(await attention.innerText(), /garden/, "outside nothing is judged");
  await page.getByText(/Base load last night: 300 W/).waitFor();
  await attention.getByText(/The history begins/).waitFor();
  const kitchen = page.locator(".room", { has: page.getByRole("link", { name: "kitchen" }) });
  assert.match(await kitchen.innerText(), /Contact (open|closed)/);
  assert.match(await kitchen.innerText(), /PM2\.5 7/);
  // What is wrong in a room is what its line shows.
  await page.locator(".tile", { has: page.getByRole("link", { name: "bath" }) }).getByRole("img", { name: "Last 24 hours: 55 to 72 %" }).waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForTimeout(200);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 2 * 800, `${height} px are more than two screens of a phone`);
  await examined(page, "plugs on a phone");
  await page.setViewportSize({ width: 1600, height: 900 });
  // Yesterday's energy and peak, and what took most of it.
  await show(page, home.url, "energy");
  const yesterday = page.locator(".tile", { has: page.getByRole("heading", { name: "Yesterday" }) });
  assert.match(await yesterday.innerText(), /9\.00 kWh\s+highest hour \d{2}:00: 2\.10 kWh/);
  await yesterday.getByRole("link").click();
  await settled(page);
  assert.match(await page.locator(".parts li").first().innerText(), /Not on a plug[^]*4\.80 kWh/);
  assert.match(await page.locator(".parts li").nth(1).innerText(), /fridge[^]*2\.40 kWh/);
  // What the fridge did on a night.
  const day = await dayAgo(page, 1);
  await show(page, home.url, `device/fridge?d=${day}&span=day`);
  await page.getByText("2.40 kWh").waitFor();
  // The hottest day of the year, and whether a window was open.
  await show(page, home.url, "year?metric=temperature&room=kitchen");
  await page.getByRole("listitem").filter({ hasText: /Hottest day: .*, 22\.3 °C \(highest reading\)/ }).waitFor();
  assert.ok((await page.locator(".heat td[class]").count()) >= 14);
  await show(page, home.url, "year?metric=temperature");
  assert.match(await page.getByRole("listitem").first().getByRole("link").getAttribute("href"), /^#charts\/garden\?/);
  await page.setViewportSize({ width: 820, height: 900 });
  await show(page, home.url, "heat");
  for (const region of await page.locator(".scroll").all()) assert.ok(await region.evaluate((it) => it.scrollLeft + it.clientWidth >= it.scrollWidth - 1), "the newest hours are seen");
  await page.setViewportSize({ width: 1600, height: 900 });
  // Nothing is told beside a chart, and in it values have their unit.
  await show(page, home.url, "charts/kitchen?metric=temperature");
  const legend = page.locator(".u-legend");
  await page.locator(".u-axis").first().hover();
  assert.equal(await legend.isVisible(), false);
  await page.locator(".u-over").hover();
  assert.match(await legend.innerText(), /\d °C/);
  // A meter whose plugs are behind it is behind none of them.
  await show(page, home.url, "device/meter");
  assert.equal(await page.getByLabel("Behind the meter").count(), 0);
  await show(page, home.url, `charts/kitchen?d=${day}&span=day&metric=contact`);
  const [from, to] = await page.evaluate((it) => ["09:07", "09:13"].map((time) => new Date(`${it}T${time}:00Z`).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })), day);
  await page.getByRole("listitem").filter({ hasText: new RegExp(`window\u2069? was open [^]*${from} to ${to}`) }).waitFor();
  assert.doesNotMatch(await text(page, "[data-metric=contact]"), /th-kitchen/, "a thermometer is never open");
  unproblematic(page);
}

/** What somebody notes is on the charts of that time, until it is taken back. */
async function annotated(home) {
  const page = await open(home.url);
  await show(page, home.url, "charts/kitchen");
  await page.getByText("0 notes").click();
  await page.getByLabel("Note", { exact: true }).fill("window cleaned");
  await page.getByRole("button", { name: "Add the note" }).click();
  await page.getByText("1 note", { exact: true }).waitFor();
  await page.getByRole("listitem").filter({ hasText: "kitchen: window cleaned" }).waitFor();
  assert.equal((await home.ask("GET", "/annotations?room=kitchen")).data[0].text, "window cleaned");
  await examined(page, "a note");
  await page.getByRole("listitem").filter({ hasText: "window cleaned" }).getByRole("button", { name: "Delete" }).click();
  await page.getByText("0 notes").waitFor();
  // A step of the last hour, as it comes. The house has been stored before, so none of its readings is between these.
  await home.ask("POST", "/readings", [[40, 300], [10, 2400]].map(([seconds, current_w]) => ({ device_id: "meter", timestamp: new Date(Date.now() - seconds * 1000).toISOString(), current_w })));
  await show(page, home.url, "now");
  const step = page.getByRole("listitem").filter({ hasText: /2,100 W more at/ });
  await step.getByRole("textbox").fill("kettle");
  await step.getByRole("button", { name: "Name it" }).click();
  await step.getByText("noted").waitFor();
  assert.equal((await home.ask("GET", "/annotations?device=meter")).data[0].text, "kettle");
  // The number grows while one looks.
  await home.ask("POST", "/readings", { device_id: "meter", current_w: 777 });
  await page.locator(".live .big", { hasText: "777 W" }).waitFor();
  await examined(page, "a step");
  unproblematic(page);
}

/** No text of the page is outside of its catalogues, and each language is whole. */
async function inWords(home) {
  const known = await home.ask("GET", "/devices");
  const data = known.data.flatMap((it) => [it.device_id, it.room, ...Object.keys(it.metrics)]);
  const page = await open(home.url);
  await bracketed(page);
  for (const view of ["now?edit=kitchen", "energy", "charts/kitchen?metric=temperature&alert=temperature&open=notes", "year", "heat", "device", "device/meter", "alerts?channel=ntfy", "connect"]) {
    await page.goto(`${home.url}/#${view}`);
    await page.reload();
    await page.waitForFunction(() => /updated/.test(document.getElementById("status").textContent) && !document.querySelector("[aria-busy]"));
    assert.deepEqual(await unbracketed(page, data), [], view);
  }
  for (const [locale, now, lang] of [["de-AT", "Jetzt", "de"], ["fr-BE", "Maintenant", "fr"], ["ja-JP", "現在", "ja"], ["nl-BE", "Now", "en"]]) {
    const other = await open(home.url, { locale });
    await other.goto(`${home.url}/#now`);
    await other.getByRole("heading", { name: now, level: 1 }).waitFor();
    assert.equal(await other.locator("html").getAttribute("lang"), lang);
    await other.waitForFunction(() => !document.querySelector("[aria-busy]"));
    await examined(other, locale);
    await other.screenshot({ path: join(screenshots, `now-${lang}.png`), fullPage: true });
    if (lang === "fr") {
      for (const view of VIEWS) {
        await other.goto(`${home.url}/#${view}`);
        await other.reload();
        await other.waitForFunction(() => document.querySelector("h1") && !document.querySelector("[aria-busy]"));
        const texts = await other.locator("body").evaluate((it) => { for (const code of it.querySelectorAll("pre, code, script")) code.remove(); return it.textContent; });
        assert.doesNotMatch(texts, /.{0,30}( [:;?!»]|« ).{0,9}/, `${view} has spaces at which a line may break`);
      }
    }
    await other.goto(`${home.url}/?lang=de#energy`);
    await other.getByRole("heading", { name: "Energie", level: 1 }).waitFor();
    await other.context().close();
  }
}

/** The page opens at once with what it knew, also without its server, and says from when that is. */
async function withoutServer(home) {
  const page = await open(home.url, { serviceWorkers: "allow" });
  await show(page, home.url, "now");
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await page.waitForTimeout(1_000);
  await show(page, home.url, "now");
  await page.waitForTimeout(1_000);
  // Questions that end at other times are others; the same a little later is not.
  const keptOf = (days, wish) => page.evaluate(async ([days, wish]) => {
    const day = (it) => { const now = new Date(); return new Date(now.getFullYear(), now.getMonth(), now.getDate() + it).getTime(); };
    const to = new Date(days === null ? Math.floor(Date.now() / 1000) * 1000 + 1 : day(days)).toISOString();
    const answer = await fetch(`energy?from=${new Date(day(-10)).toISOString()}&to=${to}`, { headers: { "x-known": wish } });
    return Boolean(answer.headers.get("x-known-from"));
  }, [days, wish]);
  assert.deepEqual([await keptOf(-3, "keep"), await keptOf(null, "keep first"), await keptOf(-3, "keep first")], [false, false, true]);
  await page.waitForTimeout(1_100);
  assert.equal(await keptOf(null, "keep first"), true);
  await show(page, home.url, "energy");
  // Of what was known last nothing is used as the server's own, however wrong it was.
  await page.evaluate(async () => {
    const data = await caches.open("roomtide-data");
    for (const { url } of await data.keys()) if (/\/energy\?/.test(url)) await data.put(url, new Response("{\"data\": [], \"total_kwh\": null}", { headers: { "x-known-from": "2026-01-01T00:00:00Z" } }));
  });
  await show(page, home.url, "now");
  await page.getByText(/Base load last night: \d+ W/).waitFor();
  await show(page, home.url, "energy");
  assert.match(await page.locator(".tile", { has: page.getByRole("heading", { name: "Yesterday" }) }).innerText(), /9\.00 kWh/);
  // What comes later is kept too, before somebody has opened it.
  const kept = await page.evaluate(async () => (await (await caches.open("roomtide-files")).keys()).map(({ url }) => url));
  for (const name of ["alerts", "sources", "sourceform"]) assert.ok(kept.some((url) => url.endsWith(`.${name}.js`)), `${name} in ${kept.join(" ")}`);
  await home.stop();
  const times = [];
  // The page itself notes when the first room is there.
  await page.addInitScript(() => new MutationObserver(() => { if (document.querySelector(".room a")) window.firstRoom ??= performance.now(); }).observe(document, { childList: true, subtree: true }));
  for (let n = 0; n < 9; n += 1) {
    await page.goto("about:blank");
    await page.goto(`${home.url}/#now`, { waitUntil: "commit" });
    await page.getByRole("link", { name: "kitchen" }).first().waitFor();
    times.push(Math.round(await page.evaluate(() => window.firstRoom)));
  }
  times.sort((a, b) => a - b);
  console.log(`figure  a known home opens without its server in ${times[0]} ms, mostly ${times[4]} ms`);
  await page.waitForFunction(() => /as known .* ago/.test(document.getElementById("status").textContent));
  await page.screenshot({ path: join(screenshots, "offline-1600.png"), fullPage: true });
  await home.start();
  await page.waitForFunction(() => /^(updated|aktualisiert)/.test(document.getElementById("status").textContent), null, { timeout: 60_000 });
  const manifest = await page.evaluate(async () => (await (await fetch(document.querySelector("link[rel=manifest]").href)).json()).icons.length);
  assert.ok(manifest >= 2);
  await page.context().close();
}

/** A picture of a chart has what the chart has. */
async function pictured(home) {
  const page = await open(home.url);
  await show(page, home.url, "charts/kitchen?metric=temperature");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Picture" }).first().click();
  const file = await download;
  assert.equal(file.suggestedFilename(), "Temperature-Last-24-hours.png");
  const bytes = await readFile(await file.path());
  assert.deepEqual([...bytes.subarray(1, 4)], [0x50, 0x4e, 0x47]);
  assert.ok(bytes.readUInt32BE(16) > 800 && bytes.readUInt32BE(20) > 300, "as large as the chart and its text");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").isVisible(), false);
  // Soon after midnight today has no parts.
  await show(page, home.url, `energy?d=${await dayAgo(page, 1)}`);
  await page.locator(".parts li").getByText("fridge").waitFor();
  unproblematic(page);
}

/** An admin makes a device's token here, sends with the lines, and names what arrives. */
async function connected() {
  const home = await server("--empty", "--auth").start();
  const page = await open(home.url);
  await page.goto(`${home.url}/#token=${home.token("read")}`);
  await settled(page);
  await show(page, home.url, "connect?sender=tasmota");
  await page.getByLabel("Device (id)").fill("lamp");
  await page.getByText("Make the token by a command").click();
  await page.getByText(/token create --scope write --device lamp --data-dir '.*\/data'$/).waitFor();
  assert.doesNotMatch(await text(page, "main"), /roomtide token/, "commands have one form");
  await page.getByRole("button", { name: "Make its token" }).click();
  await page.getByRole("dialog").getByLabel("Token", { exact: true }).fill(home.token("admin"));
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByText("The lines have their token.").waitFor();
  const rule = await text(page, "[aria-label=\"Lines for Tasmota\"]");
  const token = /Bearer (rt_[\w-]+)/.exec(rule)[1];
  await page.getByText("As a QR code").click();
  await page.getByRole("img", { name: "QR code of the lines for Tasmota" }).waitFor();
  await examined(page, "a token and its code");
  const answer = await fetch(`${home.url}/readings/tasmota?device=lamp&room=study`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: "{\"ENERGY\": {\"Power\": 12, \"Total\": 1.5}}" });
  assert.equal(answer.status, 201, await answer.text());
  await page.getByText("Reading received").waitFor();
  await page.getByLabel("Name of lamp").fill("Desk lamp");
  await page.getByLabel("Room (id)").fill("office");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const { name, room } = await home.ask("GET", "/devices/lamp", undefined, home.token("read"));
  assert.deepEqual([name, room], ["Desk lamp", "office"]);
  // The reader's own token may make none, so an admin's was asked for.
  page.problems = page.problems.filter((it) => !it.includes("403"));
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** A page whose sources are played, on the half of Connect where Roomtide asks. */
async function openSources(home, played, options = {}) {
  const page = await open(home.url, { viewport: { width: 1280, height: 860 }, ...options });
  await played.play(page);
  await show(page, home.url, "connect?half=asks");
  return page;
}

/** A maker's cloud is asked after a tile, a token, a test and a click; what is saved is a card, and its reading comes there. */
async function sourceAsked() {
  const home = await server("--empty").start();
  const played = new PlayedSources();
  const page = await open(home.url, { viewport: { width: 1280, height: 860 } });
  await played.play(page);
  await show(page, home.url, "connect");
  await page.getByRole("button", { name: "Roomtide asks" }).click();
  await page.getByText("No source is asked yet.").waitFor();
  await examined(page, "tiles of makers");
  await page.screenshot({ path: join(screenshots, "sources-tiles-1280.png"), fullPage: true });
  assert.ok(!page.requests.some((it) => it.includes("sourceform.js")), "the form comes when it is opened");

  await page.getByRole("button", { name: "Nature Remo" }).click();
  const token = page.getByLabel("Access token");
  await token.waitFor();
  assert.ok(page.requests.some((it) => it.includes("sourceform.js")));
  assert.equal(await token.getAttribute("type"), "password");
  await page.waitForFunction(() => document.activeElement?.getAttribute("name") === "token");
  await page.getByText("home.nature.global makes a token.").waitFor();
  await token.fill("wrong");
  await token.press("Enter");
  await page.getByText("Nature Remo refuses the token (401).").waitFor();
  await token.fill("right");
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("2 devices answer.").waitFor();
  assert.match(await text(page, "main"), /リビング\s*Temperature 21\.4.*Humidity 44/);
  assert.equal(await page.getByLabel("Room of リビング (id)").inputValue(), "room-a1");
  assert.equal(played.sent.filter(({ method }) => method === "PUT").length, 0, "a test saves nothing");
  await page.getByText("To be told when it fails, add a channel first").waitFor();
  await examined(page, "a test of Nature Remo");
  await page.screenshot({ path: join(screenshots, "sources-test-1280.png"), fullPage: true });
  // The page looks again every few seconds, and leaves alone what somebody fills in.
  await page.waitForTimeout(4_500);
  await page.getByLabel("Room of Study (id)").fill("office");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("The first reading comes within a minute").waitFor();
  assert.deepEqual(played.last("PUT", "/sources/remo"), { kind: "remo", secrets: { token: "right" }, rooms: { a1: { room: "room-a1", name: "リビング" }, b2: { room: "office" } } });
  await page.locator("#source-remo").getByText("waits for its first answer").waitFor();
  await home.ask("POST", "/readings", [{ device_id: "a1", room: "room-a1", temperature: 21.4 }, { device_id: "source:remo", room: "remo", failing: 0 }]);
  played.data[0].state = { state: "ok", every: "1m", last_success: new Date().toISOString(), failing_since: null, error: null, next: new Date(Date.now() + 60_000).toISOString(), requests_today: 2 };
  await page.getByText("Reading received").waitFor();
  assert.match(await text(page, "#source-remo"), /Nature Remo works[\s\S]*2 requests today\.[\s\S]*a1 Temperature 21\.4 °C/);
  await page.screenshot({ path: join(screenshots, "sources-card-1280.png"), fullPage: true });

  await show(page, home.url, "now");
  await page.locator(".room a").first().waitFor();
  assert.doesNotMatch(await text(page, "main"), /source:|failing/i, "Now has no device of a source's state");
  await edited(home, played, page);
  // The browser itself notes the token that was refused.
  page.problems = page.problems.filter((it) => !/422/.test(it));
  unproblematic(page);
  await otherKinds(home, played);
  await forReaders(home, played);
  await sourcesInWords(home, played);
  await pricesAhead(home);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** From an empty server to values in named rooms by four inputs; the server asks a maker on this machine. */
async function remoFromNothing() {
  const maker = await new PlayedRemo().start();
  const home = await server("--empty").start();
  const page = await open(home.url, { viewport: { width: 1280, height: 860 } });
  await maker.play(page);
  await show(page, home.url, "connect?half=asks");

  await page.getByRole("button", { name: "Nature Remo" }).click();
  await page.getByLabel("Access token").fill(TOKEN);
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("2 devices answer.").waitFor();
  assert.match(await text(page, "main"), /リビング\s.*Temperature 22\.5[\s\S]*メーター\s.*Power 510/);
  const before = await home.ask("GET", "/devices");
  assert.deepEqual(before.data, [], "a test stores nothing");
  await page.getByRole("button", { name: "Save", exact: true }).click();

  const saved = Date.now();
  await page.getByText("Reading received").waitFor({ timeout: 70_000 });
  const { data: devices } = await home.ask("GET", "/devices?latest=1");
  console.log(`figure  the first values of a source are there ${Math.round((Date.now() - saved) / 1000)} s after it was saved`);
  const known = Object.fromEntries(devices.map(({ device_id, name, room, latest }) => [device_id, [name, room, latest?.metrics.temperature?.value ?? latest?.metrics.current_w?.value]]));
  assert.deepEqual([known.a1, known.b2], [["リビング", "room-a1", 22.5], ["メーター", "room-b2", 510]]);
  const { data: rooms } = await home.ask("GET", "/rooms");
  const names = Object.fromEntries(rooms.map(({ room_id, name }) => [room_id, name]));
  assert.deepEqual([names["room-a1"], names["room-b2"]], ["リビング", "メーター"]);

  await show(page, home.url, "now");
  assert.match(await text(page, "main"), /リビング[\s\S]*22\.5/);
  unproblematic(page);
  maker.stop();
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** A saved source is edited without its secret, paused, and deleted with the rules about it. */
async function edited(home, played, page) {
  await home.ask("PUT", "/channels/phone", { kind: "ntfy", name: "Phone", topic: "roomtide-check-of-the-page", server: "https://ntfy.invalid" });
  await show(page, home.url, "connect?half=asks");
  await page.getByRole("button", { name: "Edit Nature Remo" }).click();
  assert.equal(await page.getByLabel("Access token").getAttribute("placeholder"), "unchanged");
  await page.getByRole("button", { name: "Test" }).click();
  assert.equal(await page.getByLabel("Room of Study (id)").inputValue(), "office");
  await page.getByText("More settings").click();
  await page.getByLabel("There is a smart meter").uncheck();
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByRole("checkbox", { name: /Study/ }).uncheck();
  await page.getByLabel("Tell me when it fails").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: "Pause Nature Remo" }).waitFor();
  const put = played.last("PUT", "/sources/remo");
  assert.deepEqual([put.meter, put.secrets, put.rooms], ["false", ["token"], { a1: { room: "room-a1", name: "リビング" }, b2: null }]);
  const rules = async () => (await home.ask("GET", "/alerts")).data.map(({ device, metric, silent_for }) => [device, metric, silent_for]);
  await stored(home, "/alerts", ({ data }) => data.length === 2);
  assert.deepEqual((await rules()).sort(), [["source:remo", "failing", undefined], ["source:remo", undefined, "4h"]].sort());
  await page.getByRole("button", { name: "Pause Nature Remo" }).click();
  await page.locator("#source-remo").getByText("paused").waitFor();
  assert.equal(played.last("PUT", "/sources/remo").on, false);
  // What is not asked is silent, and nobody is told.
  await stored(home, "/alerts", ({ data }) => data.every((rule) => rule.paused_until));
  await page.getByRole("button", { name: "Resume Nature Remo" }).click();
  await page.getByRole("button", { name: "Pause Nature Remo" }).waitFor();
  await stored(home, "/alerts", ({ data }) => data.every((rule) => !rule.paused_until));
  assert.equal(played.last("PUT", "/sources/remo").on, true);
  page.removeAllListeners("dialog");
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Delete Nature Remo" }).click();
  await page.getByText("No source is asked yet.").waitFor();
  await stored(home, "/alerts", ({ data }) => !data.length);
}

/** A place of the browser, a member that is refused, a maker without a word here, and numbers that are ticked. */
async function otherKinds(home, played) {
  const page = await openSources(home, played, { geolocation: { latitude: 52.5163, longitude: 13.3777 }, permissions: ["geolocation"] });
  const choose = async (name) => {
    await show(page, home.url, "connect?half=asks");
    await page.getByRole("button", { name }).click();
  };
  await choose("Weather");
  await page.getByRole("button", { name: "Where this browser is" }).click();
  await page.waitForFunction(() => document.querySelector("[name=latitude]").value === "52.52");
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByLabel("Room of outdoors (id)").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator("#source-weather").getByText("Weather data by Open-Meteo.com").waitFor();
  assert.deepEqual(played.last("PUT", "/sources/weather"), { kind: "weather", latitude: "52.52", longitude: "13.38", rooms: { outdoors: { room: "outdoors" } } });

  await choose("Electricity price");
  await page.getByLabel("Bidding zone").selectOption("SE3");
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("must be one of DE-LU").waitFor();
  await page.waitForFunction(() => document.activeElement.matches("[name=zone][aria-invalid=true]"));

  await choose("New Maker");
  assert.equal(await page.getByLabel("the PIN of the bridge").getAttribute("type"), "password");

  await choose("Any address with JSON");
  await page.getByLabel("Device (id)").fill("pump");
  await page.getByLabel("Address that answers JSON").fill("https://api.example.org/v1/pump");
  await page.getByLabel("Headers, one a line").fill("x-api-key: {pump_key}\naccept: application/json");
  assert.equal(await page.getByLabel("Secret pump_key").getAttribute("type"), "password");
  await page.getByLabel("Secret pump_key").fill("k-1");
  await examined(page, "an address with JSON");
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByLabel("/flow/tempIn: 31.5").check();
  assert.equal(await page.getByLabel("Metric of /flow/tempIn").inputValue(), "temp_in");
  await page.getByLabel("Metric of /flow/tempIn").fill("temperature");
  await examined(page, "numbers to tick");
  await page.screenshot({ path: join(screenshots, "sources-json-1280.png"), fullPage: true });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator("#source-pump").waitFor();
  assert.deepEqual(played.last("PUT", "/sources/pump"), { kind: "json", url: "https://api.example.org/v1/pump", headers: { "x-api-key": "{pump_key}", accept: "application/json" }, secrets: { pump_key: "k-1" }, metrics: { temperature: "/flow/tempIn" }, rooms: {} });
  await preparedByAnother(home, played, page);
  page.problems = page.problems.filter((it) => !/400/.test(it));
  unproblematic(page);
  await page.context().close();
}

/** Who types a secret into a source that somebody else may have prepared sees where it goes, and says so, before it goes. */
async function preparedByAnother(home, played, page) {
  const pump = played.data.find(({ id }) => id === "pump");
  const evil = { ...pump, url: "https://evil.example.net/v1?k={pump_key}", method: "POST", body: { echo: "{pump_key}" }, time: "/echo", on: false, lacks_secrets: true };
  played.data = played.data.map((source) => source === pump ? evil : source);
  await show(page, home.url, "connect?half=asks");
  await page.getByRole("button", { name: "Edit Any address with JSON" }).click();
  const secret = page.getByLabel("Secret pump_key");
  await secret.waitFor();
  assert.deepEqual([await secret.getAttribute("placeholder"), await secret.evaluate((input) => input.required)], [null, true], "a missing secret is not unchanged");
  assert.match(await text(page, "main"), /method: "POST"[\s\S]*body: \{"echo":"\{pump_key\}"\}[\s\S]*time: "\/echo"[\s\S]*metrics: /);

  const sent = played.sent.length;
  const sure = page.getByLabel("The secret goes to evil.example.net");
  assert.equal(await sure.count(), 0);
  await secret.fill("k-2");
  await sure.waitFor();
  await examined(page, "where a secret goes");
  await page.screenshot({ path: join(screenshots, "sources-prepared-1280.png"), fullPage: true });
  await page.getByRole("button", { name: "Test" }).click();
  assert.equal(played.sent.length, sent, "nothing is sent before it is confirmed");
  await sure.check();
  await page.getByLabel("Address that answers JSON").fill("https://api.example.org/v1/pump?k={pump_key}");
  const right = page.getByLabel("The secret goes to api.example.org");
  assert.equal(await right.isChecked(), false, "another address is confirmed anew");
  await right.check();
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByLabel("/flow/tempIn: 31.5").waitFor();
  assert.deepEqual([played.last("POST", "/test").url, played.last("POST", "/test").secrets], ["https://api.example.org/v1/pump?k={pump_key}", { pump_key: "k-2" }]);
  played.data = played.data.map((source) => source === evil ? pump : source);
}

/** Who may read only sees cards, and on a small phone everything fits. */
async function forReaders(home, played) {
  played.data[0].state = { state: "failing", every: "1h", last_success: "2026-11-28T10:00:00Z", failing_since: "2026-11-29T10:00:00Z", error: "Open-Meteo has no more requests for this address today.", next: new Date(Date.now() + 3_600_000).toISOString(), requests_today: 24 };
  const restored = { state: "waiting", every: "5m", error: "its secret for api.example.org is missing (pump_key)", requests_today: 0 };
  Object.assign(played.data[1], { on: false, state: restored });
  played.mayEdit = false;
  for (const width of [320, 390]) {
    const page = await openSources(home, played, { viewport: { width, height: 800 } });
    await page.getByText("Open-Meteo has no more requests").waitFor();
    await page.getByText("its secret for api.example.org is missing").waitFor();
    for (const name of [/^Edit /, /^Pause /, /^Delete /, "Nature Remo"]) assert.equal(await page.getByRole("button", { name }).count(), 0, String(name));
    await page.getByRole("button", { name: "Add or edit sources" }).waitFor();
    await examined(page, `cards at ${width} px`);
    await page.screenshot({ path: join(screenshots, `sources-cards-${width}.png`), fullPage: true });
    played.mayEdit = true;
    await show(page, home.url, "connect?half=asks&kind=remo");
    await page.getByLabel("Access token").fill("right");
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByLabel("Room of Study (id)").waitFor();
    await examined(page, `a form at ${width} px`);
    await page.screenshot({ path: join(screenshots, `sources-form-${width}.png`), fullPage: true });
    played.mayEdit = false;
    unproblematic(page);
    await page.context().close();
  }
  played.mayEdit = true;
}

/** Tiles, forms and cards of sources have no words but those of the catalogues, in each language. */
async function sourcesInWords(home, played) {
  const page = await open(home.url);
  await played.play(page);
  await bracketed(page);
  const data = [...KINDS.flatMap((kind) => [kind.title, kind.where, kind.credit ?? "", ...kind.members.map(({ hint }) => hint)]), ...played.data.flatMap(({ id, host, state }) => [id, host, state.error ?? ""]), "outdoors", "true", "false", "https://", "x-api-key", "{key}"];
  for (const about of ["", "&kind=remo", "&kind=json", "&source=pump"]) {
    await page.goto(`${home.url}/#connect?half=asks${about}`);
    await page.reload();
    await page.waitForFunction(() => /updated/.test(document.getElementById("status").textContent) && !document.querySelector("[aria-busy]"));
    assert.deepEqual(await unbracketed(page, data.filter(Boolean)), [], about);
  }
  await page.context().close();
  for (const [locale, asks] of [["de-AT", "Roomtide fragt"], ["fr-BE", "Roomtide demande"], ["ja-JP", "Roomtide が取りに行く"]]) {
    const other = await open(home.url, { locale, viewport: { width: 320, height: 800 } });
    await played.play(other);
    for (const about of ["", "&kind=switchbot"]) {
      await other.goto(`${home.url}/#connect?half=asks${about}`);
      await other.reload();
      await other.getByRole("button", { name: asks, pressed: true }).waitFor();
      await other.waitForFunction(() => document.querySelector("section.card") && !document.querySelector("[aria-busy]"));
      await examined(other, `${locale} ${about}`);
      const texts = await other.locator("main").innerText();
      if (locale === "fr-BE") assert.doesNotMatch(texts, /.{0,30}( [:;?!»]|« ).{0,9}/, "spaces at which a line may break");
      await other.screenshot({ path: join(screenshots, `sources-${locale}${about.replace(/\W/g, "-")}.png`), fullPage: true });
    }
    unproblematic(other);
    await other.context().close();
  }
}

/** Prices are drawn beyond now, other metrics are not. */
async function pricesAhead(home) {
  const quarter = 900_000;
  const first = Math.floor(Date.now() / quarter) * quarter;
  const readings = Array.from({ length: 80 }, (_, n) => ({ device_id: "price-de-lu", room: "price", timestamp: new Date(first + (n - 8) * quarter).toISOString(), price: 0.1 + n / 1000 }));
  await home.ask("POST", "/readings", readings);
  const page = await open(home.url);
  await show(page, home.url, "charts/price?metric=price&open=Price");
  const asked = page.requests.filter((it) => /series\?/.test(it) && new URL(it).searchParams.get("metric") === "price").map((it) => new Date(new URL(it).searchParams.get("to")).getTime());
  assert.ok(asked.some((to) => Math.abs(to - Date.now() - 3 * 86_400_000) < 60_000), "three days ahead are asked");
  const rows = await page.locator("#main table", { has: page.locator("caption") }).evaluate((table) => table.rows.length);
  // Of 80 quarters 8 are past; the newest may not be summed up yet.
  assert.ok(rows > 60, `${rows} rows, those ahead too`);
  await page.screenshot({ path: join(screenshots, "price-ahead-1600.png"), fullPage: true });
  page.requests.length = 0;
  await show(page, home.url, "charts/room-a1?metric=temperature");
  assert.ok(page.requests.some((it) => /to=now/.test(it)) && !page.requests.some((it) => /metric=price/.test(it)));
  unproblematic(page);
  await page.context().close();
}

/** A link for others shows its rooms and nothing else. */
async function linkForOthers() {
  const home = await server("--empty", "--auth").start();
  const admin = home.token("admin");
  await home.ask("POST", "/readings", [{ device_id: "hall-air", room: "hall", temperature: 20.5 }, { device_id: "attic-air", room: "attic", temperature: 18.5 }, { device_id: "safe", room: "vault", temperature: 7 }], admin);
  for (const room of ["hall", "attic"]) await home.ask("PATCH", `/rooms/${room}`, { home: "cottage" }, admin);
  const page = await open(home.url);
  await page.goto(`${home.url}/#token=${admin}`);
  await settled(page);
  for (const [what, rooms] of [["room hall", ["hall"]], ["home cottage", ["attic", "hall"]]]) await linked(home, page, what, rooms);
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** Makes a link and opens it as another. */
async function linked(home, page, what, rooms) {
  await show(page, home.url, "connect");
  await page.getByLabel("What").selectOption(what);
  await page.getByLabel("For whom").fill("Anna");
  await page.getByRole("button", { name: "Make the link" }).click();
  const link = await text(page, "[aria-label=\"Lines for Link\"]");
  await page.getByText("token revoke ID ends it").waitFor();
  await examined(page, "a link for others");
  const other = await open(home.url);
  await other.goto(link);
  await settled(other);
  assert.equal(other.url(), `${home.url}/#now`, "the token is gone from the address");
  await other.getByRole("link", { name: "hall" }).first().waitFor();
  assert.doesNotMatch(await text(other, "main"), /vault|safe/);
  for (const view of ["energy", "charts", "charts/hall", "year", "heat"]) {
    await show(other, home.url, view);
    assert.doesNotMatch(await text(other, "main"), /vault|safe/, view);
    assert.equal((await text(other, "nav")).trim().split(/\s+(?=[A-Z])/).join(), "Now,Energy,Charts,Year,Heat map");
  }
  await examined(other, "what a link shows");
  // The file of all rooms has those of the link.
  await show(other, home.url, "charts?metric=temperature");
  const download = other.waitForEvent("download");
  await other.getByRole("button", { name: "CSV" }).click();
  const [head, ...rows] = (await readFile(await (await download).path(), "utf8")).trim().split("\n");
  assert.match(head, /^timestamp,room_id,.*temperature\.mean/);
  assert.deepEqual([...new Set(rows.map((it) => it.split(",")[1]))], rooms);
  unproblematic(other);
  await other.context().close();
}

function euros(amount) {
  return amount.toLocaleString("en-GB", { style: "currency", currency: "EUR" });
}

/** Enters each preset, and sees last month's bill of it and the same months by another tariff. */
async function whatItCost() {
  const home = await server("--empty", "--auth").startWith(monthsWithPrices());
  const admin = home.token("admin");
  await home.ask("POST", "/readings", pricesOfTomorrow(), admin);
  await home.ask("PATCH", "/rooms/cellar", { home: "cottage" }, admin);
  const page = await open(home.url);
  await page.goto(`${home.url}/#token=${admin}`);
  await settled(page);
  const month = await page.evaluate(() => [-1, 0].map((months) => new Date(new Date().getFullYear(), new Date().getMonth() + months, 1).toISOString()));
  const view = `energy?span=month&d=${new Date(Date.parse(month[0]) + 5 * 86_400_000).toISOString().slice(0, 10)}`;
  const lastMonth = `from=${month[0]}&to=${month[1]}&tz=Europe/Brussels&every=1mo`;
  await show(page, home.url, view);
  for (const [n, { button, fields, lines }] of PRESETS.entries()) {
    // The first is chosen on the card, the others in the form.
    if (n) await page.getByRole("button", { name: "Another tariff" }).click();
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.getByRole("button", { name: button, pressed: true }).waitFor();
    assert.ok((await page.locator(".prices :is(input, select)").count()) <= 12, button);
    for (const [name, value] of Object.entries(fields)) {
      const field = page.locator(`.prices [name="${name}"]`);
      if (await field.evaluate((it) => it.tagName === "SELECT")) await field.selectOption(value);
      else await field.fill(value);
    }
    await examined(page, `the form: ${button}`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await settled(page);
    const id = n ? `electricity-${n + 1}` : "electricity";
    const stored = await home.ask("GET", `/tariffs/${id}`, undefined, admin);
    assert.deepEqual([stored.currency, stored.meters, stored.lines], ["EUR", [{ device: "meter" }], lines], button);
    const { bills: [bill] } = await home.ask("GET", `/cost?${lastMonth}&tariff=${id}`, undefined, admin);
    const rows = await page.locator(".bill tbody tr").allInnerTexts();
    assert.equal(rows.length, bill.lines.length + 1, rows.join());
    for (const [place, line] of bill.lines.entries()) assert.ok(rows[place].startsWith(line.name) && rows[place].endsWith(euros(line.amount)), `${rows[place]} is not ${JSON.stringify(line)}`);
    assert.match(rows.at(-1), new RegExp(`Due\\s*€${bill.due}`));
    if (!n) await showsDueElsewhere(home, page, view, stored, admin);
  }
  await showsMoney(home, page, view, lastMonth, admin);
  await saysWhatLacks(home, page, view, lastMonth, admin);
  await editsTariff(home, page, view, admin);
  await noMoneyForOthers(home, page, view);
  unproblematic(page);
  await page.context().close();
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** A tariff in another time zone: a month is that of its clock, so it has what is due, and each day has its money. */
async function showsDueElsewhere(home, page, view, tariff, admin) {
  const { version } = await home.ask("PUT", "/tariffs/electricity", { ...tariff, tz: "Asia/Tokyo" }, admin);
  const { data, bills: [bill] } = await home.ask("GET", `/cost?${monthOf(view)}&every=1d`, undefined, admin);
  await page.reload();
  await settled(page);
  assert.match(await text(page, ".bill tbody tr:last-child"), new RegExp(`Due\\s*€${bill.due}`));
  await page.getByText("kWh by day as a table").click();
  const days = (await text(page, "[role=region][aria-label=\"kWh by day\"]")).split("\n").filter((line) => line.includes("€"));
  assert.equal(days.length, data.length);
  assert.ok(days[9].includes(euros(data[9].amount)), `${days[9]} is not ${JSON.stringify(data[9])}`);
  await home.ask("PUT", "/tariffs/electricity", { ...tariff, version }, admin);
}

/** The dates of the month that a view shows. */
function monthOf(view) {
  const [year, month] = /d=(\d+)-(\d+)/.exec(view).slice(1).map(Number);
  const first = (months) => new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
  return `from=${first(0)}&to=${first(1)}`;
}

/** The same months by another tariff, what is missing, the prices ahead, and money in figures and bars. */
async function showsMoney(home, page, view, lastMonth, admin) {
  await show(page, home.url, `${view}&bill=electricity-3`);
  await page.getByText(new RegExp(`• Energy has no price from .*${MISSING_HOUR}:00 to .*: 0\\.50 kWh are not in the sum`)).waitFor();
  await page.getByRole("heading", { name: "Price of Energy: today and tomorrow" }).waitFor();
  await page.getByText(/Cheapest from now on:/).waitFor();
  // On the first day of a month nothing is foretold.
  const foretold = await page.getByRole("heading", { name: "This month at this rate" }).count();
  assert.equal(await page.locator(".tile .money").count(), 2 + foretold);
  assert.match(await page.locator(".tile").first().innerText(), /kWh\s+€[\d,.]+ •/);
  await page.getByText("kWh by day as a table").click();
  assert.match(await page.getByRole("region", { name: "kWh by day" }).innerText(), /12\t€\d\d\.\d\d •/);
  await page.getByLabel("The same months by another tariff").selectOption("electricity");
  await settled(page);
  const { data: [mine, other] } = await home.ask("GET", `/cost?${lastMonth}&tariff=electricity-3,electricity`, undefined, admin);
  const row = await page.locator(".compare tbody tr").nth(-2).innerText();
  const by = other.amount - mine.amount;
  assert.ok(row.includes(`${euros(mine.amount)} •\t${euros(other.amount)}\t${by > 0 ? "+" : ""}${euros(by)}`), row);
  await examined(page, "what it cost");
  await page.screenshot({ path: join(screenshots, "cost-1600.png"), fullPage: true });
  for (const [locale, words] of [["de-AT", "Was es gekostet hat"], ["fr-BE", "Ce que cela a coûté"], ["ja-JP", "料金"]]) {
    const other = await open(home.url, { locale, viewport: { width: 320, height: 800 } });
    await other.goto(`${home.url}/#token=${admin}`);
    await other.waitForFunction(() => location.hash === "#now");
    for (const about of [`${view}&bill=electricity-3&than=electricity`, "energy?tariff=electricity-2"]) {
      await other.goto(`${home.url}/#${about}`);
      await other.getByRole("heading", { name: words, exact: true }).waitFor();
      await other.waitForFunction(() => document.querySelector(".bill, .tariff") && !document.querySelector("[aria-busy]"));
      await examined(other, `${locale} ${about}`);
    }
    await other.screenshot({ path: join(screenshots, `cost-${locale}.png`), fullPage: true });
    unproblematic(other);
    await other.context().close();
  }
}

/** Each kind of what is missing, in a sentence; and no row claims a mean price. */
async function saysWhatLacks(home, page, view, lastMonth, admin) {
  await home.ask("POST", "/readings", silentPump(), admin);
  await home.ask("PATCH", "/devices/pump", { metrics: { current_w: { hold: "15m" } } }, admin);
  await home.ask("PUT", "/tariffs/incomplete", INCOMPLETE.tariff, admin);
  const { data, incomplete } = await home.ask("GET", `/cost?${lastMonth}&tariff=incomplete`, undefined, admin);
  assert.deepEqual([...new Set(incomplete.map(({ what }) => what))].sort(), ["days", "energy", "meter", "spread"]);
  assert.deepEqual(data.filter(({ mean }) => mean !== undefined), []);
  await page.reload();
  await show(page, home.url, `${view}&bill=incomplete`);
  for (const sentence of INCOMPLETE.sentences) await page.getByText(sentence).first().waitFor();
  await home.ask("DELETE", "/tariffs/incomplete", undefined, admin);
}

/** New prices from a day; lines without a field stay; a tariff that somebody else has changed. */
async function editsTariff(home, page, view, admin) {
  const put = async (change) => {
    const before = await home.ask("GET", "/tariffs/electricity", undefined, admin);
    return home.ask("PUT", "/tariffs/electricity", { ...before, ...change(before) }, admin);
  };
  await put(({ lines }) => ({ lines: [...lines, { name: "Bonus", per: "year", price: -50, round: "down" }] }));
  await show(page, home.url, `${view}&bill=electricity`);
  await page.getByRole("button", { name: "Edit Electricity", exact: true }).click();
  await page.getByLabel("New prices from").fill("2026-01-01");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.locator("[name=price]").fill("31");
  await put(() => ({ name: "Electricity of others" }));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Somebody has changed this tariff meanwhile.").waitFor();
  await page.getByRole("button", { name: "Reload" }).click();
  await page.waitForFunction(() => document.querySelector("[name=price]")?.value === "0.3");
  // What is no JSON is not passed over.
  await page.getByText("More settings").click();
  const json = page.getByLabel("The whole tariff as JSON.");
  const whole = await json.inputValue();
  await json.fill(whole.slice(1));
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".tariff [role=alert] .warn").waitFor();
  await json.fill(whole);
  await page.getByLabel("New prices from").fill("2026-01-01");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.locator("[name=price]").fill("31");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("looks like a price in hundredths").waitFor();
  const { lines } = await home.ask("GET", "/tariffs/electricity", undefined, admin);
  const [old, fresh] = lines.filter(({ name }) => name === "Energy");
  assert.deepEqual([old.price, fresh.price, fresh.from], [0.3, 31, "2026-01-01"]);
  assert.deepEqual(lines.filter(({ name }) => name === "Bonus"), [{ name: "Bonus", per: "year", price: -50, round: "down" }, { name: "Bonus", from: "2026-01-01", per: "year", price: -50, round: "down" }]);
  // The browser itself notes the request that was refused.
  page.problems = page.problems.filter((it) => !it.includes("409"));
}

/** A link for others shows no money, and asks for none. */
async function noMoneyForOthers(home, page, view) {
  await show(page, home.url, "connect");
  await page.getByLabel("What").selectOption("home cottage");
  await page.getByLabel("For whom").fill("Anna");
  await page.getByRole("button", { name: "Make the link" }).click();
  const link = await text(page, "[aria-label=\"Lines for Link\"]");
  const other = await open(home.url);
  await other.goto(link);
  await settled(other);
  await show(other, home.url, view);
  assert.doesNotMatch(await text(other, "main"), /€|What it cost/);
  assert.deepEqual(other.requests.filter((it) => /cost\?|tariffs/.test(it) && !it.includes("/assets/")), []);
  unproblematic(other);
  await other.context().close();
}

/** A rule from a chart, with a look back; a ready one by a tap; pause; a channel that is tested. */
async function alerted(home) {
  const page = await open(home.url);
  await show(page, home.url, "charts/bath?metric=humidity");
  await page.getByRole("button", { name: "Alert me" }).click();
  await page.getByText(/In the last 7 days it would have told/).waitFor();
  const limit = page.getByRole("slider", { name: "Limit" });
  const before = Number(await limit.getAttribute("aria-valuenow"));
  await limit.press("ArrowDown");
  await page.waitForFunction((it) => Number(document.querySelector("[role=slider]").getAttribute("aria-valuenow")) < it, before);
  await page.getByLabel("Limit, %").fill("70");
  await page.getByLabel("For minutes").fill("30");
  await page.getByText(/it would have told once/).waitFor();
  await examined(page, "a rule is written");
  await page.screenshot({ path: join(screenshots, "rule-1600.png"), fullPage: true });
  await page.getByRole("button", { name: "Save the alert" }).click();
  const rules = page.locator(".rules").first();
  await rules.getByText("bath, mean: Humidity above 70 %").first().waitFor();
  for (const name of ["Tell me: window open", "Tell me: lost: weak battery"]) await page.getByRole("button", { name }).waitFor();
  const damp = page.getByRole("listitem").filter({ hasText: "bath damp" });
  await damp.getByText("When it would have fired").click();
  await damp.getByText("In the last 7 days it would have told nothing.").waitFor();
  await page.getByRole("button", { name: /Tell me: th-kitchen silent/ }).click();
  await rules.getByText("th-kitchen: is silent").waitFor();
  await page.getByRole("button", { name: /Pause for a day: th-kitchen silent/ }).click();
  await rules.getByText(/paused until/).waitFor();
  await page.getByRole("button", { name: "ntfy", exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill("Phone");
  await page.getByLabel("Topic").fill("roomtide-check-of-the-page");
  await page.getByLabel("Server, if you like").fill("https://ntfy.invalid");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: "Send a test: Phone" }).click();
  await page.getByText("A test is on its way").waitFor();
  await examined(page, "rules and a channel");
  await page.screenshot({ path: join(screenshots, "alerts-1600.png"), fullPage: true });
  // A link whose episode is over says so.
  await page.goto(`${home.url}/#acknowledge=freezer,device:f1,Zk3`);
  await page.reload();
  await page.getByRole("button", { name: "Acknowledge" }).click();
  await page.locator(".warn").waitFor();
  page.problems = page.problems.filter((it) => !/40[049]/.test(it));
  unproblematic(page);
}

/** With 200 devices in 40 rooms no view asks for more than 300 KB. */
async function largeHouse() {
  const home = await server("--empty").start();
  const now = Math.floor(Date.now() / 900_000) * 900_000;
  for (let n = 0; n < 96; n += 4) {
    const readings = Array.from({ length: 800 }, (_, it) => ({ device_id: `d${it % 200}`, room: `r${it % 40}`, timestamp: new Date(now - (n + Math.floor(it / 200)) * 900_000).toISOString(), temperature: 18 + (it % 7), humidity: 40 + (it % 20), ...(it % 4 === 0 && { current_w: 50 }) }));
    await home.ask("POST", "/readings", readings);
  }
  const page = await open(home.url);
  page.setDefaultTimeout(60_000);
  let bytes = 0;
  page.on("response", async (response) => { bytes += Number((await response.allHeaders().catch(() => ({})))["content-length"] ?? 0); });
  for (const view of ["now", "energy", "charts", "charts?span=year", "year", "heat", "device"]) {
    bytes = 0;
    await show(page, home.url, view);
    await page.waitForTimeout(500);
    console.log(`figure  200 devices, ${view}: ${Math.round(bytes / 1024)} KB`);
    assert.ok(bytes > 0 && bytes <= 300 * 1024, `${view} asks for ${bytes} bytes`);
  }
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** With three years of data no view asks for more than 300 KB, or fails: each span, near and far, and compared. */
async function threeYears() {
  const readings = [];
  const now = Math.floor(Date.now() / 900_000) * 900_000;
  let kwh = 1000;
  // Quarters of an hour for the last 40 days, before them every third hour, as a history of a recorder is.
  for (let at = now - 3 * 365 * 86_400_000, step = 0; at <= now; at += step) {
    step = at < now - 40 * 86_400_000 ? 10_800_000 : 900_000;
    const timestamp = new Date(at).toISOString();
    // The hottest day is 15 July, about noon.
    const isHot = /-07-15T(09|1[0-4])/.test(timestamp);
    const season = Math.cos(((at / 86_400_000 - 200) / 365.25) * 2 * Math.PI);
    const watts = 300 - season * 100;
    kwh += (watts * step) / 3.6e9;
    readings.push({ device_id: "meter", room: "hall", timestamp, current_w: Math.round(watts), cumulative_kwh_p: Number(kwh.toFixed(4)) });
    readings.push({ device_id: "th-kitchen", room: "kitchen", timestamp, temperature: Number((20 + season * 3).toFixed(2)), humidity: 45 });
    readings.push({ device_id: "th-out", room: "garden", timestamp, temperature: Number((10 + season * 10 + (isHot ? 5 : 0)).toFixed(2)), humidity: 80 });
  }
  const home = await server("--empty").startWith(readings);
  await home.ask("PATCH", "/rooms/garden", { outside: true });
  const page = await open(home.url);
  page.setDefaultTimeout(60_000);
  const sizes = [];
  page.on("response", (response) => sizes.push(response.allHeaders().then((it) => Number(it["content-length"] ?? 0), () => 0)));
  const far = `${new Date().getFullYear() - 2}-06-15`;
  const views = ["now", "device", "alerts", "connect", "year", "year?metric=temperature", `year?metric=temperature&room=garden&d=${far}`, "heat", `heat?d=${far}&span=month`];
  for (const span of ["day", "week", "month", "year"]) {
    views.push(`energy?span=${span}&vs=year`, `energy?d=${far}&span=${span}`);
    views.push(`charts?span=${span}&vs=year`, `charts/kitchen?d=${far}&span=${span}`, `device/meter?d=${far}&span=${span}&vs=year`);
  }
  for (const view of views) {
    sizes.length = 0;
    await show(page, home.url, view);
    await page.waitForTimeout(300);
    const bytes = (await Promise.all(sizes)).reduce((sum, it) => sum + it, 0);
    console.log(`figure  three years, ${view}: ${Math.round(bytes / 1024)} KB`);
    assert.ok(bytes > 0 && bytes <= 300 * 1024, `${view} asks for ${bytes} bytes`);
    assert.deepEqual(await page.locator("main .warn, #alert p").filter({ hasNotText: /Estimated|The history begins/ }).allInnerTexts(), [], view);
    assert.doesNotMatch(await text(page, "main"), /No values in this range|No energy|NaN|undefined|Infinity/, view);
  }
  // The hottest day of a year that is over, and when the history begins.
  await show(page, home.url, `year?metric=temperature&room=garden&d=${far}`);
  const hottest = (await text(page, "main li:first-of-type")).replace(/[\u2068\u2069]/g, "");
  assert.match(hottest, new RegExp(`^Hottest day: \\w+, 15 Jul ${far.slice(0, 4)}, 25\\.0 °C`));
  await show(page, home.url, "now");
  const began = new Date(now - 3 * 365 * 86_400_000);
  assert.match(await text(page, "main"), new RegExp(`The history begins .*${began.getUTCFullYear()}`));
  // The base load of last night and of the night a month ago, and this month against the same days of the last one.
  const local = (months, days, hours) => page.evaluate(([months, days, hours]) => { const it = new Date(); return new Date(it.getFullYear(), it.getMonth() + months, days, hours).toISOString(); }, [months, days, hours]);
  const night = async (months) => {
    const [from, to] = await page.evaluate((months) => {
      const last = new Date();
      // Before six the night is not over, and last night may be of the month before.
      if (last.getHours() < 6) last.setDate(last.getDate() - 1);
      return [0, 6].map((hour) => new Date(last.getFullYear(), last.getMonth() + months, last.getDate(), hour).toISOString());
    }, months);
    const { data } = await home.ask("GET", `/energy?every=30m&from=${from}&to=${to}`);
    return Math.round(Math.min(...data.map((it) => it.kwh ?? Infinity)) * 2000);
  };
  assert.match(await text(page, "main"), new RegExp(`Base load last night: ${await night(0)} W .*; a month ago ${await night(-1)} W`));
  await show(page, home.url, "energy");
  const days = await home.ask("GET", `/energy?every=1d&tz=Europe/Brussels&from=${await local(-1, 1, 0)}`);
  const start = await local(0, 1, 0);
  const [own, before] = [days.data.filter((it) => it.timestamp >= start), days.data.filter((it) => it.timestamp < start)];
  const until = Math.min(own.length - 1, before.length);
  const sum = (rows) => rows.reduce((sum, it) => sum + it.kwh, 0).toFixed(2);
  const month = await page.locator(".tile", { has: page.getByRole("heading", { name: "This month so far" }) }).innerText();
  assert.ok(month.includes(`${sum(own)} kWh`), `${sum(own)}: ${month}`);
  // On the first of a month there is no whole day yet.
  if (until > 0) assert.ok(month.includes(`${sum(before.slice(0, until))} kWh`) && month.includes(`${sum(own.slice(0, until))} kWh`), month);
  unproblematic(page);
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** A page of the origin that the owner named shows this one in a frame; a page of another one does not. */
async function inFrame() {
  const html = (_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><title>Frame</title><iframe src="${home.url}/#now" width="800" height="600"></iframe>`);
  const hosts = [createServer(html), createServer(html)];
  const origins = await Promise.all(hosts.map((it) => new Promise((resolve) => it.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${it.address().port}`)))));
  const home = server("--empty", "--frame-ancestors", origins[0]);
  try {
    await home.start();
    await home.ask("POST", "/readings", { device_id: "hall-air", room: "hall", temperature: 20.5 });
    const page = await (await browser.newContext({ locale: "en-GB" })).newPage();
    const refused = [];
    page.on("console", (message) => message.text().includes("frame-ancestors") && refused.push(message.text()));
    await page.goto(origins[0]);
    await page.frameLocator("iframe").getByRole("link", { name: "hall" }).first().waitFor({ timeout: 30_000 });
    assert.deepEqual(refused, [], "the owner allowed it");
    await page.goto(origins[1]);
    await page.waitForTimeout(2_000);
    assert.equal(refused.length, 1, "the browser refuses it");
    assert.equal(await page.frameLocator("iframe").getByRole("link", { name: "hall" }).count(), 0);
    await page.context().close();
  } finally {
    for (const it of hosts) it.close();
  }
  await home.remove();
  servers.splice(servers.indexOf(home), 1);
}

/** What a person wants to know, read from the page and asked from the API. */
async function answers(home, page) {
  await show(page, home.url, "now");
  const { data } = await home.ask("GET", "/devices?latest=1");
  const values = data.filter((it) => it.latest.metrics.temperature).map((it) => [it.latest.metrics.temperature.value, it.name.replace(" thermometer", "")]);
  const [coldest] = values.filter(([, name]) => name !== "Outside, north").sort(([a], [b]) => a - b);
  assert.ok((await text(page, ".summary")).startsWith(`Coldest: \u2068${coldest[1]}\u2069, ${coldest[0].toFixed(1)} °C`), coldest);
  assert.match(await text(page, "main"), /12 of 12 devices report/);
  assert.match(await text(page, "main"), /Biggest consumer: (Appliances|Lights)/, "of those behind the meter");
  await show(page, home.url, "energy");
  const midnight = (days) => page.evaluate((it) => { const now = new Date(); return new Date(now.getFullYear(), now.getMonth(), now.getDate() + it).toISOString(); }, days);
  const { total_kwh } = await home.ask("GET", `/energy?from=${await midnight(-1)}&to=${await midnight(0)}`);
  const yesterday = page.locator(".tile", { has: page.getByRole("heading", { name: "Yesterday" }) });
  assert.ok((await yesterday.innerText()).includes(`${total_kwh.toFixed(2)} kWh`), `${total_kwh}: ${await yesterday.innerText()}`);
  assert.match(await text(page, "main"), /\d W\s+mean of the half hour from/);
  // The table behind a chart, by the keyboard.
  await page.getByText("as a table").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("cell", { name: /\d{2}:00/ }).first().waitFor();
  await page.getByRole("button", { name: "Year", exact: true }).click();
  await page.getByRole("button", { name: "Year", exact: true, pressed: true }).waitFor();
  await settled(page);
}

async function zoomed(home, page) {
  await show(page, home.url, "charts/kitchen");
  const card = page.locator("[data-metric=temperature]");
  const chart = card.locator(".u-over");
  const box = await chart.boundingBox();
  page.requests.length = 0;
  await page.mouse.move(box.x + box.width * 0.4, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.55, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("button", { name: "Zoom out" }).waitFor();
  await settled(page);
  assert.ok(page.requests.some((it) => it.includes("/rooms/kitchen/readings")), "near enough, it shows readings");
  const download = page.waitForEvent("download");
  await card.getByRole("button", { name: "CSV" }).click();
  const csv = await readFile(await (await download).path(), "utf8");
  assert.match(csv.split("\n")[0], /timestamp.*temperature/);
  await page.getByRole("button", { name: "Zoom out" }).click();
  await page.getByRole("button", { name: "Year", exact: true }).click();
  await settled(page);
}

/** A chart that begins before the end of hourly means says so. */
async function hourlyMeans(home, page) {
  const { data } = await home.ask("GET", "/devices?room=kitchen");
  const { device_id } = data.find((/** @type {any} */ it) => it.metrics.temperature);
  const note = page.locator("[data-metric=temperature] .hourly");
  const until = new Date(Date.now() - 3 * 86_400_000).toISOString();
  await home.ask("PATCH", `/devices/${device_id}`, { metrics: { temperature: { hourly_until: until } } });
  await show(page, home.url, "charts/kitchen");
  assert.equal(await note.count(), 0, "24 hours begin later");
  await page.getByRole("button", { name: "Year", exact: true }).click();
  await settled(page);
  assert.match(await note.innerText(), /^Hourly means only until .*20\d\d/);
  await home.ask("PATCH", `/devices/${device_id}`, { metrics: { temperature: { hourly_until: null } } });
}

async function sampleHome(home) {
  const page = await open(home.url);
  await check("its answers", () => answers(home, page));
  await check("charts: zoom, readings, CSV", () => zoomed(home, page));
  await check("charts: hourly means only", () => hourlyMeans(home, page));
  unproblematic(page);
  for (const view of VIEWS) {
    await check(`${view}: ${WIDTHS.join(", ")} px, light and dark`, async () => {
      await show(page, home.url, view);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const width of WIDTHS) {
          await page.setViewportSize({ width, height: 900 });
          // Charts are drawn again, in other colours and of another width.
          await page.waitForTimeout(200);
          await settled(page);
          await examined(page, `${view} at ${width} ${colorScheme}`);
          await page.screenshot({ path: join(screenshots, `${view.replace("/", "-")}-${width}-${colorScheme}.png`), fullPage: true });
        }
      }
    });
  }
  unproblematic(page);
  await check("units of a country", async () => {
    for (const [locale, pattern] of [["en-US", /°F/], ["de-DE", /\d,\d °C/]]) {
      const page = await open(home.url, { locale });
      await show(page, home.url, "now");
      assert.match(await text(page, "main"), pattern, locale);
      unproblematic(page);
    }
  });
}

async function figures(home) {
  const html = await (await fetch(home.url, { headers: { "accept-encoding": "gzip" } })).text();
  const later = [...html.matchAll(/"later" content="(assets\/[^"]+)"/g)].map(([, name]) => name);
  const named = [...html.matchAll(/"(assets\/[^"]+)"/g)].map(([, name]) => name);
  const catalogue = named.find((name) => name.endsWith(".words.js")).replace("words.js", "fr.js");
  const weight = async (names) => {
    let bytes = 0;
    for (const name of new Set(names)) {
      const head = await fetch(`${home.url}/${name}`, { method: "HEAD", headers: { "accept-encoding": "gzip" } });
      bytes += Number(head.headers.get("content-length"));
    }
    return bytes;
  };
  const bytes = { first: await weight(["", catalogue, ...named.filter((name) => !later.includes(name))]), later: await weight(later) };
  console.log(`figure  the page and the files with it: ${bytes.first} bytes compressed, ${bytes.later} bytes later`);
  assert.ok(bytes.first > 20_000 && bytes.first <= MAX_BYTES.first && bytes.later <= MAX_BYTES.later, JSON.stringify(bytes));
  const page = await open(home.url);
  for (const view of VIEWS) {
    await show(page, home.url, view);
    page.requests.length = 0;
    await page.reload();
    await settled(page);
    const asked = page.requests.filter((it) => !it.includes("/assets/") && it.replace(/#.*/, "") !== `${home.url}/`);
    const charts = await page.locator(".plot, .heat").count();
    console.log(`figure  ${view}: ${asked.length} requests, ${charts} charts and maps`);
    const others = asked.filter((it) => !/\/(devices|rooms)\?/.test(it));
    // Energy asks for the tariffs, too. Lines of two metrics, alerts, steps and those of two meters behind it, two days, six before
    // them and a night, six rooms since when, and the last hour of the meter.
    const most = { energy: 8, now: 17, device: 1, alerts: 2 }[view] ?? charts + (view.startsWith("device/") ? 4 : view.startsWith("charts") ? 1 : 0);
    assert.ok(others.length <= most, `${view} asks ${others.join(" ")}`);
  }
  await show(page, home.url, "charts/kitchen");
  page.requests.length = 0;
  const start = Date.now();
  await page.getByLabel("Metric").selectOption("temperature");
  await page.getByRole("button", { name: "Year", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll("canvas").length === 1 && !document.querySelector("[aria-busy]"));
  const series = page.requests.filter((it) => it.includes("every=1d"));
  console.log(`figure  first chart of a year: ${Date.now() - start} ms, ${series.length} request`);
  assert.equal(series.length, 1);
  unproblematic(page);
}

try {
  const sample = server();
  const filled = sample.start("Try, in another terminal");
  filled.catch(() => {});
  let odd;
  await check("an empty home and its first reading", async () => { odd = await emptyHome(); });
  await check("rooms of several sensors, power behind a meter, the list of silent devices", () => roomsOfMany(odd));
  await check("a freezer is no part of its room", () => freezer(odd));
  await check("history that is still being summed up", () => summingUp(odd));
  await check("names that are code, silence, a weak battery, a suspect step, edits", () => oddHome(odd));
  await check("ten plugs, a copy and a roof: one question", houseOfMeters);
  let plugs;
  await check("a house of plugs is stored", async () => { plugs = await houseOfPlugs(); });
  await check("where it went; what is chosen is in the address", () => whereItWent(plugs));
  await check("ten questions", () => tenQuestions(plugs));
  await check("notes and steps", () => annotated(plugs));
  await check("words: catalogues and languages", () => inWords(plugs));
  await check("a picture, print", () => pictured(plugs));
  await check("alerts: from a chart, ready, paused, a channel", () => alerted(plugs));
  await check("without its server", () => withoutServer(plugs));
  await check("connect: a token, a code, a name", connected);
  await check("sources: a tile, a token, a test, a card; prices ahead", sourceAsked);
  await check("sources: a maker from nothing by four inputs", remoFromNothing);
  await check("what it cost: four presets, their bills, another tariff, prices ahead; no money for a link", whatItCost);
  await check("a link for others", linkForOthers);
  await check("200 devices in 40 rooms", largeHouse);
  await check("three years", threeYears);
  await check("a frame", inFrame);
  await check("the server goes away and comes back, is busy, is out of reach", () => awayAndBack(odd));
  await check("tokens: none, wrong, kept, an admin's", tokens);
  await check("readings are stored at another address", () => twoAddresses(false));
  await check("the same with tokens; a link brings one", () => twoAddresses(true));
  await check("500 devices", manyDevices);
  await check("the sample home is stored", () => filled);
  await check("four requests at once", () => fourAtOnce(sample));
  await sampleHome(sample);
  await check("figures", () => figures(sample));
  console.log(`all is well, after ${Math.round((Date.now() - started) / 1000)} s; screenshots in ${screenshots}`);
} finally {
  await browser.close();
  await Promise.all(servers.map((it) => it.remove().catch(() => {})));
}
