// How two independent posteriors differ, by quadrature: no draws. A law is tabulated where it has mass; its
// distribution function then gives that of a difference and of a ratio.

const TAIL = 1e-8;
const POINTS = [500, 2000, 8000];
const LEAST_MASS = 1 - 1e-5;

/**
 * Difference and ratio of two independent laws.
 *
 * @param {{mean: number, sd: number, quantile: function(number): number, density: function(number[]): number[]}}
 *   first, second
 * @param {number} mass - of the intervals, which are central
 * @returns {{greater: number, difference: Object, ratio: Object|null}|null} null where a law cannot be
 *   tabulated; the ratio is null where the second may be zero or below
 */
export function contrast(first, second, mass) {
  const left = tabulated(first);
  const right = tabulated(second);
  if (left === null || right === null) return null;
  // The average is over the narrower law: beside it the distribution function of the other is smooth.
  const below =
    left.high - left.low < right.high - right.low
      ? (shift) => 1 - left.average((value) => right.below(value - shift))
      : (shift) => right.average((value) => left.below(value + shift));
  const ends = [(1 - mass) / 2, (1 + mass) / 2];
  const reach = [left.low - right.high, left.high - right.low];
  const [lower, median, upper] = [ends[0], 0.5, ends[1]].map((share) => solved(below, share, ...reach));
  return {
    greater: 1 - below(0),
    difference: {
      mean: first.mean - second.mean,
      sd: Math.hypot(first.sd, second.sd),
      median,
      lower,
      upper,
    },
    ratio: ratio(left, right, ends),
  };
}

function ratio(left, right, ends) {
  if (right.low <= 0 || left.low < 0) return null;
  const below =
    left.high / left.low < right.high / right.low
      ? (logarithm) => 1 - left.average((value) => right.below(value / Math.exp(logarithm)))
      : (logarithm) => right.average((value) => left.below(value * Math.exp(logarithm)));
  const reach = [Math.log(Math.max(left.low, 1e-300) / right.high), Math.log(left.high / right.low)];
  const [lower, median, upper] = [ends[0], 0.5, ends[1]].map((share) => Math.exp(solved(below, share, ...reach)));
  return { median, lower, upper };
}

/** Tabulate a law on nodes that crowd at both ends, where densities may be steep. */
function tabulated(law) {
  const low = law.quantile(TAIL);
  const high = law.quantile(1 - TAIL);
  if (!(Number.isFinite(low) && Number.isFinite(high) && low < high)) return null;
  for (const size of POINTS) {
    const table = tabulatedAt(law, low, high, size);
    if (Math.abs(table.mass - 1) <= 1 - LEAST_MASS) return table;
  }
  return null;
}

function tabulatedAt(law, low, high, size) {
  const width = high - low;
  const step = 1 / size;
  const nodes = Array.from(
    { length: size + 1 },
    (_, index) => low + width * Math.sin((Math.PI * index) / size / 2) ** 2,
  );
  const densities = law.density(nodes);
  const slopes = nodes.map((_, index) => densities[index] * width * (Math.PI / 2) * Math.sin((Math.PI * index) / size));
  // At an end a density may have no bound: what the nodes beside it lead to.
  slopes[0] = Math.max(0, 3 * slopes[1] - 3 * slopes[2] + slopes[3]);
  slopes[size] = Math.max(0, 3 * slopes[size - 1] - 3 * slopes[size - 2] + slopes[size - 3]);
  const cumulated = [0];
  for (let index = 0; index < size; index += 1) {
    const [before, from, to, after] = [-1, 0, 1, 2].map(
      (offset) => slopes[index + offset] ?? slopes[index + (offset < 0 ? 0 : 1)],
    );
    cumulated.push(cumulated[index] + (step / 24) * (13 * (from + to) - before - after));
  }
  const mass = cumulated[size];
  return {
    low,
    high,
    mass,
    below(value) {
      if (value <= low) return 0;
      if (value >= high) return 1;
      const at = (2 / Math.PI) * Math.asin(Math.sqrt((value - low) / width)) * size;
      const index = Math.min(Math.floor(at), size - 1);
      return hermite(cumulated, slopes, index, at - index, step) / mass;
    },
    average(of) {
      let sum = (slopes[0] * of(nodes[0]) + slopes[size] * of(nodes[size])) / 2;
      for (let index = 1; index < size; index += 1) sum += slopes[index] * of(nodes[index]);
      return (sum * step) / mass;
    },
  };
}

function hermite(values, slopes, index, share, step) {
  const rest = 1 - share;
  return (
    (1 + 2 * share) * rest * rest * values[index] +
    share * rest * rest * step * slopes[index] +
    share * share * (3 - 2 * share) * values[index + 1] -
    share * share * rest * step * slopes[index + 1]
  );
}

/** Where an increasing function reaches a value, by halving. */
function solved(increasing, value, low, high) {
  for (let turn = 0; turn < 60; turn += 1) {
    const middle = (low + high) / 2;
    if (increasing(middle) < value) low = middle;
    else high = middle;
    if (high - low <= 1e-13 * Math.max(Math.abs(low), Math.abs(high))) break;
  }
  return (low + high) / 2;
}
