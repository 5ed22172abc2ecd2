// What a person chose, in the address: the view, what it is about, and its settings. So a reload, Back and a bookmark
// keep it. Shows nothing.

/** The settings that stay when another view is chosen. */
const SHARED = ["d", "span", "vs"];

/** The address as the page reads it: `#view/about?name=value`. */
export function here() {
  const [place, query = ""] = location.hash.slice(1).split("?");
  const [view, ...rest] = place.split("/");
  return { view, about: decoded(rest.join("/")), chosen: new URLSearchParams(query) };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The chosen value of a setting.
 * @param {string} name
 * @param {string} [otherwise]
 */
export function chosen(name, otherwise = "") {
  return here().chosen.get(name) ?? otherwise;
}

/**
 * The address of a view, with what all views share.
 * @param {string} view
 * @param {string} [about]
 * @param {Record<string, string>} [changes]
 */
export function addressOf(view, about = "", changes = {}) {
  const shared = SHARED.flatMap((name) => (chosen(name) ? [[name, chosen(name)]] : []));
  return hash(view, about, new URLSearchParams(shared), changes);
}

/**
 * Chooses settings; an empty one is taken back. The view is shown again, and Back goes back.
 * @param {Record<string, string>} changes
 * @param {string} [other] what the view is about from now on
 */
export function choose(changes, other) {
  const { view, about, chosen } = here();
  location.hash = hash(view || "now", other ?? about, chosen, changes);
}

/**
 * Notes a setting whose effect is visible already, such as an open table. Adds no entry to the history.
 * @param {Record<string, string>} changes
 */
export function note(changes) {
  const { view, about, chosen } = here();
  history.replaceState(history.state, "", hash(view || "now", about, chosen, changes));
}

/**
 * @param {string} view
 * @param {string} about
 * @param {URLSearchParams} settings
 * @param {Record<string, string>} changes
 */
function hash(view, about, settings, changes) {
  const all = new URLSearchParams(settings);
  for (const [name, value] of Object.entries(changes)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  const place = about ? `${view}/${encodeURIComponent(about)}` : view;
  return `#${place}${all.size ? `?${all}` : ""}`;
}
