// How soon the page shows the first room to somebody who opens it for the first time, and the first chart:
// `node page.mjs URL TOOLS ROUNDS` prints two lines of milliseconds. Starts no server.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [url, tools, rounds] = process.argv.slice(2);
const { chromium } = createRequire(join(tools, "package.json"))("playwright-core");
const path = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((it) => existsSync(it));
const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });

/** The milliseconds from the start of the navigation until an element that the selector finds is in a fresh browser. */
async function until(address, selector) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.addInitScript((wanted) => {
    const look = () => { if (document.querySelector(wanted)) window.seen ??= performance.now(); };
    new MutationObserver(look).observe(document, { childList: true, subtree: true });
  }, selector);
  await page.goto(address);
  await page.waitForFunction(() => window.seen);
  const took = await page.evaluate(() => window.seen);
  await context.close();
  return Math.round(took);
}

try {
  const views = [[`${url}#now`, ".line.room a, .tile a"], [`${url}#device/sensor-1`, "canvas"]];
  for (const [address, selector] of views) {
    const taken = [];
    for (let n = 0; n < Number(rounds); n++) taken.push(await until(address, selector));
    console.log(taken.join(" "));
  }
} finally {
  await browser.close();
}
