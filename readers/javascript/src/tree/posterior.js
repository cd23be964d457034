/** The joint posterior of all counts of a tree, mixed over the hyperparameters of its leaves. */

import { ReleaseError } from "../errors.js";
import { FEW_LEAVES, MANY_LEAVES, startOf, weighedPoints } from "./hyperparameters.js";
import { Passer } from "./passes.js";

/** What sums of chances may miss by rounding: an end moves only for more than that. */
const ROUNDED = 1e-11;
/** Multiplications of one posterior: about three seconds of a browser. */
const MOST_WORK = 4e9;
/**
 * What whole posteriors take, in passes upward, by the number of hyperparameters: the fine lattice of few leaves, a lattice,
 * and few points. A pass down takes about as long as two upward; with nothing to fit there is one of each.
 */
const PASSES_OF_FEW = { 0: 3, 2: 200, 3: 1000 };
const PASSES = { 0: 3, 2: 90, 3: 300 };
const PASSES_OF_MANY = { 0: 3, 2: 16, 3: 24 };

/** Infer all counts of a tree: yields after every family, and returns a `TreePosterior`. */
export function* treePosterior(tree, population, most = MOST_WORK) {
  const passer = new Passer(tree, population);
  const isFitted = population.dimensions > 0;
  const first = yield* passedOrRefused(passer, !isFitted, most);
  const hyperparameters = isFitted
    ? yield* weighedPoints(passer)
    : { points: [[0, 0]], weights: [1], logEvidence: first.logEvidence, error: 0 };
  const marginals = passer.nodes.map((number) => Array.from({ length: number }, () => ({ low: 0, weights: new Float64Array(0) })));
  const errors = { rounding: 0, cut: 0 };
  for (const [i, point] of hyperparameters.points.entries()) {
    const upward = isFitted ? yield* passer.up(point, true) : first;
    const off = yield* passer.down(upward, (level, node, law) => mixIn(marginals[level][node], law, hyperparameters.weights[i]));
    errors.rounding = Math.max(errors.rounding, off.rounding);
    errors.cut = Math.max(errors.cut, off.cut);
  }
  return new TreePosterior(passer, hyperparameters, marginals, errors);
}

/** A first pass upward; refuses by name what would take too long here, of leaves that are wide before any pass. */
function* passedOrRefused(passer, isKept, most) {
  const { dimensions, name } = passer.population;
  const ofSize = passer.nLeaves > MANY_LEAVES ? PASSES_OF_MANY : passer.nLeaves > FEW_LEAVES ? PASSES : PASSES_OF_FEW;
  const passes = ofSize[dimensions];
  const refuse = () => {
    const lighter = dimensions === 3 ? "; the population contaminated takes a third of it, or less" : "";
    throw new ReleaseError(
      "resolution",
      `the tree has ${passer.nLeaves} leaves under wide noise: with the population ${name} this reader would need more than some seconds. Python works it out, as suffice tree RELEASE TREE --population ${name} --out FILE${lighter}`,
    );
  };
  if (4 * passer.cells * passes > most) refuse();
  const upward = yield* passer.up(dimensions === 0 ? [0, 0] : startOf(passer), isKept, most / passes);
  if (upward === null) refuse();
  return upward;
}

/** Add a multiple of a law to a mixture, whose window grows. */
function mixIn(mixture, { low, weights }, factor) {
  const isFirst = mixture.weights.length === 0;
  const begin = isFirst ? low : Math.min(low, mixture.low);
  const end = Math.max(low + weights.length, isFirst ? 0 : mixture.low + mixture.weights.length);
  if (isFirst || begin < mixture.low || end > mixture.low + mixture.weights.length) {
    const wider = new Float64Array(end - begin);
    wider.set(mixture.weights, isFirst ? 0 : mixture.low - begin);
    [mixture.low, mixture.weights] = [begin, wider];
  }
  for (let i = 0; i < weights.length; i += 1) mixture.weights[low - mixture.low + i] += factor * weights[i];
}

/** The joint law of all counts, given what was released. */
export class TreePosterior {
  constructor(passer, hyperparameters, marginals, { rounding, cut }) {
    Object.assign(this, { passer, hyperparameters, marginals, rounding, cut });
  }

  get logEvidence() {
    return this.hyperparameters.logEvidence;
  }

  /** What a chance may be off by, about: rounding, cut tails, and the rule over hyperparameters. */
  get error() {
    return this.rounding + this.cut + this.hyperparameters.error;
  }

  /** Mean, standard deviation, and ends with at most half of the rest beyond each. */
  summary(level, node, mass) {
    return summaryOf(this.marginals[level][node], mass);
  }

  /** Draw all counts jointly: by level, an array of whole numbers. `random` gives numbers from 0 to 1. */
  *draws(number, random) {
    const { points, weights } = this.hyperparameters;
    const which = Array.from({ length: number }, () => chosen(weights, random()));
    const drawn = new Array(number);
    for (const [i, point] of points.entries()) {
      if (!which.includes(i)) continue;
      const upward = yield* this.passer.up(point, true);
      for (let draw = 0; draw < number; draw += 1) {
        if (which[draw] !== i) continue;
        drawn[draw] = drawOf(this.passer, upward, random);
        yield;
      }
    }
    return drawn;
  }
}

/** Mean, standard deviation, and central ends of a law of whole numbers. */
export function summaryOf({ low, weights }, mass) {
  let [mean, variance] = [0, 0];
  for (let i = 0; i < weights.length; i += 1) mean += i * weights[i];
  for (let i = 0; i < weights.length; i += 1) variance += (i - mean) ** 2 * weights[i];
  const outside = 0.5 * (1 - mass) + ROUNDED;
  let [lower, upper] = [0, weights.length - 1];
  for (let below = weights[0]; below <= outside && lower < weights.length - 1; below += weights[lower]) lower += 1;
  for (let above = weights[upper]; above <= outside && upper > 0; above += weights[upper]) upper -= 1;
  return { mean: low + mean, sd: Math.sqrt(variance), lower: low + lower, upper: low + upper };
}

function drawOf(passer, { root, levels }, random) {
  const counts = passer.nodes.map((number) => new Float64Array(number));
  counts[0][0] = root.low + chosen(root.weights, random());
  levels.forEach(({ sums }, level) => {
    sums.forEach((sum, node) => {
      const waiting = [[sum, counts[level][node]]];
      while (waiting.length > 0) {
        const [part, total] = waiting.pop();
        if (part.left === undefined) counts[level + 1][part.node] = total;
        else {
          const first = firstPart(part.left.message, part.right.message, total, random());
          waiting.push([part.left, first], [part.right, total - first]);
        }
      }
    });
  });
  return counts;
}

/** Of two parts with a total, the first: l with chance in proportion to L(l) R(total - l). */
function firstPart(left, right, total, uniform) {
  const first = Math.max(left.low, total - right.low - right.weights.length + 1);
  const last = Math.min(left.low + left.weights.length - 1, total - right.low);
  const weights = new Float64Array(last - first + 1);
  for (let l = first; l <= last; l += 1) weights[l - first] = left.weights[l - left.low] * right.weights[total - l - right.low];
  return first + chosen(weights, uniform);
}

/** The first place whose cumulated weight is above a share of all. */
function chosen(weights, uniform) {
  let total = 0;
  for (let i = 0; i < weights.length; i += 1) total += weights[i];
  let left = uniform * total;
  for (let i = 0; i < weights.length; i += 1) {
    left -= weights[i];
    if (left < 0) return i;
  }
  // Rounding left nothing: the last that weighs something.
  let last = weights.length - 1;
  while (last > 0 && !(weights[last] > 0)) last -= 1;
  return last;
}

/** Run a generator to its end. */
export function finished(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
