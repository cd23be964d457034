/**
 * Points of the hyperparameters of leaves, and their weights by the evidence of the tree: a lattice about the mode,
 * or of trees of many leaves the 2 d points of a rule of degree three. As in Python, whose page says what both err by.
 */

import { cholesky, eigen, identity, moved, outer, times, volume } from "./matrices.js";

const [STEP, FINE_STEP] = [1.5, 1];
/** Up to here the lattice is finer. */
export const FEW_LEAVES = 50;
/** From here on few points are taken. */
export const MANY_LEAVES = 2000;
const LEAST = 3e-3;
const ROUNDS = 4;
/** Points of a lattice at most, by its dimensions. */
const MOST = { 2: 400, 3: 1500 };
/** Step of differences, in guessed standard deviations. */
const CURVED = 0.3;
/** The logit of the share of empty leaves from which the way up begins: a fifth. */
const EMPTY = -1.4;

/** Weigh points of hyperparameters, of which there are some: {points, weights, logEvidence, error}, the heaviest first. */
export function* weighedPoints(passer) {
  const ofTree = (point) => passer.ofTree(point);
  const ofLeaves = function* ofLeaves(point) {
    yield;
    return passer.ofLeaves(point);
  };
  const { leavesAreReleased } = passer;
  const { middle, factor } = yield* newton(leavesAreReleased ? ofLeaves : ofTree, startOf(passer));
  const isLarge = leavesAreReleased && passer.nLeaves > MANY_LEAVES;
  return isLarge ? yield* fewPoints(passer, middle, factor) : yield* lattice(passer, ofTree, middle, factor);
}

function* fewPoints(passer, middle, factor) {
  const d = middle.length;
  const points = axes(d, Math.sqrt(d)).map((away) => moved(middle, factor, away));
  const above = [];
  for (const point of points) above.push((yield* passer.up(point, false)).logEvidence - passer.logEvidenceOfLeaves(point));
  // z' z / 2 = d / 2 at all of them.
  const logs = points.map((point) => passer.ofLeaves(point) + 0.5 * d);
  const { highest, total, weights } = weighed(logs);
  const logVolume = highest + Math.log((total / (2 * d)) * (2 * Math.PI) ** (0.5 * d) * Math.abs(volume(factor)));
  const most = Math.max(...above);
  const logEvidence = logVolume + most + Math.log(weights.reduce((sum, weight, i) => sum + weight * Math.exp(above[i] - most), 0));
  const uneven = 2 * d * weights.reduce((sum, weight) => sum + weight * weight, 0) - 1;
  const widest = Math.sqrt(Math.max(...outer(factor).map((row, i) => row[i])));
  return { ...byWeight(points, weights), logEvidence, error: uneven * widest };
}

function* lattice(passer, ofTree, mode, guess) {
  const step = passer.nLeaves <= FEW_LEAVES ? FINE_STEP : STEP;
  const d = mode.length;
  let [middle, factor] = [mode, guess];
  let [points, known, places, logs, spacing] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    spacing = factor.map((row) => row.map((entry) => entry * step));
    const [from, by] = [middle, spacing];
    ({ places, logs } = yield* flooded((place) => ofTree(moved(from, by, place)), d));
    known = weighed(logs);
    points = places.map((place) => moved(middle, spacing, place));
    const effective = 1 / known.weights.reduce((sum, weight) => sum + weight * weight, 0);
    // Of a normal density (4 pi / h^2)^(d / 2) points count.
    const ideal = ((4 * Math.PI) / step ** 2) ** (0.5 * d);
    if (0.5 * ideal < effective && effective < 2.5 * ideal) break;
    [middle, factor] = laidOutAgain(points, known.weights, spacing);
  }
  const { highest, total, weights } = known;
  const heaviest = Math.max(...weights);
  const isKept = weights.map((weight) => weight >= LEAST * heaviest);
  const colours = places.map((place) => (place.reduce((sum, at) => sum + at, 0) % 2 === 0 ? 1 : -1));
  const uneven = weights.reduce((sum, weight, i) => sum + weight * colours[i], 0);
  const leftOut = weights.reduce((sum, weight, i) => sum + (isKept[i] ? 0 : weight), 0);
  const kept = byWeight(points.filter((_, i) => isKept[i]), weights.filter((_, i) => isKept[i]));
  return {
    points: kept.points,
    weights: kept.weights.map((weight) => weight / (1 - leftOut)),
    logEvidence: highest + Math.log(total * Math.abs(volume(spacing))),
    error: uneven ** 2 + leftOut,
  };
}

/** Weights that add up to 1, from logarithms; the highest of these, and the sum of all relative to it. */
function weighed(logs) {
  const highest = Math.max(...logs);
  const raw = logs.map((log) => Math.exp(log - highest));
  const total = raw.reduce((sum, one) => sum + one, 0);
  return { highest, total, weights: raw.map((one) => one / total) };
}

/** Points at a distance from 0 along every axis, both ways. */
function axes(d, distance) {
  return [distance, -distance].flatMap((away) => identity(d, away));
}

/** The mean and a factor of the covariance of weighed points. */
function laidOutAgain(points, weights, spacing) {
  const mean = points[0].map((_, k) => points.reduce((sum, point, i) => sum + weights[i] * point[k], 0));
  const steps = outer(spacing);
  // Of a lattice that is too wide next to nothing is left of the covariance: a part of its step is.
  const covariance = steps.map((row, k) => row.map((step, l) =>
    points.reduce((sum, point, i) => sum + weights[i] * (point[k] - mean[k]) * (point[l] - mean[l]), 0) + 0.09 * step));
  return [mean, cholesky(covariance)];
}

function byWeight(points, weights) {
  const order = weights.map((_, i) => i).sort((i, j) => weights[j] - weights[i]);
  return { points: order.map((i) => points[i]), weights: order.map((i) => weights[i]) };
}

/** Guess the mean by the released values nearest to the leaves, with a spread of 1, and a fifth of leaves empty. */
export function startOf({ tree, nLeaves, population }) {
  const values = tree.values.filter((released) => released !== null).at(-1);
  const size = tree.sizes === null ? nLeaves : sumOf(tree.sizes);
  return [Math.log(Math.max(sumOf(values), 1) / size), 0, EMPTY].slice(0, Math.max(population.dimensions, 2));
}

function sumOf(numbers) {
  let sum = 0;
  for (let i = 0; i < numbers.length; i += 1) sum += numbers[i];
  return sum;
}

/** Climb to a mode: it, and a factor of the inverse of the negative Hessian there. */
function* newton(logDensity, from) {
  const d = from.length;
  let [middle, factor] = [from, identity(d, 0.3)];
  let height = yield* logDensity(middle);
  for (let round = 0; round < 25; round += 1) {
    const { gradient, curvature } = yield* differences(logDensity, middle, height, factor);
    const { values, vectors } = eigen(curvature);
    // In units of the factor; along a direction that bends up, or hardly, go a few units.
    const bent = values.map((value) => Math.max(value, 0.05));
    const along = bent.map((value, k) => vectors.reduce((sum, row, i) => sum + row[k] * gradient[i], 0) / value);
    let move = times(vectors, along);
    const length = Math.hypot(...move);
    move = move.map((part) => part * Math.min(1, 4 / Math.max(length, 1e-300)));
    let [proposed, higher] = [];
    for (;;) {
      proposed = moved(middle, factor, move);
      higher = yield* logDensity(proposed);
      if (higher >= height || Math.hypot(...move) < 1e-3) break;
      move = move.map((part) => part / 2);
    }
    if (higher >= height) [middle, height] = [proposed, higher];
    const wide = factor.map((row) => bent.map((value, k) => row.reduce((sum, entry, i) => sum + entry * vectors[i][k], 0) / Math.sqrt(value)));
    factor = cholesky(outer(wide));
    if (length < 0.3 && Math.max(...bent) < 4 && Math.min(...bent) > 0.25) break;
  }
  return { middle, factor };
}

/** The gradient and the negative Hessian, in units of the factor, by differences. */
function* differences(logDensity, middle, height, factor) {
  const [h, d] = [CURVED, middle.length];
  const at = (steps) => logDensity(moved(middle, factor, steps));
  const ends = [];
  for (const steps of axes(d, h)) ends.push(yield* at(steps));
  const [up, down] = [ends.slice(0, d), ends.slice(d)];
  const curvature = identity(d, 0);
  for (let i = 0; i < d; i += 1) {
    curvature[i][i] = -(up[i] + down[i] - 2 * height) / h ** 2;
    for (let j = 0; j < i; j += 1) {
      const steps = Array.from({ length: d }, (_, k) => (k === i || k === j ? h : 0));
      const both = yield* at(steps);
      const neither = yield* at(steps.map((step) => -step));
      curvature[i][j] = -(both + neither - up[i] - down[i] - up[j] - down[j] + 2 * height) / (2 * h * h);
      curvature[j][i] = curvature[i][j];
    }
  }
  return { gradient: up.map((one, i) => (one - down[i]) / (2 * h)), curvature };
}

/** Evaluate places of a lattice next to all that are not far below the highest. */
function* flooded(logDensity, d) {
  const origin = new Array(d).fill(0);
  const known = new Map([[origin.join(" "), { place: origin, log: yield* logDensity(origin) }]]);
  const fresh = [known.get(origin.join(" "))];
  let highest = fresh[0].log;
  while (fresh.length > 0 && known.size < MOST[d]) {
    // The highest first: from a start that is far off the way goes up.
    fresh.sort((one, other) => one.log - other.log);
    const { place, log } = fresh.pop();
    if (log < highest + Math.log(LEAST)) continue;
    for (const step of axes(d, 1)) {
      const next = place.map((at, k) => at + step[k]);
      const name = next.join(" ");
      if (known.has(name)) continue;
      const neighbour = { place: next, log: yield* logDensity(next) };
      known.set(name, neighbour);
      fresh.push(neighbour);
      highest = Math.max(highest, neighbour.log);
    }
  }
  const found = [...known.values()];
  return { places: found.map(({ place }) => place), logs: found.map(({ log }) => log) };
}
