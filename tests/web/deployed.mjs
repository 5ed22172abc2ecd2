// The page of a deployed system in Chromium: `node deployed.mjs URL TOKEN TOOLS ROOM`. An empty TOKEN: the address has
// it. Changes nothing.

import { launched } from "./browser.mjs";

const [url, token, tools, room] = process.argv.slice(2);
const browser = await launched(tools);
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
