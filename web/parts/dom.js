// Elements of the page, made from text and never from markup. Knows no data.

import { chosen, note } from "../data/address.js";
import { t } from "../words/words.js";

/**
 * Makes an element. A property that begins with `on` is a listener, `class` its classes, any other an attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [props]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "value") /** @type {any} */ (node).value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

/**
 * Makes an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...Node} children
 */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A sign of one stroke. @param {string} path */
export function sign(path) {
  return svg("svg", { class: "sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));
}

/**
 * Replaces what a node holds; the element that had the focus has it again, if one of the same id is there.
 * @param {Element} node
 * @param {...(Node | string | number | null | undefined | false)} children
 */
export function fill(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement?.id : "";
  node.replaceChildren(...present(children));
  if (focused) document.getElementById(focused)?.focus();
}

/**
 * A place that shows one of several states: what a state consists of is made when the state begins, and stays
 * until another one does.
 * @param {Element} place
 * @returns {(name: string, make: () => (Node | string | null | false)[]) => void}
 */
export function states(place) {
  let shown = "";
  return (name, make) => {
    if (shown === name) return;
    shown = name;
    fill(place, ...make());
  };
}

/** @param {(Node | string | number | null | undefined | false)[]} children */
function present(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * A card with a heading.
 * @param {string} title
 * @param {...(Node | string | null | undefined | false)} children
 */
export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", null, title), ...children);
}

/**
 * A table.
 * @param {string} caption
 * @param {string[]} head
 * @param {(string | Node)[][]} rows
 */
export function table(caption, head, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", null, caption),
      h("thead", null, h("tr", null, ...head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, ...rows.map((row) => h("tr", null, ...row.map((cell) => h("td", null, cell))))),
    ),
  );
}

/**
 * A table that is made when somebody opens it; the address tells which are open.
 * @param {string} caption
 * @param {() => Node} make
 */
export function tableBehind(caption, make) {
  return behind(caption, t("asTable", { title: caption }), make);
}

/**
 * What is made when somebody opens it.
 * @param {string} id by which the address names it
 * @param {string} summary
 * @param {() => Node} make
 */
export function behind(id, summary, make) {
  const open = () => chosen("open").split("|").filter(Boolean);
  const details = h("details", { class: "behind", open: open().includes(id) }, h("summary", null, summary));
  if (details.open) details.append(make());
  details.addEventListener("toggle", () => {
    if (!details.isConnected) return;
    if (details.open && details.childElementCount === 1) details.append(make());
    const others = open().filter((it) => it !== id);
    if (details.open !== open().includes(id)) note({ open: [...others, ...(details.open ? [id] : [])].join("|") });
  });
  return details;
}

/**
 * A field with its label.
 * @param {string} label
 * @param {HTMLElement} input
 */
export function field(label, input) {
  return h("label", { class: "field" }, h("span", null, label), input);
}

/**
 * A choice of one.
 * @param {string} label
 * @param {[string, string][]} options values and texts
 * @param {string} chosen
 * @param {(value: string) => void} change
 */
export function select(label, options, chosen, change) {
  const list = h(
    "select",
    { id: `s-${label}`.replaceAll(" ", "-"), onchange: () => change(list.value) },
    ...options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  return field(label, list);
}

/**
 * Buttons; one of them is pressed.
 * @param {string} label
 * @param {[string, string][]} options values and texts
 * @param {string} chosen
 * @param {(value: string) => void} change
 */
export function buttons(label, options, chosen, change) {
  return h(
    "div",
    { class: options.length < 6 ? "buttons seg" : "buttons", role: "group", "aria-label": label },
    ...options.map(([value, text]) =>
      h(
        "button",
        { type: "button", id: `b-${label}-${value}`.replaceAll(" ", "-"), "aria-pressed": String(value === chosen), onclick: () => change(value) },
        text,
      ),
    ),
  );
}
