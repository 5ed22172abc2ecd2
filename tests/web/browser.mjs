// The system's Chromium, driven by the package playwright-core in a folder of tools. Shows no page itself.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Each view of the page, as its address has it. */
export const VIEWS = ["now", "energy", "charts", "charts/kitchen", "year", "heat", "device", "device/meter", "alerts", "connect"];

/** @param {string} tools */
export function launched(tools) {
  const { chromium } = createRequire(join(tools, "package.json"))("playwright-core");
  const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));
  return chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
}

/** Waits until a page shows what it asked for. */
export async function settled(page) {
  await page.waitForFunction(() => /^(updated|aktualisiert)/.test(document.getElementById("status").textContent) && !document.querySelector("[aria-busy]"), null, { timeout: 120_000 });
}
