/**
 * Whether released quantities are where the prior of the parameters expects them, given the released n.
 *
 * As Python's `Posterior.conflict`: with m, v and w the mean, the variance and the third central moment of one
 * record's part under a parameter, what is released of a quantity minus m times the released n is a sum of the
 * records' deviations and of Laplace noise. Its tail is averaged over the prior, whose parameters are evenly spaced
 * in the logit of its distribution function. The prior of N is not judged here.
 */

import { parseRational, toNumber } from "./exact.js";

/** A tail below this, times the number of quantities, is a conflict. */
export const THRESHOLD = 1e-4;
/** Cells that are compared; of more, so many evenly spaced ones: fewer where priors are moved, which are several. */
export const [MOST, MOST_MOVED] = [1024, 128];
/** Logits of the prior's distribution function; beyond them a line distribution holds nothing. */
const [DEEPEST, STEP] = [26, 0.5];
const [LOGITS, HALVINGS, BEND] = [[-45, 33], 24, 0.5];
const STEPS = Array.from({ length: 37 }, (_, i) => 0.15 + 0.3 * i);
const LONGEST_NAME = 160;
/** So many worlds are all worked out; of more, what may be left out of a tail, and above what none is worked out. */
const [FEW, NEGLIGIBLE, PLAIN] = [200, 0.01, 0.01];

/** Parameters of the prior, each with the probability that it stands for. */
export function worldsOf(distribution) {
  const share = (logit) => 1 / (1 + Math.exp(-logit));
  const worlds = [];
  for (let logit = -DEEPEST; logit < DEEPEST; logit += STEP) {
    worlds.push({
      value: distribution.quantile(share(logit + STEP / 2)),
      weight: share(logit + STEP) - share(logit),
    });
  }
  const total = worlds.reduce((sum, { weight }) => sum + weight, 0);
  return worlds.map(({ value, weight }) => ({ value, weight: weight / total }));
}

/**
 * The two-sided tail of one quantity.
 *
 * @param {{mean: number, variance: number, third: number, weight: number}[]} worlds Moments of a record's part.
 * @param {{own: number, ofN: number}[]} components Coefficients in the quantity and in n; 0 in n where it is known.
 * @param {number} scale Of the noise.
 * @param {number} estimate Of the quantity.
 * @param {number} n Released or known.
 */
export function tailOf(worlds, components, scale, estimate, n) {
  const noisy = components.filter(({ own, ofN }) => own !== 0 || ofN !== 0);
  const sdOfN = scale * Math.sqrt(2 * noisy.reduce((sum, { ofN }) => sum + ofN ** 2, 0));
  const records = Math.max(n, 0) + sdOfN;
  let [above, below] = [0, 0];
  for (const { mean, weight } of worlds) {
    if (estimate - mean * n <= 0) above += weight;
    if (estimate - mean * n >= 0) below += weight;
  }
  // Where a world expects as much as was released, its chance of that much is half or about that.
  if (worlds.length > FEW && Math.min(above, below) >= PLAIN) return Math.min(above, below);
  const sign = above <= below ? 1 : -1;
  const asked = worlds.map(({ mean, variance, third, weight }) => {
    const coefficients = noisy.map(({ own, ofN }) => Math.abs(own - mean * ofN));
    // Laplace noise half a lattice step nearer makes tails of the discrete noise no smaller.
    const gap = sign * (estimate - mean * n) - coefficients.reduce((sum, one) => sum + one, 0) / 2;
    const scales = coefficients.map((one) => one * scale);
    return { weight, gap, scales, variance: records * variance, third: sign * records * third };
  });
  let tail = 0;
  if (asked.length <= FEW) {
    for (const { weight, gap, scales, variance, third } of asked) tail += weight * upperTail(gap, scales, variance, third);
    return Math.min(1, 2 * tail);
  }
  // Of many worlds, those that matter by an exponential bound of their tails.
  const bounded = asked.map((one) => ({ ...one, bound: one.weight * bound(one) })).sort((a, b) => b.bound - a.bound);
  let left = bounded.reduce((sum, one) => sum + one.bound, 0);
  for (const one of bounded) {
    if (left <= NEGLIGIBLE * tail) break;
    tail += one.weight * upperTail(one.gap, one.scales, one.variance, one.third);
    left -= one.bound;
  }
  return Math.min(1, 2 * tail);
}

/** Chernoff's bound of a tail, the least of three. */
function bound({ gap, scales, variance }) {
  const last = 0.95 / Math.max(...scales, 1e-300);
  const noise = 2 * scales.reduce((sum, one) => sum + one * one, 0);
  const saddle = Math.min(Math.max(gap / (variance + noise), 0), last);
  return Math.min(
    ...[last / 2, last, saddle].map((s) => {
      const moments = scales.reduce((sum, one) => sum - Math.log1p(-((one * s) ** 2)), (variance * s * s) / 2);
      return Math.exp(Math.min(moments - s * gap, 0));
    }),
  );
}

/** The chance that Laplace numbers of these scales, and records of this variance and third moment, add to x or more. */
export function upperTail(x, scales, variance, third) {
  if (x < 0) return 1 - upperTail(-x, scales, variance, -third);
  const unit = Math.max(...scales, 1e-300);
  const sum = { scales: scales.map((one) => one / unit), variance: variance / unit ** 2, step: 0 };
  if (variance > 0) sum.step = Math.max(third, 0) / variance / unit / 2;
  const last = 1 / Math.max(sum.step, 1);
  const at = x / unit;
  let [low, high] = LOGITS;
  for (let i = 0; i < HALVINGS; i += 1) {
    const middle = (low + high) / 2;
    const saddle = last / (1 + Math.exp(-middle));
    if (slope(sum, saddle) - at - 1 / saddle > 0) high = middle;
    else low = middle;
  }
  const saddle = last / (1 + Math.exp(-(low + high) / 2));
  const width = 1 / Math.sqrt(curvature(sum, saddle) + 1 / saddle ** 2);
  let integral = 0;
  for (const step of STEPS) {
    const line = [saddle + width * BEND * (Math.cosh(step) - 1), width * Math.sinh(step)];
    const along = [width * BEND * Math.sinh(step), width * Math.cosh(step)];
    const [re, im] = logNormal(sum, line);
    const [size, angle] = [Math.exp(re - line[0] * at), im - line[1] * at];
    let value = times(over([size * Math.cos(angle), size * Math.sin(angle)], line), along);
    for (const one of sum.scales) value = over(value, minus([1, 0], times(times(line, line), [one * one, 0])));
    integral += value[1];
  }
  return Math.min(Math.max((integral * 0.3) / Math.PI, 0), 1);
}

function slope({ scales, variance, step }, s) {
  const noise = scales.reduce((sum, one) => sum + (2 * one * one * s) / (1 - (one * s) ** 2), 0);
  return noise + (variance * s) / (1 - step * s);
}

function curvature({ scales, variance, step }, s) {
  const of = (one) => (2 * one * one * (1 + (one * s) ** 2)) / (1 - (one * s) ** 2) ** 2;
  return scales.reduce((sum, one) => sum + of(one), 0) + variance / (1 - step * s) ** 2;
}

/** Log of the moments of the part that is no noise: a gamma distribution of the same skewness, or a normal one. */
function logNormal({ variance, step }, s) {
  const half = times([variance / 2, 0], times(s, s));
  if (step === 0) return half;
  const u = [step * s[0], step * s[1]];
  if (Math.hypot(...u) < 1e-3) {
    const inner = [1 / 3 + 0.25 * u[0], 0.25 * u[1]];
    const [re, im] = times(u, inner);
    return times(half, [1 + 2 * re, 2 * im]);
  }
  const [log, angle] = [Math.log(Math.hypot(1 - u[0], u[1])), Math.atan2(-u[1], 1 - u[0])];
  return times(half, over([-2 * (log + u[0]), -2 * (angle + u[1])], times(u, u)));
}

const minus = ([a, b], [c, d]) => [a - c, b - d];
const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
const over = ([a, b], [c, d]) => {
  const size = c * c + d * d;
  return [(a * c + b * d) / size, (b * c - a * d) / size];
};

/**
 * Judge a cell's quantities but n.
 *
 * @param {object} statistic Its entry in the manifest.
 * @param {bigint[]} values
 * @param {number | null} publicN The N that is known, if any.
 * @param {function(number): object[]} worldsOfQuantity Worlds with moments, by the quantity's place.
 * @param {string} prior
 * @param {object} labels What categories are called, in sentences.
 * @returns {{quantities: string[], tails: number[], isSaid: boolean[], lines: string[]}}
 */
export function judged(statistic, values, publicN, worldsOfQuantity, prior, labels = {}) {
  const parts = statistic.components.map((name, position) => ({ name, value: Number(values[position]) }));
  const coefficients = (quantity) =>
    parts.map(({ name }) => toNumber(parseRational(quantity.coefficients[name] ?? "0")));
  const estimateOf = (own, quantity, n) =>
    own.reduce((sum, one, i) => sum + one * parts[i].value, 0) +
    (n === null ? 0 : toNumber(parseRational(quantity.public_n_coefficient ?? "0")) * n);
  const ofN = statistic.quantities.find(({ name }) => name === "n");
  const share = statistic.partition_total ? 1 / Number(statistic.partition_total) : 0;
  const nMap = publicN !== null ? parts.map(() => 0) : ofN ? coefficients(ofN) : parts.map(() => share);
  const n = publicN ?? estimateOf(nMap, { public_n_coefficient: "0" }, null);
  const scale = toNumber(parseRational(statistic.scale));
  const others = statistic.quantities.filter(({ name }) => name !== "n");
  const tails = others.map((quantity, place) => {
    const own = coefficients(quantity);
    const components = own.map((one, i) => ({ own: one, ofN: nMap[i] }));
    return tailOf(worldsOfQuantity(place), components, scale, estimateOf(own, quantity, publicN), n);
  });
  // Python judges n as well, and divides the threshold by all quantities.
  const number = tails.length + (publicN === null ? 1 : 0);
  const isSaid = tails.map((tail) => tail * number < THRESHOLD);
  const named = (calling) => others.map(({ name, category }) => (category ? `${name}[${calling(category)}]` : name));
  const called = named((category) => (Object.hasOwn(labels, category) ? labels[category] : category));
  return { quantities: named((category) => category), tails, isSaid, lines: linesOf(called, tails, isSaid, prior) };
}

function linesOf(called, tails, isSaid, prior) {
  const names = called.filter((_, i) => isSaid[i]);
  if (names.length === 0) return [];
  const shown = names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");
  const told = prior.length > LONGEST_NAME ? `${prior.slice(0, LONGEST_NAME)}...` : prior;
  const least = Math.min(...tails.filter((_, i) => isSaid[i]));
  const chance = least < 1e-300 ? "below 1e-300" : least.toPrecision(2);
  return [
    `conflict: the prior of the parameters, ${told}, and the released ${shown} disagree: under that prior the ` +
      `chance of values as far out is ${chance} where it is least; the intervals rest on both, and one of the two is wrong`,
  ];
}

/** Places of at most so many cells, evenly spaced. */
export function evenly(nCells, most) {
  const count = Math.min(nCells, most);
  const places = Array.from({ length: count }, (_, i) => (count === 1 ? 0 : Math.floor((i * (nCells - 1)) / (count - 1))));
  return [...new Set(places)];
}

/**
 * What all cells together say of a prior.
 *
 * @param {{alternative: string, logBayesFactor: number}[]} named Of each other prior, over the number of these.
 * @param {string} prior
 * @param {number} compared Cells.
 * @param {number} nCells
 * @returns {{alternative: string, logBayesFactor: number, compared: number, isAgainst: boolean, lines: string[]}}
 */
export function together(named, prior, compared, nCells) {
  const first = { alternative: "", logBayesFactor: 0 };
  const best = named.reduce((most, one) => (one.logBayesFactor > most.logBayesFactor ? one : most), named[0] ?? first);
  const isAgainst = best.logBayesFactor > Math.log(1 / THRESHOLD);
  const cells = compared < nCells ? `${compared} of ${nCells}` : `${compared}`;
  const times = `1e${(best.logBayesFactor / Math.LN10).toFixed(0)}`;
  const told = prior.length > LONGEST_NAME ? `${prior.slice(0, LONGEST_NAME)}...` : prior;
  const line =
    `conflict: the prior of the parameters, ${told}, and ${cells} cells together disagree: what was released is about ` +
    `${times} times as probable under ${best.alternative} as under this one, though no cell alone may tell; the ` +
    "intervals rest on it where noise hides cells";
  return { ...best, compared, isAgainst, lines: isAgainst ? [line] : [] };
}
