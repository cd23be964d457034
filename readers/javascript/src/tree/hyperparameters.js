/**
 * Points of the hyperparameters of leaves, and their weights by the evidence of the tree: a lattice about the mode,
 * or of trees of many leaves the four points of a rule of degree three. As in Python, whose page says what both err by.
 */

const [STEP, FINE_STEP, FEW_LEAVES] = [1.5, 1, 50];
/** From here on four points are taken. */
export const MANY_LEAVES = 2000;
const LEAST = 3e-3;
const ROUNDS = 4;
const MOST = 400;
/** Step of differences, in guessed standard deviations. */
const CURVED = 0.3;

/** Weigh points: {points, weights, logEvidence, error}, the heaviest first. */
export function* weighedPoints(passer) {
  if (!passer.population.hasHyperparameters) {
    const { logEvidence } = yield* passer.up([0, 0], false);
    return { points: [[0, 0]], weights: [1], logEvidence, error: 0 };
  }
  const ofTree = (point) => passer.ofTree(point);
  const ofLeaves = function* ofLeaves(point) {
    yield;
    return passer.ofLeaves(point);
  };
  const { leavesAreReleased } = passer;
  const { middle, factor } = yield* newton(leavesAreReleased ? ofLeaves : ofTree, start(passer));
  const isLarge = leavesAreReleased && passer.nLeaves > MANY_LEAVES;
  return isLarge ? yield* fourPoints(passer, middle, factor) : yield* lattice(passer, ofTree, middle, factor);
}

function* fourPoints(passer, middle, factor) {
  const root = Math.SQRT2;
  const points = [[root, 0], [-root, 0], [0, root], [0, -root]].map((away) => moved(middle, factor, away));
  const above = [];
  for (const point of points) above.push((yield* passer.up(point, false)).logEvidence - passer.logEvidenceOfLeaves(point));
  // z' z / 2 = 1 at all four.
  const logs = points.map((point) => passer.ofLeaves(point) + 1);
  const highest = Math.max(...logs);
  const raw = logs.map((log) => Math.exp(log - highest));
  const total = raw.reduce((sum, one) => sum + one);
  const volume = highest + Math.log((total / 4) * 2 * Math.PI * Math.abs(determinant(factor)));
  const weights = raw.map((one) => one / total);
  const most = Math.max(...above);
  const logEvidence = volume + most + Math.log(weights.reduce((sum, weight, i) => sum + weight * Math.exp(above[i] - most), 0));
  const uneven = 4 * weights.reduce((sum, weight) => sum + weight * weight, 0) - 1;
  const widest = Math.sqrt(Math.max(...factor.map(([a, b]) => a * a + b * b)));
  return { ...byWeight(points, weights), logEvidence, error: uneven * widest };
}

function* lattice(passer, ofTree, mode, guess) {
  const step = passer.nLeaves <= FEW_LEAVES ? FINE_STEP : STEP;
  let [middle, factor] = [mode, guess];
  let [points, weights, places, logs, spacing] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    spacing = factor.map((row) => row.map((entry) => entry * step));
    const [from, by] = [middle, spacing];
    ({ places, logs } = yield* flooded((place) => ofTree(moved(from, by, place))));
    const highest = Math.max(...logs);
    const raw = logs.map((log) => Math.exp(log - highest));
    const total = raw.reduce((sum, one) => sum + one);
    weights = raw.map((one) => one / total);
    points = places.map((place) => moved(middle, spacing, place));
    const effective = 1 / weights.reduce((sum, weight) => sum + weight * weight, 0);
    // Of a normal density 4 pi / h^2 points count.
    const ideal = (4 * Math.PI) / step ** 2;
    if (0.5 * ideal < effective && effective < 2.5 * ideal) break;
    [middle, factor] = laidOutAgain(points, weights, spacing);
  }
  const heaviest = Math.max(...weights);
  const isKept = weights.map((weight) => weight >= LEAST * heaviest);
  const colours = places.map(([i, j]) => ((i + j) % 2 === 0 ? 1 : -1));
  const uneven = weights.reduce((sum, weight, i) => sum + weight * colours[i], 0);
  const leftOut = weights.reduce((sum, weight, i) => sum + (isKept[i] ? 0 : weight), 0);
  const highest = Math.max(...logs);
  const sum = logs.reduce((all, log) => all + Math.exp(log - highest), 0);
  const kept = byWeight(points.filter((_, i) => isKept[i]), weights.filter((_, i) => isKept[i]));
  return {
    points: kept.points,
    weights: kept.weights.map((weight) => weight / (1 - leftOut)),
    logEvidence: highest + Math.log(sum * Math.abs(determinant(spacing))),
    error: uneven ** 2 + leftOut,
  };
}

/** The mean and a factor of the covariance of weighed points. */
function laidOutAgain(points, weights, spacing) {
  const mean = [0, 1].map((k) => points.reduce((sum, point, i) => sum + weights[i] * point[k], 0));
  // Of a lattice that is too wide next to nothing is left of the covariance: a part of its step is.
  const entry = (k, l) =>
    points.reduce((sum, point, i) => sum + weights[i] * (point[k] - mean[k]) * (point[l] - mean[l]), 0) +
    0.09 * (spacing[k][0] * spacing[l][0] + spacing[k][1] * spacing[l][1]);
  return [mean, cholesky(entry(0, 0), entry(1, 0), entry(1, 1))];
}

function byWeight(points, weights) {
  const order = weights.map((_, i) => i).sort((i, j) => weights[j] - weights[i]);
  return { points: order.map((i) => points[i]), weights: order.map((i) => weights[i]) };
}

/** Guess the mean by the released values nearest to the leaves, with a spread of 1. */
function start({ tree, nLeaves }) {
  const values = tree.values.filter((released) => released !== null).at(-1);
  const size = tree.sizes === null ? nLeaves : sumOf(tree.sizes);
  return [Math.log(Math.max(sumOf(values), 1) / size), 0];
}

function sumOf(numbers) {
  let sum = 0;
  for (let i = 0; i < numbers.length; i += 1) sum += numbers[i];
  return sum;
}

/** Climb to a mode of two variables: it, and a factor of the inverse of the negative Hessian there. */
function* newton(logDensity, from) {
  let [middle, factor] = [from, [[0.3, 0], [0, 0.3]]];
  let height = yield* logDensity(middle);
  for (let round = 0; round < 25; round += 1) {
    const { gradient, curvature } = yield* differences(logDensity, middle, height, factor);
    const { values, vectors } = eigen(curvature);
    // In units of the factor; along a direction that bends up, or hardly, go a few units.
    const bent = values.map((value) => Math.max(value, 0.05));
    const along = [0, 1].map((k) => (vectors[0][k] * gradient[0] + vectors[1][k] * gradient[1]) / bent[k]);
    let move = [0, 1].map((i) => vectors[i][0] * along[0] + vectors[i][1] * along[1]);
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
    const wide = [0, 1].map((i) => [0, 1].map((k) => (factor[i][0] * vectors[0][k] + factor[i][1] * vectors[1][k]) / Math.sqrt(bent[k])));
    const entry = (i, j) => wide[i][0] * wide[j][0] + wide[i][1] * wide[j][1];
    factor = cholesky(entry(0, 0), entry(1, 0), entry(1, 1));
    if (length < 0.3 && Math.max(...bent) < 4 && Math.min(...bent) > 0.25) break;
  }
  return { middle, factor };
}

/** The gradient and the negative Hessian, in units of the factor, by differences. */
function* differences(logDensity, middle, height, factor) {
  const h = CURVED;
  const at = (i, j) => logDensity(moved(middle, factor, [i * h, j * h]));
  const [up, down, right, left] = [yield* at(1, 0), yield* at(-1, 0), yield* at(0, 1), yield* at(0, -1)];
  const [both, neither] = [yield* at(1, 1), yield* at(-1, -1)];
  const mixed = (both + neither - up - down - right - left + 2 * height) / (2 * h * h);
  return {
    gradient: [(up - down) / (2 * h), (right - left) / (2 * h)],
    curvature: [-(up + down - 2 * height) / h ** 2, -mixed, -(right + left - 2 * height) / h ** 2],
  };
}

/** Evaluate places of a lattice next to all that are not far below the highest. */
function* flooded(logDensity) {
  const name = ([i, j]) => `${i} ${j}`;
  const known = new Map([[name([0, 0]), { place: [0, 0], log: yield* logDensity([0, 0]) }]]);
  const fresh = [[0, 0]];
  const logOf = (place) => known.get(name(place)).log;
  while (fresh.length > 0 && known.size < MOST) {
    // The highest first: from a start that is far off the way goes up.
    fresh.sort((one, other) => logOf(one) - logOf(other));
    const [i, j] = fresh.pop();
    const highest = Math.max(...[...known.values()].map(({ log }) => log));
    if (logOf([i, j]) < highest + Math.log(LEAST)) continue;
    for (const place of [[i + 1, j], [i - 1, j], [i, j + 1], [i, j - 1]]) {
      if (known.has(name(place))) continue;
      known.set(name(place), { place, log: yield* logDensity(place) });
      fresh.push(place);
    }
  }
  const found = [...known.values()];
  return { places: found.map(({ place }) => place), logs: found.map(({ log }) => log) };
}

/** A point, by a matrix and steps of its columns. */
function moved(from, [first, second], [i, j]) {
  return [from[0] + first[0] * i + first[1] * j, from[1] + second[0] * i + second[1] * j];
}

function determinant([[a, b], [c, d]]) {
  return a * d - b * c;
}

/** The lower factor of a symmetric matrix. */
function cholesky(a, b, d) {
  const first = Math.sqrt(a);
  return [[first, 0], [b / first, Math.sqrt(d - (b / first) ** 2)]];
}

/** Eigenvalues, and eigenvectors in columns, of [[a, b], [b, d]]. */
function eigen([a, b, d]) {
  const angle = 0.5 * Math.atan2(2 * b, a - d);
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return {
    values: [a * c * c + 2 * b * c * s + d * s * s, a * s * s - 2 * b * c * s + d * c * c],
    vectors: [[c, -s], [s, c]],
  };
}
