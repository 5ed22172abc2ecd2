// The worker: the page opens at once from what this browser keeps, and shows what was known last while the server is
// away. Keeps data only where the page says that it may, and edits nothing.

/** @typedef {{request: Request, respondWith: (answer: Promise<Response>) => void, waitUntil: (what: Promise<unknown>) => void}} Fetch */

const worker = /** @type {any} */ (self);
/** The page and its files, and the answers. */
const [FILES, DATA] = ["roomtide-files", "roomtide-data"];
/** The most answers that are kept. */
const MAX_ANSWERS = 300;
/** The header with the page's wish to the worker, and the header that says since when an answer is known. */
const [WISH, KNOWN] = ["x-known", "x-known-from"];

const base = new URL(worker.registration.scope);

worker.addEventListener("install", (/** @type {any} */ event) => {
  worker.skipWaiting();
  // Where the browser can, it takes the files of the page from the cache by itself, which is quicker.
  event.waitUntil(event.addRoutes?.({ condition: { urlPattern: `${base.pathname}assets/*` }, source: { cacheName: FILES } }).catch(() => {}));
  event.waitUntil(renewed());
});
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {Fetch} */ event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== base.origin) return;
  if (request.mode === "navigate") {
    if (url.pathname === base.pathname) event.respondWith(page(event));
  } else if (url.pathname.startsWith(`${base.pathname}assets/`)) event.respondWith(file(request));
  else if (request.headers.has(WISH)) event.respondWith(answer(event, url));
});

/** The page as it is kept; what the server has now is for the next time. @param {Fetch} event */
async function page(event) {
  const kept = await (await caches.open(FILES)).match(base.href);
  if (!kept) return fetch(event.request);
  event.waitUntil(renewed().catch(() => {}));
  return kept;
}

/** Keeps the page that the server has, with all its files, and forgets those of another one. */
async function renewed() {
  const files = await caches.open(FILES);
  const fresh = await fetch(base.href, { cache: "no-cache" });
  if (!fresh.ok) return;
  const html = await fresh.clone().text();
  const kept = await files.match(base.href);
  if (kept && (await kept.text()) === html) return;
  const names = [...html.matchAll(/"(assets\/[^"]+)"/g)].map(([, name]) => new URL(name, base).href);
  const wanted = [...new Set(names)];
  await Promise.all(wanted.map(async (name) => (await files.match(name)) ?? files.add(name)));
  await files.put(base.href, fresh);
  for (const { url } of await files.keys()) if (url !== base.href && !sameBuild(url, wanted)) await files.delete(url);
  if (kept) for (const client of await worker.clients.matchAll()) client.postMessage("newer");
}

/** Tells whether a file is of the build whose files are wanted. @param {string} url @param {string[]} wanted */
function sameBuild(url, wanted) {
  const build = (/** @type {string} */ it) => /assets\/(\w+)\./.exec(it)?.[1];
  return build(url) === build(wanted[0] ?? "");
}

/** @param {Request} request */
async function file(request) {
  const files = await caches.open(FILES);
  const kept = await files.match(request.url);
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok) await files.put(request.url, fresh.clone());
  return fresh;
}

/**
 * The server's answer, else the last known answer. The last known answer comes first if the page wishes it.
 * @param {Fetch} event
 * @param {URL} url
 */
async function answer({ request }, url) {
  const answers = await caches.open(DATA);
  const key = keyOf(url);
  const wish = request.headers.get(WISH) ?? "";
  if (wish.includes("first")) {
    const kept = await answers.match(key);
    if (kept) return kept;
  }
  let fresh;
  try {
    fresh = await fetch(request);
  } catch (error) {
    const kept = wish.includes("keep") && (await answers.match(key));
    if (kept) return kept;
    throw error;
  }
  if (fresh.ok && wish.includes("keep")) {
    const headers = new Headers(fresh.headers);
    headers.set(KNOWN, new Date().toISOString());
    headers.delete("content-encoding");
    await answers.put(key, new Response(await fresh.clone().blob(), { status: 200, headers }));
    const all = await answers.keys();
    for (const old of all.slice(0, Math.max(0, all.length - MAX_ANSWERS))) await answers.delete(old);
  }
  return fresh;
}

/** The same question a little later has the same key: an end at the moment of asking counts as days before now. @param {URL} url */
function keyOf(url) {
  const key = new URL(url);
  for (const end of ["from", "to"]) {
    const at = new Date(key.searchParams.get(end) ?? "").getTime();
    // An end that a person chooses is a whole minute, and stays.
    if (at % 60_000) key.searchParams.set(end, `now-${Math.round((Date.now() - at) / 86_400_000)}d`);
  }
  return key.href;
}
