// The page of a deployed system in Chromium: `node deployed.mjs URL TOKEN TOOLS ROOM`. An empty TOKEN: the address has
// it. Changes nothing.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [url, token, tools, room] = process.argv.slice(2);
const { chromium } = createRequire(join(tools, "package.json"))("playwright-core");
const path = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((it) => existsSync(it));
const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(url);
  if (token) {
    await page.getByRole("dialog").getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Use it" }).click();
  }
  await page.locator("main").getByRole("link", { name: room, exact: true }).first().waitFor();
  if (page.url().includes("token")) throw new Error("the address still has the token");
} finally {
  await browser.close();
}
