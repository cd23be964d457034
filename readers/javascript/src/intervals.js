/** Credible intervals: central ones, and the shortest, as Python's `shortest_intervals` has them. */

import { ReleaseError } from "./errors.js";

export const CENTRAL = "central";
export const HIGHEST_DENSITY = "highest-density";

/** Share by which an interval from an end of the range may be longer than the shortest. */
const AT_AN_END = 0.01;
const LEVELS = 17;

/**
 * @param {function(number): number} quantile
 * @param {number} mass Between 0 and 1.
 * @param {string} kind
 * @param {[number, number]} ends Of the parameter's range.
 * @returns {[number, number]}
 */
export function intervalOf(quantile, mass, kind, ends) {
  if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
  if (kind === CENTRAL) return [quantile((1 - mass) / 2), quantile((1 + mass) / 2)];
  if (kind !== HIGHEST_DENSITY) throw new ReleaseError("usage", `an interval is ${CENTRAL} or ${HIGHEST_DENSITY}`);
  const last = LEVELS - 1;
  const candidates = Array.from({ length: LEVELS }, (_, i) => {
    const below = (1 - mass) * Math.sin((i * Math.PI) / (2 * last)) ** 2;
    return [i === 0 ? ends[0] : quantile(below), i === last ? ends[1] : quantile(below + mass)];
  });
  const widths = candidates.map(([low, high]) => high - low);
  const least = Math.min(...widths);
  const isNear = (i) => widths[i] <= (1 + AT_AN_END) * least;
  const [first, end] = [Number.isFinite(ends[0]) && isNear(0), Number.isFinite(ends[1]) && isNear(last)];
  // What is flat all over has no shortest interval, and gets the central one.
  if (first && end && isNear(last / 2)) return candidates[last / 2];
  if (first) return candidates[0];
  return end ? candidates[last] : candidates[widths.indexOf(least)];
}
