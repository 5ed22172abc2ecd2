// The text of the page in the reader's language: which language, plurals, and values in sentences. Has no text itself.

/** @typedef {keyof typeof import("./en.js").words} Key */
/** @typedef {Record<Key, string>} Catalogue */
/** @typedef {Record<string, string | number>} Values */

/** @type {Record<string, () => Promise<{words: Catalogue}>>} */
const CATALOGUES = {
  en: () => import("./en.js"),
  de: () => import("./de.js"),
  fr: () => import("./fr.js"),
  ja: () => import("./ja.js"),
};

const asked = [new URLSearchParams(location.search).get("lang") ?? "", ...navigator.languages];
const found = asked.find((it) => it.slice(0, 2).toLowerCase() in CATALOGUES) ?? "en";

/** The language of the page. */
export const language = found.slice(0, 2).toLowerCase();
/** The locale of numbers and times: that of the reader's country, if the browser names one for this language. */
export const locale = navigator.languages.find((it) => it.slice(0, 2).toLowerCase() === language && it.length > 2) ?? found;
document.documentElement.lang = language;

const { words: catalogue } = await CATALOGUES[language]();
const plural = new Intl.PluralRules(locale);

/**
 * A text. Where it has two forms, for one and for more, `n` chooses.
 * @param {Key} key
 * @param {Values} [values]
 */
export function t(key, values = {}) {
  return form(key, values).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/**
 * A text whose values are elements, too.
 * @param {Key} key
 * @param {Record<string, Node | string | number>} values
 * @returns {(Node | string)[]}
 */
export function rich(key, values) {
  const pieces = form(key, /** @type {any} */ (values)).split(/\{(\w+)\}/);
  return pieces.map((it, place) => {
    if (place % 2 === 0) return it;
    const value = values[it] ?? "";
    return value instanceof Node ? value : String(value);
  });
}

/**
 * The text of a key that is made of a name, such as that of a metric; or what is said without one.
 * @param {string} key
 * @param {string} otherwise
 */
export function named(key, otherwise) {
  return /** @type {Record<string, string>} */ (catalogue)[key] ?? otherwise;
}

/**
 * Names after each other, as the language has it.
 * @param {string[]} names
 */
export function listed(names) {
  return new Intl.ListFormat(locale, { type: "unit" }).format(names);
}

/**
 * @param {Key} key
 * @param {Values} values
 */
function form(key, values) {
  const forms = catalogue[key].split("|");
  const number = values.n;
  return forms.length > 1 && plural.select(Number(typeof number === "number" ? number : 2)) !== "one" ? forms[1] : forms[0];
}

