/** Noise on a cone of moments: its law from the plan, and the variance of what is worked out of components. */

import { divide, format, parseRational, rational, toNumber } from "./exact.js";
import { integer, isMapping, refused } from "./plan_values.js";

export const CONE_NOISE = "cone_noise";
const FAMILIES = ["linear_regression", "multivariate_normal"];

/** Whether a plan's entry asks for it; an entry that names Laplace noise is not canonical. */
export function asksForCone(entry, place) {
  if (entry.noise === undefined) return false;
  if (entry.noise !== "cone" || !FAMILIES.includes(entry.family)) throw refused(`${place}.noise`, "it is no noise of this family");
  return true;
}

/** The law that a manifest has to state: a rate of epsilon by the records that a unit changes at most. */
export function coneFields(entry, { measure, amount }, { rows, replaces }, place) {
  if (measure !== "epsilon") throw refused(`${place}.noise`, "noise on a cone is of epsilon");
  if (entry.moment_weight !== undefined) throw refused(`${place}.moment_weight`, "on a cone there is none");
  const columns = entry.family === "linear_regression" ? { ...entry.predictors, ...entry.outcome } : entry.columns;
  if (!isMapping(columns)) throw refused(place, "it has no columns");
  const rate = divide(amount, rational(BigInt(rows) * (replaces ? 2n : 1n)));
  const steps = 2n ** integer(entry.lattice_bits, `${place}.lattice_bits`);
  return {
    cone_noise: { rate: format(rate), columns: Object.keys(columns).length, linear: entry.intercept !== false, steps: String(steps) },
  };
}

/** Rows and columns of the matrix whose entries the components are, in order. */
function pairsOf({ columns, linear }) {
  const pairs = [];
  for (let i = 0; i <= columns; i += 1) for (let j = i; j <= columns; j += 1) if (linear || i > 0 || j === 0) pairs.push([i, j]);
  return pairs;
}

/** How many components there are. */
export function coneSize(noise) {
  return pairsOf(noise).length;
}

/** The variance of the noise on a sum of components, by position, with these weights. */
export function coneVariance(noise, weights) {
  const pairs = pairsOf(noise);
  const t = pairs.length;
  const dimension = noise.columns + (noise.linear ? 2 : 1);
  const inBall = dimension / (dimension + 2);
  const unit = 2 * (Number(noise.steps) ** 2 / toNumber(parseRational(noise.rate))) ** 2;
  const mean = (i) => (i === 0 ? 1 : inBall);
  const covariance = ([i, j], [k, l]) => {
    if (i === k && j === l) {
      if (i !== j) return (t * (t + 1) * mean(i) * inBall) / dimension;
      const fourth = i === 0 ? 1 : dimension / (dimension + 4);
      return t * (t + 1) * fourth - (t * mean(i)) ** 2;
    }
    return i === j && k === l ? t * mean(i) * mean(k) : 0;
  };
  let variance = 0;
  for (const [first, a] of weights) for (const [second, b] of weights) variance += a * b * covariance(pairs[first], pairs[second]);
  return unit * variance;
}
