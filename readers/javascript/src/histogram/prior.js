/** The prior of a histogram: a walk of log intensities over its bins, with steps of these standard deviations. */

import { ReleaseError } from "../errors.js";
import { STEPS } from "./walk.js";

const MOST_STEPS = 12;

/** The text of the default prior. */
export const DEFAULT_WALK = `BinWalk(${STEPS.join(", ")})`;

/** The steps of a prior, as `BinWalk(0.1, 0.4)`; the default ones without a text. */
export function stepsOf(text) {
  if (text === undefined || text === "") return STEPS;
  const inner = /^\s*BinWalk\(([^()]*)\)\s*$/.exec(text)?.[1];
  const steps = inner?.split(",").map((part) => (part.trim() === "" ? NaN : Number(part))) ?? [];
  const isWalk = steps.length > 0 && steps.length <= MOST_STEPS && steps.every((step) => step > 0 && step < Infinity);
  if (!isWalk) throw new ReleaseError("prior", "the prior of a histogram is a walk with steps above 0, as BinWalk(0.1, 0.4)");
  return steps;
}
