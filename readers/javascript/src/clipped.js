/**
 * The likelihood of a parameter given one sum of counts that were clipped to a public bound C, behind noise.
 *
 * A clipped record is one of 0..C, so that the sum A of N of them has a distribution that Fourier inverts exactly
 * from the N-th power of one record's characteristic function phi, at P positions that hold all of it but e^-36:
 *
 *     sum over A of P(A) k(A) = 1 / P sum over j of phi(w)^N sum over A of k(A) e^(-i w A),   w = 2 pi j / P
 *
 * The noise k is exponential between its kinks, so that the inner sums are geometric series. What results is right
 * to about 1e-15 of the highest that the noise can be: enough wherever prior and released values agree.
 */

import { Likelihood } from "./likelihood.js";
import { logBinomial, logPoisson } from "./special.js";

const LEFT_OUT = 36;
/** The least that a sum is told to be, of the highest that it can be: below it, rounding is all that is left. */
const LEAST = 1e-18;
/** What the best sum must be at least, so that eight digits of a posterior are right. */
const RESOLVED = 1e-5;
/** Positions between which a clipped record may have any mean. */
const FARTHEST = 40;
/** For Chernoff's bounds, over C + 1. */
const TILTS = Array.from({ length: 26 }, (_, i) => 2 ** (i - 18));
export const LARGEST_BOUND = 256;

/** Probabilities of 0..C of a clipped Poisson count, of a rate given by its logarithm. */
export const clippedPoisson = (upper) => (logRate) => {
  const rate = Math.exp(logRate);
  return clipped(upper, (x) => logPoisson(x, rate), (x) => rate / (x + 1), rate);
};

/** The same of failures before so many successes, of a probability of success given by its logit. */
export const clippedFailures = (upper, successes) => (logit) => {
  const success = 1 / (1 + Math.exp(-logit));
  const failure = 1 / (1 + Math.exp(logit));
  const log = (x) =>
    x === 0
      ? -successes * Math.log1p(Math.exp(-logit))
      : logBinomial(x, successes + x, failure, success) - Math.log1p(x / successes);
  return clipped(upper, log, (x) => ((x + successes) / (x + 1)) * failure, (successes * failure) / success);
};

function clipped(upper, log, ratio, mean) {
  const found = Float64Array.from({ length: upper + 1 }, (_, x) => Math.exp(log(x)));
  if (mean > upper) {
    found[upper] = Math.max(1 - found.subarray(0, upper).reduce((all, one) => all + one, 0), 0);
  } else {
    let term = found[upper];
    for (let x = upper; term > 1e-18 * found[upper] && x < 1e7; x += 1) {
      term *= ratio(x);
      found[upper] += term;
    }
  }
  return found;
}

export class ClippedLikelihood extends Likelihood {
  /**
   * @param {(position: number) => Float64Array} record Probabilities of 0..C of one record.
   * @param {{values: number[], scale: number, reach: number}} noisy The released sum A, and unless N is public
   *   C N - A; the noise's scale; C.
   * @param {object} nPrior `low`, `high`, `log(n)`.
   */
  constructor(record, noisy, nPrior) {
    super({ given: (position) => this.given(position) }, noisy, nPrior);
    this.record = record;
    this.steep = this.rate * noisy.values.length;
  }

  given(position) {
    const chances = this.record(position);
    let [mean, square] = [0, 0];
    chances.forEach((chance, x) => (mean += x * chance));
    chances.forEach((chance, x) => (square += (x - mean) ** 2 * chance));
    this.chances = chances;
    this.total.perRow = mean;
    this.total.variancePerRow = square;
    this.waves = new Map();
    this.sizes = null;
    this.below = bounds(chances, (x) => mean - x);
    this.above = bounds(chances, (x) => x - mean);
  }

  /** Where n clipped records would have a total, and about how well it is known there. */
  start(exact) {
    this.found ??= this.fitted(exact);
    return this.found;
  }

  fitted({ n, total }) {
    const rows = Math.max(n, 1);
    const wanted = Math.min(Math.max(total / rows, 0.25 / rows), this.reach - 0.25 / rows);
    const mean = (position) => {
      this.given(position);
      return this.total.perRow;
    };
    let [low, high] = [-FARTHEST, FARTHEST];
    const falls = mean(low) > mean(high);
    while (high - low > 1e-9) {
      const middle = (low + high) / 2;
      if (mean(middle) < wanted !== falls) low = middle;
      else high = middle;
    }
    const slope = Math.abs(mean(low + 0.01) - mean(low - 0.01)) / 0.02;
    const error = Math.sqrt(rows * this.total.variancePerRow + 2 / this.rate ** 2) / rows;
    return { at: low, width: Math.min(error / Math.max(slope, 1e-300), 10) };
  }

  /** Whether the sums of a position are so far above what can be told that its posterior is right. */
  isResolved(position) {
    if (this.looked?.position !== position) this.looked = { position, terms: new Map() };
    this.hint = null;
    this.total.given(position);
    this.sumOverN(this.looked.terms);
    const n = this.hint ?? this.nPrior.low;
    return n < 1 || this.sumOverTotals(n) - this.highest(n) > Math.log(RESOLVED);
  }

  /** Log of the noise's density where it is highest. */
  highest(n) {
    return this.second === undefined ? 0 : -this.rate * Math.abs(this.reach * n - this.second - this.first);
  }

  sumOverTotals(n) {
    const { first, second, reach, steep } = this;
    const mean = n * this.total.perRow;
    const start = Math.floor(mean - Math.min(margin(this.below, n), mean));
    const last = Math.ceil(mean + Math.min(margin(this.above, n), reach * n - mean));
    const period = 2 ** Math.ceil(Math.log2(last - start + 1));
    const end = start + period;
    const other = second === undefined ? first : reach * n - second;
    const [low, high] = [Math.min(first, other), Math.max(first, other)];
    const inside = (x) => Math.min(Math.max(x, start), end);
    const [left, right] = [inside(low), inside(high)];
    // Heights of the noise at both ends of its outer pieces, over its highest.
    const [atStart, atLeft] = [Math.exp(Math.min(steep * (start - low), 0)), Math.exp(Math.min(steep * (left - low), 0))];
    const [atRight, atEnd] = [Math.exp(Math.min(steep * (high - right), 0)), Math.exp(Math.min(steep * (high - end), 0))];
    let sum = 0;
    for (const { j, logSize, angle, twice, rising, level, falling } of this.wavesOf(period, n)) {
      if (n * logSize < -LEFT_OUT) break;
      const size = twice * Math.exp(n * logSize);
      const turn = (x) => n * angle - (2 * Math.PI * modulo(j * x, period)) / period;
      const [s, l, r] = [turn(start), turn(left), turn(right)];
      // What pieces have between their ends: zero where a kink is beyond the positions.
      sum += size * (
        real(rising, l, left > start ? atLeft : 0) - real(rising, s, left > start ? atStart : 0) +
        (j === 0 ? right - left : real(level, r, 1) - real(level, l, 1)) +
        real(falling, s, right < end ? atEnd : 0) - real(falling, r, right < end ? atRight : 0)
      );
    }
    return this.highest(n) + Math.log(Math.max(sum / period, LEAST));
  }

  /** The frequencies of a period at which a power of phi matters, the largest first, and the noise's series there. */
  wavesOf(period, n) {
    const known = this.waves.get(period);
    if (known && n >= known.least) return known.waves;
    const least = n / 2;
    const waves = [];
    const last = Math.min(Math.ceil((this.endOfWaves(least) * period) / (2 * Math.PI)), period / 2);
    for (let j = 0; j <= last; j += 1) {
      const w = (2 * Math.PI * j) / period;
      const { logSize, angle } = characteristic(this.chances, w);
      if (least * logSize > -LEFT_OUT) {
        waves.push({
          j, logSize, angle, twice: j === 0 || 2 * j === period ? 1 : 2,
          rising: overLessOne(this.steep, w), level: j === 0 ? null : overLessOne(0, w), falling: overLessOne(-this.steep, w),
        });
      }
    }
    waves.sort((a, b) => b.logSize - a.logSize);
    this.waves.set(period, { least, waves });
    return waves;
  }

  /** The frequency beyond which no n-th power of phi matters, told from a scan: phi is a polynomial of degree C. */
  endOfWaves(n) {
    const steps = 4 * this.reach + 4;
    if (!this.sizes) {
      this.sizes = Array.from({ length: steps + 1 }, (_, i) => characteristic(this.chances, (Math.PI * i) / steps).logSize);
    }
    const last = this.sizes.findLastIndex((logSize) => n * logSize > -LEFT_OUT);
    // Within the first step phi falls about as that of a normal distribution.
    const normal = last > 0 ? Infinity : Math.sqrt((2.1 * LEFT_OUT) / (n * this.total.variancePerRow + 1e-300));
    return Math.min((Math.PI * (last + 1)) / steps, normal);
  }
}

/** The characteristic function of a record: the log of its size, and its angle. */
function characteristic(chances, w) {
  const [cos, sin] = [Math.cos(w), Math.sin(w)];
  let [re, im] = [0, 0];
  for (let x = chances.length - 1; x >= 0; x -= 1) [re, im] = [re * cos - im * sin + chances[x], re * sin + im * cos];
  return { logSize: w === 0 ? 0 : 0.5 * Math.log(re * re + im * im), angle: Math.atan2(im, re) };
}

/** Of some tilts t, the logs of the averages of e^(t away(x)): Chernoff's bounds are made of them. */
function bounds(chances, away) {
  return TILTS.map((tilt) => tilt / chances.length).map((tilt) => {
    let sum = 0;
    chances.forEach((chance, x) => (sum += chance * Math.expm1(tilt * away(x))));
    return { tilt, excess: Math.max(Math.log1p(sum), 0) };
  });
}

/** How far from its mean a sum of n records is at most, but for e^-36. */
function margin(found, n) {
  return found.reduce((least, { tilt, excess }) => Math.min(least, (LEFT_OUT + n * excess) / tilt), Infinity);
}

/** 1 / (e^(slope - i w) - 1), right where that is small: its real and its imaginary part. */
function overLessOne(slope, w) {
  const re = Math.expm1(slope) * Math.cos(w) - 2 * Math.sin(w / 2) ** 2;
  const im = -Math.exp(slope) * Math.sin(w);
  const square = re * re + im * im;
  return [re / square, -im / square];
}

/** The real part of a number times size e^(i angle). */
function real([re, im], angle, size) {
  return size === 0 ? 0 : size * (re * Math.cos(angle) - im * Math.sin(angle));
}

function modulo(x, period) {
  const rest = x % period;
  return rest < 0 ? rest + period : rest;
}
