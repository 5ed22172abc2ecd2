// What a link for others shows: some rooms, and their home's energy. Its token may ask about these and nothing else, so
// questions about everything are asked about each of them. Keeps the link's ids, and no data.

const KEPT = "roomtide.view";

/** @typedef {{home: string, rooms: string[]}} Shared */
/** @typedef {Record<string, string | number | boolean | undefined>} Params */
/** @typedef {(path: string, params?: Params) => Promise<any>} Ask */
/** @typedef {(path: string, params?: Params) => Promise<string>} AskText */

/** @type {Shared | null} */
let shared = read();

/** @returns {Shared | null} */
function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null");
  } catch {
    return null;
  }
}

/** Whether this page shows what a link permits, and nothing else. */
export function isShared() {
  return shared !== null;
}

/**
 * Takes the ids of a link, or forgets those of another one.
 * @param {URLSearchParams} link what stands behind # in the address
 */
export function takeShared(link) {
  const rooms = (link.get("rooms") ?? "").split(",").filter(Boolean);
  shared = link.has("view") && rooms.length ? { home: link.get("home") ?? "", rooms } : null;
  if (shared) localStorage.setItem(KEPT, JSON.stringify(shared));
  else localStorage.removeItem(KEPT);
}

/**
 * The answer to a question about everything, from what the link permits; null if the question is about one thing.
 * @param {string} path
 * @param {Params} params
 * @param {Ask} ask
 * @returns {Promise<any> | null}
 */
export function askShared(path, params, ask) {
  if (!shared) return null;
  const { home, rooms } = shared;
  const each = (/** @type {string} */ what, /** @type {Params} */ asked) => Promise.all(rooms.map((it) => ask(`rooms/${encodeURIComponent(it)}${what}`, asked)));
  if (path === "rooms") return each("", {}).then((data) => ({ data }));
  if (path === "devices") return each("/devices", params).then((all) => ({ data: all.flatMap(({ data }) => data) }));
  if (path === "energy") return ask(home ? `homes/${encodeURIComponent(home)}/energy` : `rooms/${encodeURIComponent(rooms[0])}/energy`, params);
  if (path === "series") {
    const { rooms: isByRoom, ...others } = params;
    return each("/series", others).then((all) => ({ ...all.find((it) => it.rollups_lack) ?? all[0], data: all.flatMap(({ data }, n) => data.map((/** @type {any} */ row) => (isByRoom ? { ...row, room_id: rooms[n] } : row))) }));
  }
  if (path === "annotations") return Promise.resolve({ data: [] });
  return null;
}

/**
 * The CSV file of a question about all rooms, from those of each room; null if the question is about one thing.
 * @param {string} path
 * @param {Params} params
 * @param {AskText} ask
 * @returns {Promise<string> | null}
 */
export function csvShared(path, params, ask) {
  if (!shared || path !== "series") return null;
  const { rooms } = shared;
  const { rooms: _, ...asked } = params;
  return Promise.all(rooms.map((it) => ask(`rooms/${encodeURIComponent(it)}/series`, asked))).then((texts) => {
    const files = texts.map((it) => it.trim().split("\n"));
    const inRoom = (/** @type {string} */ line, /** @type {string} */ room) => line.replace(",", `,${room},`);
    // Rows of one time stand together, as in the file of a home.
    const rows = files.flatMap(([, ...rows], n) => rows.map((it) => inRoom(it, rooms[n]))).sort((a, b) => a.slice(0, 24).localeCompare(b.slice(0, 24)));
    return `${[inRoom(files[0][0], "room_id"), ...rows].join("\n")}\n`;
  });
}
