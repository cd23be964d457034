/** Posterior samples: what a manifest has to state of one, and the points of its grid. */

import { ReleaseError } from "./errors.js";
import { add, compare, divide, format, multiply, rational, rootRoundedDown, subtract, toNumber } from "./exact.js";
import { integer, number, onlyKeys, refused } from "./plan_values.js";

const [MOST_DRAWS, FEWEST_POINTS, MOST_POINTS] = [1000n, 3n, 4097n];
const LEAST_SCALE = 2n ** 20n;
const LARGEST_SCALE = 2n ** 46n;
const LARGEST_RANGE = 2n ** 62n;
/** What is left of a loss where OpenDP's map is computed in doubles. */
const BELOW_LOSS = rational(2n ** 48n - 1n, 2n ** 48n);

/** Whether draws of a posterior were released in the place of noisy components: of a manifest's entry. */
export function isSampled({ mechanism }) {
  return mechanism === "exponential";
}

/** What follows of a sample from the plan, and from the range sensitivity that is stated: the rest of its entry. */
export function sampleFields(sample, { measure, amount }, stated, place) {
  onlyKeys(sample, ["draws", "grid", "prior", "within"], [], `${place}.sample`);
  const draws = integer(sample.draws, `${place}.sample.draws`);
  const grid = integer(sample.grid, `${place}.sample.grid`);
  if (draws < 1n || draws > MOST_DRAWS) throw refused(`${place}.sample.draws`, "it is no number of draws");
  if (grid < FEWEST_POINTS || grid > MOST_POINTS) throw refused(`${place}.sample.grid`, "it is no number of points");
  const { within, prior } = sample;
  if (!Array.isArray(within) || within.length !== 2 || typeof prior !== "string") throw refused(`${place}.sample`, "it is no sample");
  const [lower, upper] = within.map((end) => number(end, `${place}.sample.within`));
  if (compare(lower, upper) >= 0) throw refused(`${place}.sample.within`, "it is no interval");
  const range = integer(stated.range_sensitivity, `${place}.range_sensitivity`);
  if (range < 1n) throw refused(`${place}.range_sensitivity`, "it is below 1");
  if (range > LARGEST_RANGE) throw refused(`${place}.range_sensitivity`, "it is above 2^62");
  const left = multiply(amount, BELOW_LOSS);
  const ofRho = divide(rational(draws * range * range, 8n), left);
  const { n, d } = divide(rational(draws * range), left);
  const least = (measure === "rho" ? rootRoundedDown(ofRho.n / ofRho.d) : n / d) + 1n;
  const scale = least < LEAST_SCALE ? LEAST_SCALE : least;
  if (scale > LARGEST_SCALE) throw refused(`${place}.scale`, "it is above 2^46");
  return {
    draws: Number(draws),
    grid: Number(grid),
    within: [format(lower), format(upper)],
    prior,
    range_sensitivity: String(range),
    scale: String(scale),
    temperature: format(rational(scale, LEAST_SCALE)),
  };
}

/** The value of a point of the grid, in the parameter's unit, rounded once. */
export function gridPoint({ within, grid }, position) {
  const [lower, upper] = within.map((end) => number(end, "within"));
  const step = divide(subtract(upper, lower), rational(BigInt(grid - 1)));
  return toNumber(add(lower, multiply(step, rational(position))));
}

/** The error of whoever asks a sample for what follows from statistics alone. */
export function noStatistics(name) {
  return new ReleaseError("statistic", `${name} is a posterior sample: there are no statistics in it; samples() gives its draws`);
}
