/** Elements of text and attributes. No markup is parsed: what comes from a server is always text, with its control characters visible. */
import { printable } from './text.js';

const svgSpace = 'http://www.w3.org/2000/svg';

/** @typedef {string | number | boolean | null | undefined} Attribute */
/** @typedef {Node | string} Child */

/** @param {Element} element @param {Readonly<Record<string, Attribute>>} attributes @param {readonly Child[]} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  element.append(...children.map((child) => (typeof child === 'string' ? printable(child) : child)));
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, Attribute>>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  filled(element, attributes, children);
  return element;
}

/** @param {string} tag @param {Readonly<Record<string, Attribute>>} [attributes] @param {...Child} children */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(svgSpace, tag), attributes, children);
}

/** @template {Element} [Type=HTMLElement] @param {string} id @param {new () => Type} [type] @returns {Type} */
export function byId(id, type = /** @type {new () => any} */ (HTMLElement)) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no element "${id}"`);
  return element;
}

/** Writes text only where it changed, so that a screen reader does not repeat it. @param {Element} element @param {string} text */
export function write(element, text) {
  const visible = printable(text);
  if (element.textContent !== visible) element.textContent = visible;
}

/**
 * Replaces the children of an element, but keeps those that are equal: focus, selection and scroll position stay.
 * @param {Element} element
 * @param {readonly Child[]} children
 */
export function renew(element, children) {
  const old = [...element.childNodes];
  children.forEach((child, i) => {
    const before = old[i];
    const next = typeof child === 'string' ? document.createTextNode(printable(child)) : child;
    if (!before) element.append(next);
    else if (before instanceof Element && next instanceof Element && before.tagName === next.tagName && before.id === next.id) {
      adopt(before, next);
    } else if (before.nodeType !== next.nodeType || before instanceof Element) element.replaceChild(next, before);
    else if (before.nodeValue !== next.nodeValue) before.nodeValue = next.nodeValue;
  });
  for (const rest of old.slice(children.length)) rest.remove();
}

/** Keeps an opened `details` open. @param {Element} before @param {Element} next */
function adopt(before, next) {
  for (const name of before.getAttributeNames()) if (!next.hasAttribute(name) && name !== 'open') before.removeAttribute(name);
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name) ?? '';
    if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  }
  renew(before, [...next.childNodes]);
}
