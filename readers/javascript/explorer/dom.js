// Elements from data. Text is always text: nothing here parses markup, and no style attribute is ever set,
// as the page's content security policy allows none.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. Attributes that are null, undefined or false are left out; functions become listeners.
 *
 * @param {string} tag
 * @param {Object<string, *>} [attributes]
 * @param {...(Node|string|number|null|undefined|Array)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an SVG element; otherwise as `element`. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace everything inside of a node. */
export function replace(node, ...children) {
  node.replaceChildren(...kept(children));
  return node;
}

/** An id that no other element of the page has. */
export function freshId(name) {
  count += 1;
  return `explorer-${name}-${count}`;
}
let count = 0;

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  node.append(...kept(children));
  return node;
}

function kept(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}
