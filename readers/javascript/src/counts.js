/**
 * Posteriors of the probabilities of categories: all counts behind noise are latent, and so is N.
 *
 * Given the probability of one category, the other counts matter through their sum alone. The weight of that
 * sum is a convolution of the others' noise, each count weighted as its Dirichlet prior has it: terms are
 * positive, so that nothing cancels. What remains is a sum over N and one count, as of one trial a record.
 */

import { judged, worldsOf } from "./conflict.js";
import { ReleaseError, shown } from "./errors.js";
import { HIGHEST_DENSITY } from "./intervals.js";
import { Likelihood } from "./likelihood.js";
import { LINES, LineDistribution } from "./line.js";
import { PLUG_IN, Posterior, nPriorOf } from "./posterior.js";
import { conjugate, parseDirichlet } from "./priors.js";
import { parseRational, toNumber } from "./exact.js";
import { logGamma } from "./special.js";
import { Resumed, TabulatedLikelihood } from "./tabulated.js";
import { BinomialTotal } from "./totals.js";

const WINDOW = 27;
const LEAST_EDGE = 1e-11;
const MOST_STEPS = 4e9;
/** Products, and exponentials, between two looks at the clock: some milliseconds. */
const [PRODUCTS_TOGETHER, STEPS_TOGETHER] = [2e6, 5e4];

export function countsPosterior(statistic, values, release, options) {
  const categories = statistic.parameters.categories;
  const counts = values.map(Number);
  const prior = parseDirichlet(options.prior ?? "Dirichlet(1)", categories.length);
  const nPrior = nPriorOf(statistic, release, options);
  const alpha = prior.concentrations;
  const sum = alpha.reduce((all, one) => all + one, 0);
  const marginalPrior = alpha.map((own) => conjugate("Beta", [own, sum - own]));
  const line = LINES.probability;
  const worlds = (k) =>
    worldsOf(LineDistribution.of(line, marginalPrior[k].log, [marginalPrior[k].start])).map(({ value, weight }) => {
      const variance = value * (1 - value);
      return { mean: value, variance, third: variance * (1 - 2 * value), weight };
    });
  let makes;
  if (options.method === PLUG_IN) {
    const exact = statistic.design === "minimal" ? onSimplex(counts, release.n) : counts.map((one) => Math.max(one, 0));
    const total = exact.reduce((all, one) => all + one, 0);
    makes = alpha.map((own, k) => () => {
      const { log, start } = conjugate("Beta", [own + exact[k], sum - own + total - exact[k]]);
      return LineDistribution.of(line, log, [start]);
    });
  } else {
    const scale = toNumber(parseRational(statistic.scale));
    const given = { counts, scale, alpha, sum, nPrior, name: shown(statistic.name) };
    const kept = options.kept.of(`${nPrior.text} ${prior.text}`, () => ({
      rows: new Resumed(latentCounts(given)),
      likelihoods: new Map(),
    }));
    makes = alpha.map((own, k) => () => {
      const rows = kept.rows.value;
      const likelihood = likelihoodOf(kept.likelihoods, rows, k);
      const exact = Math.max(counts[k], 0);
      const rest = counts.reduce((all, one) => all + Math.max(one, 0), 0) - exact;
      const { start } = conjugate("Beta", [own + exact, sum - own + rest]);
      return LineDistribution.of(line, (t) => marginalPrior[k].log(t) + likelihood.at(t), [start]);
    });
  }
  return new Posterior({
    parameters: categories.map((category) => `probability[${category}]`),
    prior: prior.text,
    nPrior: nPrior?.text ?? null,
    method: options.method,
    clipping: null,
    defaultInterval: HIGHEST_DENSITY,
    marginals: makes.map((make, k) => ({ line, prior: marginalPrior[k], make })),
    judge: () =>
      judged(statistic, values, statistic.design === "minimal" ? release.n : null, worlds, prior.text, options.labels),
  });
}

/** The likelihood of a category's probability, begun once: slices go on with it. */
function likelihoodOf(known, rows, k) {
  if (!known.has(k)) known.set(k, new TabulatedLikelihood(new CountLikelihood(rows, k), 1));
  return known.get(k);
}

/** Weights of latent counts within windows that hold all but nothing of the posterior, step by step. */
function* latentCounts(given) {
  const { counts, scale, alpha, name } = given;
  for (let reach = WINDOW * scale + 8; ; reach *= 2) {
    const rows = counts.map((count, k) => rowOf(count, alpha[k], scale, reach));
    yield;
    const rest = yield* others(rows, name);
    const found = new LatentCounts({ ...given, rows, rest });
    if (yield* found.holdAll()) return found;
  }
}

/** Gamma(alpha + c) / c! times the noise, at consecutive counts, over its largest value. */
function rowOf(count, alpha, scale, reach) {
  const start = Math.max(0, Math.floor(count - reach));
  const end = Math.max(Math.ceil(count + reach), Math.ceil(reach));
  const logs = new Float64Array(end - start + 1);
  for (let i = 0; i < logs.length; i += 1) {
    logs[i] = logRising(alpha, start + i) - Math.abs(count - start - i) / scale;
  }
  return { start, ...scaled(logs) };
}

class LatentCounts {
  constructor(given) {
    Object.assign(this, given);
  }

  /** Whether hardly any of the posterior lies at the ends of a window. */
  *holdAll() {
    for (const [k, row] of this.rows.entries()) {
      const rest = this.rest[k];
      // A few positions tell: the weight is smooth between the noise's kink and the ends.
      const last = row.values.length - 1;
      const kink = Math.min(Math.max(Math.round(this.counts[k]) - row.start, 0), last);
      const some = [0, kink, ...Array.from({ length: 16 }, (_, i) => Math.round(((i + 1) * last) / 16))];
      const weights = [];
      for (const i of some) {
        let all = 0;
        for (let m = 0; m < rest.values.length; m += 1) {
          all += rest.values[m] * Math.exp(this.logOfN(row.start + i + rest.start + m));
          if (m % STEPS_TOGETHER === STEPS_TOGETHER - 1) yield;
        }
        weights.push(row.values[i] * all);
        yield;
      }
      const most = Math.max(...weights);
      const first = row.start === 0 ? 0 : weights[0];
      if (!(first <= LEAST_EDGE * most && weights[weights.length - 1] <= LEAST_EDGE * most)) return false;
    }
    return true;
  }

  /** Log of prior(N) N! / Gamma(sum of concentrations + N), relative to that of the noisy total. */
  logOfN(n) {
    if (n < this.nPrior.low || n > this.nPrior.high) return -Infinity;
    this.reference ??= logRising(this.sum, Math.max(this.counts.reduce((all, one) => all + Math.max(one, 0), 0), 0));
    return this.nPrior.log(n) - logRising(this.sum, n) + this.reference;
  }
}

/** Log of Gamma(a + c) / (Gamma(a) c!). */
function logRising(a, c) {
  if (a === 1 || c === 0) return 0;
  if (c < 1e6) return logGamma(a + c) - logGamma(c + 1) - logGamma(a);
  // Gamma(a + c) / Gamma(c + 1) by Stirling's formula, so that no two large numbers are subtracted.
  const x = a + c;
  const y = c + 1;
  return (
    (x - 0.5) * Math.log1p((a - 1) / y) + (a - 1) * Math.log(y) - (a - 1) + (1 / x - 1 / y) / 12 - logGamma(a)
  );
}

function scaled(logs) {
  let top = -Infinity;
  for (const one of logs) top = Math.max(top, one);
  return { values: logs.map((one) => Math.exp(one - top)) };
}

/** Of every row the convolution of all others. */
function* others(rows, name) {
  const one = { start: 0, values: Float64Array.of(1) };
  let steps = 0;
  function* joined(a, b) {
    steps += a.values.length * b.values.length;
    if (steps > MOST_STEPS) throw unresolved(name);
    return yield* convolved(a, b);
  }
  const before = [one];
  for (const row of rows.slice(0, -1)) before.push(yield* joined(before[before.length - 1], row));
  const rest = new Array(rows.length);
  let after = one;
  for (let k = rows.length - 1; k >= 0; k -= 1) {
    rest[k] = yield* joined(before[k], after);
    if (k) after = yield* joined(after, rows[k]);
  }
  return rest;
}

function* convolved(a, b) {
  const [long, short] = a.values.length > b.values.length ? [a, b] : [b, a];
  const values = new Float64Array(long.values.length + short.values.length - 1);
  const together = Math.ceil(PRODUCTS_TOGETHER / long.values.length);
  for (let i = 0; i < short.values.length; i += 1) {
    const weight = short.values[i];
    if (weight > 0) for (let j = 0; j < long.values.length; j += 1) values[i + j] += weight * long.values[j];
    if (i % together === together - 1) yield;
  }
  let top = 0;
  for (const value of values) top = Math.max(top, value);
  for (let i = 0; i < values.length; i += 1) values[i] /= top;
  return { start: a.start + b.start, values };
}

/** The likelihood of one probability, the others integrated out under their prior. */
class CountLikelihood extends Likelihood {
  constructor(rows, k) {
    const { nPrior } = rows;
    const { start, values } = rows.rest[k];
    const noise = { values: [rows.counts[k], start + highest(values)], scale: rows.scale, reach: 1 };
    super(new BinomialTotal(1), noise, nPrior);
    this.start = Math.max(0, rows.rows[k].start);
    this.end = this.start + rows.rows[k].values.length - 1;
    this.restStart = start;
    this.restEnd = start + values.length - 1;
    // The others' sum m is spread among them as their prior has it, over Gamma(rest + m) / m!.
    const rest = rows.sum - rows.alpha[k];
    this.logs = Float64Array.from(values, (value, i) => Math.log(value) - logRising(rest, start + i));
    this.ratios = Float64Array.from({ length: values.length - 1 }, (_, i) => Math.exp(this.logs[i + 1] - this.logs[i]));
  }

  get ofNone() {
    if (this.nPrior.low > 0 || this.start > 0 || this.restStart > 0) return -Infinity;
    return this.nPrior.log(0) - this.rate * Math.abs(this.first) + this.logs[0];
  }

  sumOverTotals(n) {
    const { total, restStart, logs, ratios, first } = this;
    const from = Math.max(this.start, n - this.restEnd);
    const to = Math.min(this.end, n - restStart);
    if (from > to) return -1e300;
    total.at(n);
    const up = Math.exp(this.rate);
    const down = 1 / up;
    // The weight of x + 1 over that of x.
    const ratio = (x) => (total.ratio(x) * (x < first ? up : down)) / ratios[n - x - 1 - restStart];
    let [low, high] = [from, to];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (ratio(middle) > 1) low = middle + 1;
      else high = middle;
    }
    let sum = 1;
    let term = 1;
    for (let x = low; x < to && term > 1e-18; x += 1) {
      term *= ratio(x);
      sum += term;
    }
    term = 1;
    for (let x = low - 1; x >= from && term > 1e-18; x -= 1) {
      term /= ratio(x);
      sum += term;
    }
    return total.log(low) - this.rate * Math.abs(first - low) + logs[n - low - restStart] + Math.log(sum);
  }
}

function highest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) if (values[i] > values[best]) best = i;
  return best;
}

/** The nearest counts, none below 0, with a known sum. */
function onSimplex(counts, n) {
  const sorted = [...counts].sort((a, b) => b - a);
  let [sum, shift] = [0, 0];
  sorted.forEach((count, i) => {
    sum += count;
    if (count - (sum - n) / (i + 1) > 0) shift = (sum - n) / (i + 1);
  });
  return counts.map((count) => Math.max(count - shift, 0));
}

function unresolved(name) {
  return new ReleaseError("resolution", `${name}: noise hides too many counts for this reader; a published posterior can be read`);
}
