/**
 * What the whole numbers of a tree stand for: records, or steps of a total of values that were clipped at a public bound.
 *
 * The lattice of a total may be far finer than its noise. An odd number of its steps is joined to one of a tree's, as many
 * as leave the least noisy level's scale `STEPS_PER_SCALE` of them: a total is off by half a step at most, and intervals are
 * half a step wider on either side. As in Python.
 */

import { multiply, parseRational, rational, toNumber } from "../exact.js";

/** Steps of a total in the least noisy level's scale, at least. */
export const STEPS_PER_SCALE = 16;
/** Families whose first component sums values from 0 on, clipped at a public bound. */
export const SUMMED = ["binomial", "poisson", "geometric", "negative_binomial", "exponential"];

/** A lattice step of the first component of a statistic, in the column's unit; null where that is no total from 0 on. */
export function totalStep({ family, components, quantities }) {
  if (!SUMMED.includes(family)) return null;
  const { coefficients, public_n_coefficient: ofPublicN } = quantities.find(({ name }) => name === "total");
  const names = Object.keys(coefficients);
  return names.length === 1 && names[0] === components[0] && ofPublicN === "0" ? parseRational(coefficients[components[0]]) : null;
}

/** What one whole number of a tree stands for. */
export class TreeUnit {
  /** @param {{steps?: number, step?: {n: bigint, d: bigint}, upper?: string | null}} unit Of counts the defaults. */
  constructor({ steps = 1, step = rational(1n), upper = null } = {}) {
    Object.assign(this, { steps, upper });
    this.step = toNumber(step);
    this.size = toNumber(multiply(step, rational(BigInt(steps))));
  }

  /** The unit of a total whose least noisy level has this scale, in steps of the lattice. */
  static ofTotal(step, upper, leastScale) {
    const steps = Math.max(1, Math.floor(leastScale / STEPS_PER_SCALE));
    return new TreeUnit({ steps: steps - ((steps + 1) % 2), step, upper });
  }

  /** What nodes have: `records`, or a `total`. */
  get isTotal() {
    return this.upper !== null;
  }

  /** What has to be said of totals. */
  get notes() {
    if (!this.isTotal) return [];
    const clipped = `Totals are of values clipped to 0..${this.upper}.`;
    if (this.steps === 1) return [clipped];
    const shown = Number.isInteger(this.size) ? String(this.size) : String(Number(this.size.toPrecision(4)));
    return [
      clipped,
      `Totals and released values are rounded to steps of ${shown}, at most 1/${STEPS_PER_SCALE} of the noise's scale; intervals are half a step wider on either side.`,
    ];
  }

  /** A released value of the lattice in whole numbers of the tree, rounded; never -0. */
  whole(released) {
    return Math.round(released / this.steps) + 0;
  }

  /** Whole numbers, or numbers between them, in the column's unit. */
  value(whole) {
    return whole * this.size;
  }

  /** The ends of an interval in the column's unit, with all that rounds to them. */
  ends({ lower, upper }) {
    const half = Math.floor(this.steps / 2);
    return { lower: Math.max(this.steps * lower - half, 0) * this.step, upper: (this.steps * upper + half) * this.step };
  }
}
