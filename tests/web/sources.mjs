// A played API of sources for a check of the page: kinds as the server lists them, a test that finds devices, and what
// is saved. Asks no maker.

const member = (name, form, is_needed, hint, more = {}) => ({ name, form, is_needed, hint, ...more });

export const KINDS = [
  { kind: "remo", title: "Nature Remo", members: [member("token", "secret", true, "the access token"), member("meter", "flag", false, "whether there is a smart meter, which is a second request")], every: "1m", credit: null, where: "home.nature.global makes a token. The token can also switch appliances." },
  { kind: "switchbot", title: "SwitchBot", members: [member("token", "secret", true, "the token"), member("secret", "secret", true, "the secret key beside it"), member("calls", "number", false, "the most requests a day", { range: [100, 10000] })], every: "1m", credit: null, where: "In the app: Profile, Preferences, About." },
  { kind: "weather", title: "Open-Meteo", members: [member("latitude", "number", true, "the latitude in degrees", { range: [-90, 90] }), member("longitude", "number", true, "the longitude in degrees", { range: [-180, 180] })], every: "1h", credit: "Weather data by Open-Meteo.com (CC BY 4.0)", where: "No key is needed." },
  { kind: "price", title: "Energy-Charts", members: [member("zone", "choice", true, "the bidding zone", { choices: ["DE-LU", "SE3"] })], every: "1h", credit: "Prices by Energy-Charts.info (Fraunhofer ISE)", where: "No key is needed." },
  { kind: "json", title: "The address", members: [], every: "5m", credit: null, where: "The documentation of the API says which address answers JSON." },
  // A maker that the page has no word for.
  { kind: "newmaker", title: "New Maker", members: [member("pin", "secret", true, "the PIN of the bridge")], every: "5m", credit: null, where: "The PIN is on the bridge." },
];

/** What the test of a kind finds. */
const FOUND = {
  remo: { devices: [{ id: "a1", name: "リビング", room: "room-a1" }, { id: "b2", name: "Study", room: "study" }], readings: [{ device: "a1", timestamp: "2026-11-29T12:00:00Z", room: "room-a1", metrics: { temperature: 21.4, humidity: 44 } }, { device: "b2", timestamp: "2026-11-29T12:00:00Z", room: "study", metrics: { temperature: 19 } }] },
  weather: { devices: [{ id: "outdoors", name: null, room: "outdoors" }], readings: [{ device: "outdoors", timestamp: "2026-11-29T12:00:00Z", room: "outdoors", metrics: { temperature: 7 } }] },
  json: { devices: [], readings: [], numbers: { "/flow/tempIn": 31.5, "/wh": "1200" } },
};

export class PlayedSources {
  constructor() {
    /** @type {any[]} */
    this.data = [];
    /** What the page sent, without what it only read. @type {{method: string, path: string, body: any}[]} */
    this.sent = [];
    this.mayEdit = true;
  }

  /** Answers the page's requests about sources. */
  async play(page) {
    await page.route(/\/sources(\/|$|\?)/, async (route) => {
      const request = route.request();
      const [method, path] = [request.method(), new URL(request.url()).pathname];
      const body = request.postDataJSON();
      if (method !== "GET") this.sent.push({ method, path, body });
      const { status = 200, ...answer } = this.answer(method, path, body);
      await route.fulfill({ status, json: answer });
    });
  }

  answer(method, path, body) {
    const id = decodeURIComponent(path.split("/").at(-1));
    if (method === "GET") return { data: this.data.map((source) => this.mayEdit ? source : readersPart(source)), kinds: KINDS };
    if (path.endsWith("/test")) return this.test(body);
    if (method === "DELETE") {
      this.data = this.data.filter((source) => source.id !== id);
      return {};
    }
    const before = this.data.find((source) => source.id === id);
    const kind = KINDS.find((kind) => kind.kind === body.kind);
    const source = { on: true, ...body, id, host: "api.example.org", credit: kind.credit, devices: before?.devices ?? Object.keys(body.rooms ?? {}).filter((device) => body.rooms[device]), secrets: body.secrets ? Object.keys(body.secrets) : before?.secrets ?? [], state: before?.state ?? { state: "waiting", every: kind.every, last_success: null, failing_since: null, error: null, next: new Date(Date.now() + 30_000).toISOString(), requests_today: 0 } };
    this.data = [...this.data.filter((other) => other.id !== id), source];
    return source;
  }

  test(body) {
    if (body.secrets?.token === "wrong") return { status: 422, title: "Unprocessable", detail: "Nature Remo refuses the token (401)." };
    if (body.zone === "SE3") return { status: 400, title: "Bad request", detail: "zone must be one of DE-LU", errors: [{ field: "zone", message: "must be one of DE-LU" }] };
    return { requests: [{ host: "api.example.org", status: 200, ms: 80, bytes: 900 }], devices: [], readings: [], rejected: [], ignored: [], numbers: {}, warnings: [], ...FOUND[body.kind] };
  }

  /** The newest of what was sent so. */
  last(method, end) {
    return this.sent.findLast((sent) => sent.method === method && sent.path.endsWith(end))?.body;
  }
}

/** What those see who may read only. */
function readersPart({ id, kind, devices, host, on, credit, state }) {
  return { id, kind, devices, host, on, credit, state };
}
