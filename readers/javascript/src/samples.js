/** Samples, of a posterior or of a quantile: what a manifest has to state of one, and its points. */

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
  const scale = scaleOf(range, draws, { measure, amount }, LEAST_SCALE);
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

const [FEWEST_BINS, MOST_BINS] = [2, 4096];
const QUANTILE_UNIT = 10_000n;

/** Whether the bin of a quantile was drawn: of a manifest's entry. */
export function isQuantile(entry) {
  return isSampled(entry) && entry.quantile !== undefined;
}

/** How many points each draw is one of: of the grid, or bins. */
export function numberOfPoints(entry) {
  return isQuantile(entry) ? binEnds(entry.parameters.bins).length : entry.grid;
}

/** The ends of the bins of a histogram, in order, as exact numbers; an atom divides the bin that it lies in. */
export function binEnds({ edges, atoms }) {
  const inner = edges.map((edge) => number(edge, "bins.edges"));
  const alone = atoms.map((atom) => number(atom, "bins.atoms"));
  const points = [...inner, ...alone.filter((atom) => !inner.some((edge) => compare(atom, edge) === 0))].sort(compare);
  const isAtom = (point) => alone.some((atom) => compare(atom, point) === 0);
  return points.flatMap((point, at) => [
    ...(isAtom(point) ? [[point, point]] : []),
    ...(at + 1 < points.length ? [[point, points[at + 1]]] : []),
  ]);
}

/** What the bins of an entry are called, in order; refuses what no histogram has. */
export function binLabels({ bins, atoms, lower, upper }, place = "statistics") {
  const isList = (texts) => Array.isArray(texts) && texts.every((text) => typeof text === "string");
  const wrong = () => refused(`${place}.bins`, "they are no bins");
  if (!isList(bins) || !isList(atoms) || bins.length < 2) throw wrong();
  const [edges, alone] = [bins, atoms].map((texts) => texts.map((text) => number(text, `${place}.bins`)));
  const rises = (numbers) => numbers.every((one, i) => i === 0 || compare(numbers[i - 1], one) < 0);
  const isWithin = (one) => compare(edges[0], one) <= 0 && compare(one, edges.at(-1)) <= 0;
  if (!rises(edges) || !rises(alone) || !alone.every(isWithin)) throw wrong();
  const ends = [lower, upper].map((end) => number(end, `${place}.bounds`));
  if (compare(ends[0], edges[0]) !== 0 || compare(ends[1], edges.at(-1)) !== 0) throw wrong();
  const all = binEnds({ edges: bins, atoms });
  if (all.length < FEWEST_BINS || all.length > MOST_BINS) throw wrong();
  const isAtom = (point) => alone.some((atom) => compare(atom, point) === 0);
  return all.map(([begins, stops], i) => {
    if (compare(begins, stops) === 0) return `{${format(begins)}}`;
    const holdsUpper = i === all.length - 1 && !isAtom(stops);
    return `${isAtom(begins) ? "(" : "["}${format(begins)}, ${format(stops)}${holdsUpper ? "]" : ")"}`;
  });
}

/** What follows of a drawn quantile from the plan: the rest of its entry, its range sensitivity too. */
export function quantileFields(entry, { measure, amount }, terms, stated, place) {
  const { sample, bins, atoms } = entry;
  onlyKeys(sample, ["draws", "quantile"], [], `${place}.sample`);
  const draws = integer(sample.draws, `${place}.sample.draws`);
  if (draws < 1n || draws > MOST_DRAWS) throw refused(`${place}.sample.draws`, "it is no number of draws");
  const quantile = number(sample.quantile, `${place}.sample.quantile`);
  const { n: part, d: whole } = quantile;
  if (part < 1n || part >= whole || QUANTILE_UNIT % whole !== 0n) throw refused(`${place}.sample.quantile`, "it is no quantile");
  const categories = binLabels(entry, place);
  const nBins = categories.length;
  const farther = part > whole - part ? part : whole - part;
  const moved = !terms.replaces ? farther : terms.cells === 1 ? whole : 2n * farther;
  const rows = entry.rows_of === "units" ? 1 : terms.rows;
  const range = moved * BigInt(rows) * BigInt(Math.min(2, nBins - 1)) * LEAST_SCALE;
  if (range > LARGEST_RANGE) throw refused(`${place}.range_sensitivity`, "it is above 2^62");
  const scale = scaleOf(range, draws, { measure, amount }, 1n);
  if (scale > LARGEST_SCALE) throw refused(`${place}.scale`, "it is above 2^46");
  const [lower, upper] = [entry.lower, entry.upper].map((end) => format(number(end, `${place}.bounds`)));
  return {
    quantile: format(quantile),
    draws: Number(draws),
    range_sensitivity: String(range),
    scale: String(scale),
    rank_scale: format(rational(scale, LEAST_SCALE * whole)),
    parameters: { categories, lower, upper, lattice_bits: null, bins: { edges: bins, atoms } },
  };
}

/** The least integer scale, at least `floor`, at which all draws lose less than is asked. */
function scaleOf(range, draws, { measure, amount }, floor) {
  const left = multiply(amount, BELOW_LOSS);
  const ofRho = divide(rational(draws * range * range, 8n), left);
  const { n, d } = divide(rational(draws * range), left);
  const least = (measure === "rho" ? rootRoundedDown(ofRho.n / ofRho.d) : n / d) + 1n;
  return least < floor ? floor : least;
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
