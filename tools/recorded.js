// The first script of a demo: it gives recorded answers in a server's place. The clock stands at the recording, and days are
// those of UTC, so that each question is the recorded one, whenever and wherever the page is opened. Changes nothing.
// `tools/demo` writes it beside the page, with its line in index.html.

(() => {
  const { recorded, link } = /** @type {HTMLScriptElement} */ (document.currentScript).dataset;
  const now = Date.parse(recorded);
  const base = new URL(".", location.href).pathname;
  const fetchFile = window.fetch.bind(window);
  const index = fetchFile("answers/index.json").then((answer) => answer.json());

  /** A date whose local time is UTC, and which is the recording's where no time is given. */
  class StandingDate extends Date {
    constructor(...given) {
      if (given.length > 1) super(Date.UTC(...given));
      // A text without a zone is of local time.
      else if (/^[\d-]+T[\d:.]+$/.test(given[0])) super(`${given[0]}Z`);
      else super(given.length ? given[0] : now);
    }

    static now() {
      return now;
    }

    getTimezoneOffset() {
      return 0;
    }
  }

  const inUtc = (options) => ({ timeZone: "UTC", ...options });
  for (const name of Object.getOwnPropertyNames(Date.prototype)) {
    const own = Date.prototype[name];
    const ofUtc = Date.prototype[name.replace(/^[gs]et/, "$&UTC")];
    if (ofUtc && ofUtc !== own) StandingDate.prototype[name] = ofUtc;
    if (name.startsWith("toLocale")) StandingDate.prototype[name] = function (locale, options) { return own.call(this, locale, inUtc(options)); };
  }
  window.Date = StandingDate;
  const format = (Format, [locale, options]) => new Format(locale, inUtc(options));
  Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, { construct: format, apply: (Format, _, given) => format(Format, given) });

  window.fetch = async (asked, { method = "GET", body = "" } = {}) => {
    const url = new URL(asked, location.href);
    url.searchParams.sort();
    const answer = (await index)[`${method} ${url.pathname.slice(base.length)}${url.search}${body}`];
    if (answer) return fetchFile(`answers/${answer}.json`);
    return method === "GET"
      ? problem(404, "This demo has no recorded answer to that question. Start Roomtide to ask it.")
      : problem(409, "This is a demo of recorded answers: nothing is stored or changed.");
  };

  function problem(status, detail) {
    return new Response(JSON.stringify({ status, detail }), { status, headers: { "content-type": "application/problem+json" } });
  }

  // A worker would keep the answers of this demo for a server at the same address.
  document.querySelector("meta[name=worker]")?.remove();

  document.addEventListener("DOMContentLoaded", () => {
    // A file of rows is another answer than those that are recorded.
    const style = Object.assign(document.createElement("style"), { textContent: ".csv { display: none; } #demo { max-width: 90rem; margin: 0 auto; padding: 0.6rem 0.9rem 0; }" });
    const line = Object.assign(document.createElement("p"), { id: "demo", className: "note" });
    line.append(`Demo: a sample home, recorded ${new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" })}. `);
    if (link) line.append(Object.assign(document.createElement("a"), { href: link, textContent: "What Roomtide is" }));
    document.head.append(style);
    document.getElementById("main").before(line);
  });
})();
