/** Values of a canonical plan, and the error of what no spec could have. */

import { ReleaseError } from "./errors.js";
import { parseRational } from "./exact.js";

export function number(text, place) {
  const found = parseRational(text);
  if (found === null) throw refused(place, "it is no exact number");
  return found;
}

export function integer(text, place) {
  const found = number(text, place);
  if (found.d !== 1n) throw refused(place, "it is no whole number");
  return found.n;
}

export function refused(place, rule) {
  return new ReleaseError("manifest", `the manifest is corrupt: ${place}: ${rule}`);
}

export function onlyKeys(mapping, required, optional, place) {
  const fits = isMapping(mapping)
    && required.every((key) => Object.hasOwn(mapping, key))
    && Object.keys(mapping).every((key) => required.includes(key) || optional.includes(key));
  if (!fits) throw refused(place, "its keys are not those that the format states");
}

export function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
