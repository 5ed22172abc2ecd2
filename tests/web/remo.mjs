// A played Nature Remo with a smart meter on this machine, and the way from the page to it. Opens no browser.

import { createServer } from "node:http";

export const TOKEN = "the-token-of-a-check";

export class PlayedRemo {
  /** Listens on any free port of the loopback. */
  async start() {
    this.server = createServer((request, response) => {
      const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
      response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
      response.end(JSON.stringify(isKnown ? devices() : { code: 401001, message: "Unauthorized" }));
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", () => resolve(null)));
    this.url = `http://127.0.0.1:${this.server.address().port}/1/devices`;
    return this;
  }

  /**
   * Sends what the page says of Nature Remo to the server with the address of this maker: the real one is https with a
   * public certificate, which nobody can play. The token, the rooms and the reader are those of Nature Remo.
   */
  async play(page) {
    await page.route(/\/sources\/(test|remo)$/, async (route) => {
      const body = route.request().postDataJSON();
      if (body?.kind !== "remo") return route.continue();
      const request = { kind: "json", url: this.url, headers: { authorization: "Bearer {token}" }, format: "remo", every: "1m" };
      await route.continue({ postData: JSON.stringify({ ...body, ...request }) });
    });
  }

  stop() {
    this.server.close();
  }
}

/** A sensor, an appliance without numbers, and a meter. */
function devices() {
  const now = new Date().toISOString();
  const property = (epc, val) => ({ epc, val, updated_at: now });
  return [
    { id: "a1", name: "リビング", newest_events: { te: { val: 22.5, created_at: now }, hu: { val: 44, created_at: now } } },
    { id: "i1", nickname: "TV" },
    { id: "b2", nickname: "メーター", smart_meter: { echonetlite_properties: [property(211, "1"), property(215, "7"), property(224, "12345"), property(225, "1"), property(231, "510")] } },
  ];
}
