/** Canonical JSON: keys sorted by code point, no spaces, no floats, integers below 2^53. */

import { decodeText, encodeText, equalBytes } from "./bytes.js";

const DEEPEST = 64;

/** The canonical text of a document; throws where it holds what canonical JSON has not. */
export function encode(document, depth = 0) {
  if (depth > DEEPEST) throw new TypeError("too deep");
  if (document === null || typeof document === "boolean") return String(document);
  if (typeof document === "number") {
    if (!Number.isSafeInteger(document) || Object.is(document, -0)) throw new TypeError("no exact integer");
    return String(document);
  }
  if (typeof document === "string") {
    // A text with half a surrogate pair has no UTF-8.
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(document)) {
      throw new TypeError("no text");
    }
    return JSON.stringify(document);
  }
  if (Array.isArray(document)) return `[${document.map((entry) => encode(entry, depth + 1)).join(",")}]`;
  const keys = Object.keys(document).sort(byCodePoint);
  return `{${keys.map((key) => `${encode(key, depth + 1)}:${encode(document[key], depth + 1)}`).join(",")}}`;
}

/** The document of canonical bytes, or null where they are anything else. */
export function decode(data) {
  try {
    const document = JSON.parse(decodeText(data));
    return equalBytes(encodeText(encode(document)), data) ? document : null;
  } catch {
    return null;
  }
}

/** Compare texts by code points; JavaScript itself compares UTF-16 units. */
function byCodePoint(first, second) {
  const length = Math.min(first.length, second.length);
  for (let i = 0; i < length; i += 1) {
    const a = first.charCodeAt(i);
    const b = second.charCodeAt(i);
    if (a !== b) {
      // Surrogates stand for code points above all others.
      const high = (unit) => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);
      return high(a) - high(b);
    }
  }
  return first.length - second.length;
}
