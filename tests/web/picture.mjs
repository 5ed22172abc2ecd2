// The picture of the page for the documents: `node picture.mjs PROGRAM TOOLS FILE`. Checks nothing.
//
// TOOLS is a folder with the package playwright-core; Chromium is the system's. Fills a sample home first.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { Server } from "./server.mjs";

const [program, tools, file] = process.argv.slice(2);
const { chromium } = createRequire(join(tools, "package.json"))("playwright-core");
const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((it) => existsSync(it));
const home = new Server(program, []);
const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
try {
  await home.start("Try, in another terminal");
  const page = await browser.newPage({ viewport: { width: 1280, height: 660 }, locale: "en-GB", timezoneId: "Europe/Brussels", colorScheme: "light" });
  await page.goto(home.url);
  // The rollups of the sample follow its readings.
  await page.waitForFunction(() => /^updated/.test(document.getElementById("status").textContent) && !document.querySelector("[aria-busy]"), null, { timeout: 240_000 });
  await page.waitForTimeout(60_000);
  await page.reload();
  await page.waitForFunction(() => /^updated/.test(document.getElementById("status").textContent) && !document.querySelector("[aria-busy]"), null, { timeout: 120_000 });
  await page.screenshot({ path: file });
} finally {
  await browser.close();
  await home.remove();
}
