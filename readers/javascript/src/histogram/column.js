/**
 * What a histogram says of its column, from draws of its bins' weights, as in Python: nothing is known of where in its
 * bin a value is, so that a draw says of a number between which two it lies. An interval of the mass m goes from the
 * quantile (1 - m) / 2 of the low ones to the quantile (1 + m) / 2 of the high ones; estimates put values evenly into
 * bins. What is not known within half of the range is refused: its estimates are NaN, its interval stays.
 */

import { ReleaseError } from "../errors.js";
import { generator, normals, uniforms } from "../random.js";
import { finished } from "../tree/posterior.js";
import { histogramPosterior } from "./posterior.js";

export const [LAW, ROWS] = ["law", "rows"];
export const DRAWS = 4000;
/** Of the mean of a bin's values, in widths of the bin. */
const PLACE_SD = 0.1;
/** Of the range that an interval may span. */
const MOST_SHARE = 0.5;
const STEEPEST = 6;
const MASS = 0.95;

/** The column of one cell; yields often. Options: `of`, `draws`, `rng`, `most`. */
export function* columnOf(values, scale, bins, steps, { of = LAW, draws = DRAWS, rng = 1, most } = {}) {
  if (of !== LAW && of !== ROWS) throw new ReleaseError("usage", `of is ${LAW}, what records come from, or ${ROWS}, those counted`);
  if (!(Number.isInteger(draws) && draws >= 2)) throw new ReleaseError("usage", "draws: a whole number from 2 on");
  const posterior = yield* histogramPosterior(values, scale, bins, steps, { draws, most });
  const weights = yield* posterior.drawn(draws, { ofRows: of === ROWS, random: uniforms(rng) });
  return new Column({ posterior, weights, bins, of });
}

/** The column behind a histogram, in one cell. */
export class Column {
  constructor({ posterior, weights, bins, of }) {
    Object.assign(this, { posterior, bins, of });
    const widths = bins.lower.map((low, bin) => Math.max(bins.upper[bin] - low, 1e-300));
    const whole = widths.reduce((sum, width) => sum + width, 0);
    this.totals = Float64Array.from(weights, (draw) => draw.reduce((sum, one) => sum + one, 0));
    // Of nothing nothing is known: as wide as bins are.
    this.shares = weights.map((draw, i) => (this.totals[i] > 0 ? draw.map((one) => one / this.totals[i]) : widths.map((width) => width / whole)));
    this.upTo = this.shares.map((draw) => {
      let sum = 0;
      return draw.map((share) => (sum += share));
    });
  }

  /** How wide the public bounds are. */
  get span() {
    return this.bins.upper.at(-1) - this.bins.lower[0];
  }

  get logEvidence() {
    return this.posterior.logEvidence;
  }

  /** Means and standard deviations of the expected counts of bins, without draws. */
  expectedCounts() {
    return finished(this.posterior.expectedCounts());
  }

  /** How many records there are; of the law how many are expected. */
  n(mass = MASS) {
    return estimated(this.totals, this.totals, this.totals, mass, Infinity);
  }

  /** The value below which, or at which, a share q lies. */
  quantile(q, mass = MASS) {
    return estimated(...this.quantiles(q), mass, this.span);
  }

  median(mass = MASS) {
    return this.quantile(0.5, mass);
  }

  /** How far the quantile b is above the quantile a. */
  interquantileRange(a = 0.25, b = 0.75, mass = MASS) {
    if (!(a < b)) throw new ReleaseError("usage", "the first level is below the second");
    const [first, firstLow, firstHigh] = this.quantiles(a);
    const [second, secondLow, secondHigh] = this.quantiles(b);
    const less = (one, other) => one.map((number, i) => number - other[i]);
    return estimated(less(second, first), less(secondLow, firstHigh).map((gap) => Math.max(gap, 0)), less(secondHigh, firstLow), mass, this.span);
  }

  /** The share of values up to x; an edge that is no atom counts with the bin above it. */
  cdf(x, mass = MASS) {
    const { isBelow, isAbout, part } = this.divided(x, true);
    return estimated(...this.sharesOf(isBelow, isAbout, part), mass, 1);
  }

  /** The share of values of x or more, as the bounds leave them. */
  tailShare(x, mass = MASS) {
    const { isBelow, isAbout, part } = this.divided(x, false);
    const isAbove = isBelow.map((below, bin) => !below && !isAbout[bin]);
    return estimated(...this.sharesOf(isAbove, isAbout, part.map((one, bin) => (isAbout[bin] ? 1 - one : 0))), mass, 1);
  }

  /**
   * The mean of the column as the bounds leave it. With `isEven` it rests on a model of where in bins values are:
   * narrower, and approximate.
   */
  mean(mass = MASS, { isEven = false } = {}) {
    const { lower, upper } = this.bins;
    const places = this.places();
    const weighed = (ends) => Float64Array.from(this.shares, (draw, i) => dot(draw, ends(i)));
    const drawn = weighed((i) => places[i]);
    const end = (means, ofNone) => means.map((mean, i) => (this.totals[i] === 0 ? ofNone : mean));
    const [low, high] = isEven ? [drawn, drawn] : [weighed(() => lower), weighed(() => upper)];
    return estimated(drawn, end(low, lower[0]), end(high, upper.at(-1)), mass, this.span);
  }

  /** Gini's index of the column as the bounds leave it; where in bins values are is modelled. */
  gini(mass = MASS) {
    const { lower, upper } = this.bins;
    if (lower[0] < 0) throw new ReleaseError("usage", "Gini's index is of values of 0 or more");
    const places = this.places();
    const drawn = Float64Array.from(this.shares, (draw, i) => {
      let [upTo, between, within] = [0, 0, 0];
      const part = draw.map((share, bin) => share * places[i][bin]);
      draw.forEach((share, bin) => {
        upTo += part[bin];
        between += share * (2 * upTo - part[bin]);
        within += share * share * (upper[bin] - lower[bin]);
      });
      const total = Math.max(upTo, 1e-300);
      return 1 - between / total + within / (6 * total);
    });
    return estimated(drawn, drawn, drawn, mass, 1);
  }

  /** The density of every bin, per unit of the column; of atoms the share. */
  density(mass = MASS) {
    const widths = this.bins.lower.map((low, bin) => this.bins.upper[bin] - low || 1);
    return this.ofBins(this.shares, mass).map((one, bin) => mapped(one, (number) => number / widths[bin]));
  }

  /** The share up to the upper end of every bin. */
  distributionFunction(mass = MASS) {
    return this.ofBins(this.upTo, mass);
  }

  ofBins(drawn, mass) {
    return Array.from(this.bins.lower, (_, bin) => {
      const of = Float64Array.from(drawn, (draw) => draw[bin]);
      return estimated(of, of, of, mass, Infinity);
    });
  }

  /** Draws of a quantile, evenly in its bin, and what they lie between. */
  quantiles(q) {
    if (!(q > 0 && q < 1)) throw new ReleaseError("usage", "the level of a quantile lies between 0 and 1");
    const { lower, upper } = this.bins;
    const found = [0, 1, 2].map(() => new Float64Array(this.shares.length));
    this.upTo.forEach((upTo, draw) => {
      let bin = 0;
      while (bin < upTo.length - 1 && upTo[bin] < q) bin += 1;
      const inside = Math.min(Math.max(1 - (upTo[bin] - q) / Math.max(this.shares[draw][bin], 1e-300), 0), 1);
      const isEmpty = this.totals[draw] === 0;
      found[0][draw] = lower[bin] + inside * (upper[bin] - lower[bin]);
      found[1][draw] = isEmpty ? lower[0] : lower[bin];
      found[2][draw] = isEmpty ? upper.at(-1) : upper[bin];
    });
    return found;
  }

  /** Which bins are below x, or up to it where atoms count; which hold it; what part of these is below. */
  divided(x, withAtom) {
    if (typeof x !== "number" || !Number.isFinite(x)) throw new ReleaseError("usage", "x is a finite number");
    const { lower, upper } = this.bins;
    const last = lower.length - 1;
    // An atom holds its upper end, and so does the last bin: values beyond the bounds were moved there.
    const isBelow = Array.from(upper, (high, bin) => high < x || (high === x && (withAtom || !(lower[bin] === high || bin === last))));
    const isAbout = Array.from(lower, (low, bin) => low < x && x <= upper[bin] && !isBelow[bin]);
    const part = isAbout.map((about, bin) => (about ? (x - lower[bin]) / (upper[bin] - lower[bin] || 1) : 0));
    return { isBelow, isAbout, part };
  }

  /** Draws of the share of bins with a part of others, and what it lies between. */
  sharesOf(bins, about, part) {
    const found = [0, 1, 2].map(() => new Float64Array(this.shares.length));
    this.shares.forEach((draw, i) => {
      let [low, inside, others] = [0, 0, 0];
      draw.forEach((share, bin) => {
        if (bins[bin]) low += share;
        if (about[bin]) others += share;
        inside += share * part[bin];
      });
      [low + inside, low, low + others].forEach((share, which) => (found[which][i] = Math.min(share, 1)));
    });
    return found;
  }

  /** Draws of the mean of every bin's values: where a density that rises or falls evenly between bins has it. */
  places() {
    const { lower, upper } = this.bins;
    const inner = Array.from(lower, (_, bin) => bin).filter((bin) => upper[bin] > lower[bin]);
    const middles = inner.map((bin) => (lower[bin] + upper[bin]) / 2);
    // Of one release: the same draws give the same places.
    const normal = normals(generator("places"));
    return this.shares.map((draw) => {
      const found = Float64Array.from(lower);
      const logs = inner.map((bin) => Math.log(draw[bin] / (upper[bin] - lower[bin])));
      const rises = inner.slice(1).map((_, at) => {
        const rise = (logs[at + 1] - logs[at]) / (middles[at + 1] - middles[at]);
        return Number.isFinite(rise) ? rise : 0;
      });
      inner.forEach((bin, at) => {
        const width = upper[bin] - lower[bin];
        const known = [rises[at - 1], rises[at]].filter((rise) => rise !== undefined && rise !== 0);
        const slope = known.reduce((sum, rise) => sum + rise, 0) / Math.max(known.length, 1);
        const t = Math.min(Math.max(slope * width, -STEEPEST), STEEPEST);
        // The mean of exp(t u) on 0..1.
        const place = Math.abs(t) < 1e-3 ? 0.5 : 1 / -Math.expm1(-t) - 1 / t;
        found[bin] = lower[bin] + width * Math.min(Math.max(place + PLACE_SD * normal(), 0), 1);
      });
      return found;
    });
  }
}

function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
  return sum;
}

function mapped(estimate, of) {
  return { ...estimate, mean: of(estimate.mean), median: of(estimate.median), lower: of(estimate.lower), upper: of(estimate.upper) };
}

/** Sum up draws and what they lie between, in a range `span` wide. */
function estimated(drawn, low, high, mass, span) {
  if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
  const last = drawn.length - 1;
  const sorted = Float64Array.from(drawn).sort();
  const inOrder = (ends) => (ends === drawn ? sorted : Float64Array.from(ends).sort());
  const lower = inOrder(low)[Math.floor((last * (1 - mass)) / 2)];
  const upper = inOrder(high)[Math.ceil((last * (1 + mass)) / 2)];
  const isRefused = upper - lower > MOST_SHARE * span;
  const median = 0.5 * (sorted[last >> 1] + sorted[(last + 1) >> 1]);
  const mean = drawn.reduce((sum, one) => sum + one, 0) / drawn.length;
  return { mean: isRefused ? NaN : mean, median: isRefused ? NaN : median, lower, upper, mass, isRefused };
}
