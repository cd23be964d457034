/** Posteriors of one cell of a statistic with one sum. */

import { ClippedLikelihood, LARGEST_BOUND } from "./clipped.js";
import { NEGLIGIBLE } from "./clipping.js";
import { ReleaseError, shown } from "./errors.js";
import { ONE_SUM, knownOf, noisySums } from "./families.js";
import { MOST, MOST_MOVED, evenly, judged, together, worldsOf } from "./conflict.js";
import { CENTRAL, intervalOf } from "./intervals.js";
import { Likelihood } from "./likelihood.js";
import { LINES, LineDistribution } from "./line.js";
import { conjugate, fixed, movedPriors, parseNPrior, parsePrior, reciprocal } from "./priors.js";
import { TabulatedLikelihood, mayPause, stepDone } from "./tabulated.js";

export const NOISE_AWARE = "noise-aware";
export const PLUG_IN = "plug-in";
const BY_EVIDENCE = "by-evidence";

/** The least share of the posterior that an N = 0 must have to be kept. */
const LEAST_SHARE = 1e-11;

/**
 * @param {object} statistic Its entry in the manifest.
 * @param {bigint[]} values The cell's released values.
 * @param {{n: number | null, maxTotalRows: number}} release
 * @param {{prior?: string, nPrior?: string | number, method?: string}} options
 */
export function oneSumPosterior(statistic, values, release, options) {
  const family = ONE_SUM[statistic.family];
  const known = knownOf(statistic);
  const prior = parsePrior(options.prior ?? family.defaultPrior(known), family.prior);
  const line = LINES[prior.line];
  const nPrior = nPriorOf(statistic, release, options);
  const { noisy, exact, updated, starts, likelihoodOf } = termsOf(statistic, values, release, prior, options.kept);
  const plain = options.method === PLUG_IN
    ? plugIn(line, prior, updated, starts)
    : noiseAware(line, prior, starts, nPrior, likelihoodOf);
  const clipping = clippingOf(family, known, plain, options, shown(statistic.name));
  const distribution = clipping === "modelled"
    ? withClipping(line, prior, { exact, starts }, known.upper, shown(statistic.name), () =>
      options.kept.of(`clipped ${nPrior.text}`, () =>
        new TabulatedLikelihood(new ClippedLikelihood(family.clippedRecord(known), noisy, nPrior), starts[0].width)))
    : restricted(family, known, plain, { method: options.method, clipping });
  return new Posterior({
    parameters: [family.parameter],
    prior: prior.text,
    nPrior: nPrior?.text ?? null,
    method: options.method,
    clipping,
    defaultInterval: family.interval ?? CENTRAL,
    marginals: [{ line, distribution, prior }],
    judge: () => conflictOf(statistic, values, release, { line, prior, clipping }),
  });
}

/** What a cell's posterior is worked out from. */
function termsOf(statistic, values, release, prior, kept) {
  const family = ONE_SUM[statistic.family];
  const known = knownOf(statistic);
  const noisy = noisySums(statistic, values, release.n);
  const exact = projected(statistic, noisy, known, release.n);
  const updated = prior.components.map(({ numbers }) =>
    conjugate(family.prior, family.update(numbers, exact.n, exact.total, known)));
  const starts = updated.map((one) => one.start);
  const likelihoodOf = (ofN) =>
    kept.of(`${ofN.low} ${ofN.text}`, () =>
      new TabulatedLikelihood(new Likelihood(family.total(known, noisy.step), noisy, ofN), starts[0].width));
  return { noisy, exact, updated, starts, likelihoodOf };
}

/** Logs of how probable a cell's values are under priors, up to what no prior changes. */
function evidenceOf(statistic, values, release, priors, nPrior, kept) {
  // What was worked out is kept: slices begin again, and go on from there.
  return priors.map((prior) =>
    kept.of(`evidence ${nPrior.text} ${prior.text}`, () => {
      mayPause();
      const { starts, likelihoodOf } = termsOf(statistic, values, release, prior, kept);
      const { logMass } = noiseAware(LINES[prior.line], prior, starts, nPrior, likelihoodOf);
      // Another prior of the same cell is asked at once, and its likelihood is worth interpolating.
      kept.finish();
      stepDone();
      return { logMass };
    }).logMass,
  );
}

/**
 * Judge all cells together, as Python's `log_bayes_factors`: the family's default prior, and the stated one moved as
 * a whole, beside the stated one.
 *
 * @param {object} statistic Its entry in the manifest.
 * @param {function(number): bigint[]} valuesOf A cell's released values.
 * @param {number} nCells
 * @param {{n: number | null, maxTotalRows: number}} release
 * @param {{prior?: string, nPrior?: string | number, most?: number}} options
 * @param {function(number): object} keptOf Likelihoods of a cell.
 */
export function oneSumTogether(statistic, valuesOf, nCells, release, options, keptOf) {
  const family = ONE_SUM[statistic.family];
  const known = knownOf(statistic);
  const usual = parsePrior(family.defaultPrior(known), family.prior);
  const stated = options.prior === undefined ? usual : parsePrior(options.prior, family.prior);
  if (stated.text === usual.text) return together([], stated.text, 0, nCells);
  const moved = movedPriors(stated, family.prior);
  const others = [usual, ...moved];
  const nPrior = nPriorOf(statistic, release, { ...options, method: NOISE_AWARE });
  const cells = evenly(nCells, options.most ?? (moved.length === 0 ? MOST : MOST_MOVED));
  const sums = others.map(() => 0);
  for (const cell of cells) {
    const [first, ...further] = evidenceOf(statistic, valuesOf(cell), release, [stated, ...others], nPrior, keptOf(cell));
    further.forEach((log, i) => (sums[i] += log - first));
  }
  // Posteriors are of records within the bounds, and the stated prior is one of such.
  let within = 0;
  if (family.limits) {
    const starts = stated.components.map(({ start }) => start);
    const prior = LineDistribution.of(LINES[stated.line], stated.log, starts, stated.farthest);
    const [low, high] = family.limits(known);
    within = Math.log(Math.max(prior.below(high) - prior.below(low), Number.MIN_VALUE));
  }
  const named = others.map(({ text }, i) => ({
    alternative: i === 0 ? `the default prior, ${text},` : text,
    logBayesFactor: sums[i] + cells.length * within - Math.log(others.length),
  }));
  return together(named, stated.text, cells.length, nCells);
}

/** Moments of one record's part in the total, of families whose conflicts are judged here. */
const of = (mean, variance, third) => ({ mean, variance, third });
const trials = (count) => (p) => of(count * p, count * p * (1 - p), count * p * (1 - p) * (1 - 2 * p));
const failures = (successes) => (p) => {
  const mean = (successes * (1 - p)) / p;
  return of(mean, mean / p, (mean * (2 - p)) / p ** 2);
};
const gamma = (shape) => (scale) => of(shape * scale, shape * scale ** 2, 2 * shape * scale ** 3);
const waiting = (shape) => (rate) => gamma(shape)(1 / rate);
const RECORDS = {
  bernoulli: () => trials(1),
  binomial: (known) => trials(known.upper),
  poisson: () => (rate) => of(rate, rate, rate),
  geometric: () => failures(1),
  negative_binomial: (known) => failures(known.constants.successes),
  exponential: () => waiting(1),
  gamma: (known) => waiting(known.constants.shape),
  weibull: () => waiting(1),
  pareto: () => waiting(1),
  laplace: () => gamma(1),
  normal_known_mean: () => (variance) => gamma(0.5)(2 * variance),
  normal_known_variance: (known) => (mean) => of(mean, known.constants.variance, 0),
};

function conflictOf(statistic, values, release, { line, prior, clipping }) {
  if (clipping === "modelled") return null;
  const record = RECORDS[statistic.family](knownOf(statistic));
  const starts = prior.components.map(({ start }) => start);
  const worlds = worldsOf(LineDistribution.of(line, prior.log, starts));
  const parts = worlds.map(({ value, weight }) => ({ ...record(value), weight }));
  const publicN = statistic.design === "minimal" ? release.n : null;
  return judged(statistic, values, publicN, () => parts, prior.text);
}

/** The update of the prior by noisy sums that are taken for exact. */
function plugIn(line, prior, updated, starts) {
  const [first] = prior.components;
  const log = prior.components.length === 1
    ? updated[0].log
    : (t) => prior.log(t) + updated[0].log(t) - first.log(t);
  return LineDistribution.of(line, log, starts);
}

/**
 * How records beyond the public bounds are treated: null where none can be, `negligible` where they do not matter
 * and are left out, as in Python, else `modelled`; `ignored` where that was asked for, or is all that there is.
 */
function clippingOf(family, known, distribution, { method, clipping = BY_EVIDENCE }, name) {
  if (![BY_EVIDENCE, "modelled", "ignored"].includes(clipping)) {
    throw new ReleaseError("usage", `clipping is ${BY_EVIDENCE}, modelled or ignored`);
  }
  if (family.isBounded) return null;
  if (clipping === "modelled" && method !== PLUG_IN && family.refusesClipping) {
    throw refusal(name, "clipped records are not modelled by this reader");
  }
  // Releases with counts of what clipping moved are refused: of others there is no evidence.
  if (!family.clippingShift || clipping !== "modelled" || method === PLUG_IN) return "ignored";
  const shift = distribution.average((value) => Math.abs(family.clippingShift(value, known)));
  return shift <= NEGLIGIBLE * distribution.sd ? "negligible" : "modelled";
}

/**
 * Given that parameters are those of records within the public bounds, as in Python; but for plug-in answers, and for
 * records before clipping.
 */
function restricted(family, known, distribution, { method, clipping }) {
  const isWhole = method === PLUG_IN || clipping === "negligible" || !family.limits;
  return isWhole ? distribution : distribution.within(family.limits(known));
}

function refusal(name, why) {
  return new ReleaseError("clipping", `${name}: ${why}: read a published posterior, compute it in Python, or say clipping: "ignored"`);
}

function withClipping(line, prior, { exact, starts }, upper, name, likelihoodOf) {
  const why = (text) => refusal(name, `clipped records matter here, and ${text}`);
  if (upper > LARGEST_BOUND) throw why(`this reader does not model them where the bound is above ${LARGEST_BOUND}`);
  const likelihood = likelihoodOf();
  // The conjugate update, of records that were never clipped, may be far from the mode.
  const near = [likelihood.likelihood.start(exact), ...(starts.length > 1 ? starts : [])];
  const distribution = LineDistribution.of(line, (t) => prior.log(t) + likelihood.at(t), near);
  if (!likelihood.likelihood.isResolved(line.position(distribution.quantile(0.5)))) {
    throw why("prior and released values are too far apart for this reader");
  }
  return distribution;
}

function noiseAware(line, prior, starts, nPrior, likelihoodOf) {
  const of = (likelihood) => (
    LineDistribution.of(line, (t) => prior.log(t) + likelihood.at(t), starts, prior.farthest)
  );
  const likelihood = likelihoodOf(nPrior);
  const distribution = of(likelihood);
  // An N of 0 that has hardly any of the posterior would leave it without moments.
  const ofNone = likelihood.ofNone - distribution.logMass;
  if (Number.isFinite(distribution.sd) || ofNone === -Infinity || ofNone > Math.log(LEAST_SHARE)) return distribution;
  return of(likelihoodOf({ ...nPrior, low: 1 }));
}

/** N and the total in T's unit, as near to the noisy sums as records can have them. */
function projected({ family, design }, { values: [first, second], reach, step }, { lower }, publicN) {
  if (family === "bernoulli" && design !== "minimal") {
    const [total, rest] = [Math.max(first, 0), Math.max(second, 0)];
    return { n: total + rest, total };
  }
  const n = design === "minimal" ? publicN : Math.max((first + second) / reach, 0);
  const most = Math.max(reach * n, 0);
  const amount = Math.min(Math.max(first, 0), most);
  return { n, total: lower * n + step * amount };
}

/** The prior of N; that which is known where N is public. */
export function nPriorOf(statistic, release, { nPrior, method }) {
  const name = shown(statistic.name);
  if (method === PLUG_IN) {
    if (nPrior !== undefined) throw new ReleaseError("usage", `${name}: plug-in takes the noisy N for exact: leave nPrior out`);
    return null;
  }
  if (statistic.design === "minimal") {
    if (nPrior !== undefined) throw new ReleaseError("usage", `${name}: its N is public: leave nPrior out`);
    return fixed(release.n);
  }
  return nPrior === undefined ? reciprocal(release.maxTotalRows) : parseNPrior(nPrior);
}

/** What is known of the parameters of one cell. */
export class Posterior {
  constructor({ parameters, prior, nPrior, method, clipping, defaultInterval, marginals, judge }) {
    this.parameters = parameters;
    this.prior = prior;
    this.nPrior = nPrior;
    this.method = method;
    this.clipping = clipping;
    this.defaultInterval = defaultInterval;
    this.marginals = marginals;
    this.judge = judge;
  }

  /**
   * Whether the prior of the parameters and what was released disagree, as Python judges it: tails by quantity, which
   * are conflicts, and what to say. Null where this reader does not judge; it never judges the prior of N.
   */
  get conflict() {
    this.found ??= { conflict: this.judge() };
    return this.found.conflict;
  }

  /** The mean; infinite where there is none. */
  mean(parameter) {
    return this.marginal(parameter).distribution.mean;
  }

  /** The standard deviation; infinite where there is none. */
  sd(parameter) {
    return this.marginal(parameter).distribution.sd;
  }

  /** The value below which a share p lies, 0 < p < 1. */
  quantile(p, parameter) {
    if (!(p > 0 && p < 1)) throw new ReleaseError("usage", "a share lies between 0 and 1");
    return this.marginal(parameter).distribution.quantile(p);
  }

  /** The ends of the interval of a mass, 0 < mass < 1: `central` or `highest-density`, by default `defaultInterval`. */
  interval(mass, parameter, kind = this.defaultInterval) {
    const { distribution } = this.marginal(parameter);
    return intervalOf((p) => distribution.quantile(p), mass, kind, distribution.ends);
  }

  /** The probability below a value. */
  probabilityBelow(value, parameter) {
    return this.marginal(parameter).distribution.below(value);
  }

  /** Densities at values. */
  density(parameter, xs) {
    const { distribution } = this.marginal(parameter);
    return Float64Array.from(xs, (x) => distribution.density(x));
  }

  /** The prior's densities at values. */
  priorDensity(parameter, xs) {
    const { line, prior } = this.marginal(parameter);
    return Float64Array.from(xs, (x) => {
      if (!line.contains(x)) return 0;
      const t = line.position(x);
      return Math.exp(prior.log(t) - line.logSlope(t));
    });
  }

  marginal(parameter) {
    const at = parameter === undefined && this.parameters.length === 1 ? 0 : this.parameters.indexOf(parameter);
    if (at < 0) {
      const known = this.parameters.slice(0, 8).map(shown).join(", ");
      throw new ReleaseError("usage", `there is no parameter ${shown(parameter)}: there are ${known}`);
    }
    const found = this.marginals[at];
    if (!found.distribution) found.distribution = found.make();
    return found;
  }
}
