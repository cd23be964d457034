/**
 * Distributions of the total A of N records, in lattice steps, given the parameter.
 *
 * Each has `at(n)`, which fixes N; then `log(x)` at a position x, of whole numbers `ratio(x)` of the
 * probabilities of x + 1 and x, and of the log density plus a line of slope s in A: `slope(x, s)`,
 * `curvature(x, s)` (what the slope falls by) and `mode(s)`, all approximate: they only place nodes. A
 * position is A, or log A where `support` is `positive`; densities are those of the position.
 */

import { logBinomial, logGamma, logPoisson } from "./special.js";

const LOG_TWO_PI = Math.log(2 * Math.PI);

/** Successes among m N trials of a probability, given by its logit. */
export class BinomialTotal {
  constructor(trials) {
    this.support = "integers";
    this.trials = trials;
  }

  given(logit) {
    this.logit = logit;
    this.p = 1 / (1 + Math.exp(-logit));
    this.q = 1 / (1 + Math.exp(logit));
    this.odds = Math.exp(logit);
    this.perRow = this.trials * this.p;
    this.variancePerRow = this.trials * this.p * this.q;
  }

  at(n) {
    this.most = this.trials * n;
  }

  log(x) {
    return logBinomial(x, this.most, this.p, this.q);
  }

  ratio(x) {
    return ((this.most - x) / (x + 1)) * this.odds;
  }

  mode(s) {
    return this.most / (1 + Math.exp(-(this.logit + s)));
  }

  slope(x, s) {
    return Math.log((this.most - x + 0.5) / (x + 0.5)) + this.logit + s;
  }

  curvature(x) {
    return 1 / (x + 0.5) + 1 / (this.most - x + 0.5);
  }
}

/** The sum of N Poisson counts of a rate, given by its logarithm. */
export class PoissonTotal {
  constructor() {
    this.support = "integers";
    this.most = Infinity;
  }

  given(logRate) {
    this.rate = Math.exp(logRate);
    this.perRow = this.rate;
    this.variancePerRow = this.rate;
  }

  at(n) {
    this.mean = n * this.rate;
  }

  log(x) {
    return logPoisson(x, this.mean);
  }

  ratio(x) {
    return this.mean / (x + 1);
  }

  mode(s) {
    return this.mean * Math.exp(s);
  }

  slope(x, s) {
    return Math.log(this.mean / (x + 0.5)) + s;
  }

  curvature(x) {
    return 1 / (x + 0.5);
  }
}

/** Failures before r N successes, of a probability of success given by its logit. */
export class NegativeBinomialTotal {
  constructor(successes) {
    this.support = "integers";
    this.most = Infinity;
    this.successes = successes;
  }

  given(logit) {
    this.p = 1 / (1 + Math.exp(-logit));
    this.q = 1 / (1 + Math.exp(logit));
    this.logQ = logit > 0 ? -logit - Math.log1p(Math.exp(-logit)) : -Math.log1p(Math.exp(logit));
    this.perRow = (this.successes * this.q) / this.p;
    this.variancePerRow = this.perRow / this.p;
  }

  at(n) {
    this.r = this.successes * n;
  }

  log(x) {
    if (x === 0) return this.q < 0.1 ? this.r * Math.log1p(-this.q) : this.r * Math.log(this.p);
    return logBinomial(x, this.r + x, this.q, this.p) - Math.log1p(x / this.r);
  }

  ratio(x) {
    return ((x + this.r) / (x + 1)) * this.q;
  }

  mode(s) {
    const q = this.q * Math.exp(s);
    return q >= 1 ? Infinity : (Math.max(this.r - 1, 0) * q) / (1 - q);
  }

  slope(x, s) {
    return Math.log((x + this.r) / (x + 1)) + this.logQ + s;
  }

  curvature(x) {
    return Math.max(1 / (x + 1) - 1 / (x + this.r), 0);
  }
}

/** A total that is Gamma(k N, rate) in T's unit, of a rate given by its logarithm; positions are log A. */
export class GammaTotal {
  constructor(shape, step) {
    this.support = "positive";
    this.shape = shape;
    this.logStep = Math.log(step);
  }

  given(logRate) {
    this.logRate = logRate + this.logStep; // a step
    this.rate = Math.exp(this.logRate);
    this.perRow = this.shape / this.rate;
    this.variancePerRow = this.perRow / this.rate;
  }

  at(n) {
    this.k = this.shape * n;
    this.logK = Math.log(this.k);
    this.logGammaOfNext = this.k < 1e6 ? logGamma(this.k + 1) : 0;
  }

  log(x) {
    const reach = x + this.logRate;
    if (reach < -650) return this.k * reach - this.logGammaOfNext + this.logK;
    return logPoisson(this.k, Math.exp(reach)) + this.logK;
  }

  mode(s) {
    const rate = this.rate - s;
    return rate > 0 ? Math.log(this.k / rate) : Infinity;
  }

  slope(x, s) {
    return this.k - (this.rate - s) * Math.exp(x);
  }

  curvature(x, s) {
    return Math.max((this.rate - s) * Math.exp(x), 0);
  }
}

/** The total of N normals of a mean, less the lower bounds, in steps. */
export class NormalTotal {
  constructor(variance, lower, step) {
    this.support = "real";
    this.lower = lower;
    this.step = step;
    this.variancePerRow = variance / step / step;
  }

  given(mean) {
    this.perRow = (mean - this.lower) / this.step;
  }

  at(n) {
    this.mean = n * this.perRow;
    this.variance = n * this.variancePerRow;
    this.constant = -0.5 * (Math.log(this.variance) + LOG_TWO_PI);
  }

  log(x) {
    const difference = x - this.mean;
    return this.constant - (0.5 * difference * difference) / this.variance;
  }

  mode(s) {
    return this.mean + this.variance * s;
  }

  slope(x, s) {
    return (this.mean - x) / this.variance + s;
  }

  curvature() {
    return 1 / this.variance;
  }
}
