/** Families with one sum: how a release holds it, its model, its default prior, and its conjugate update. */

import { BinomialTotal, GammaTotal, NegativeBinomialTotal, NormalTotal, PoissonTotal } from "./totals.js";
import { clippedFailures, clippedPoisson } from "./clipped.js";
import { failuresShift, poissonShift } from "./clipping.js";
import { parseRational, toNumber } from "./exact.js";
import { HIGHEST_DENSITY } from "./intervals.js";

/** @typedef {{lower: number, upper: number, constants: Record<string, number>}} Known Public constants, in T's unit. */

/**
 * `limits` are those of the parameter where T's mean lies within T's bounds: what bounded records can have; `interval` is
 * the kind of intervals where none is asked for, central by default. `refusesClipping` have families whose clipping
 * Python models, and this reader does not.
 */

const beta = (a, b) => `Beta(${a}, ${b})`;

const failures = (successes) => ({
  parameter: "probability",
  prior: "Beta",
  defaultPrior: () => beta(1, 1),
  total: (known) => new NegativeBinomialTotal(successes(known)),
  update: ([a, b], n, total, known) => [a + successes(known) * n, b + total],
  limits: (known) => [successes(known) / (successes(known) + known.upper), 1],
  clippingShift: (value, known) => failuresShift(value, known.upper, successes(known)),
  clippedRecord: (known) => clippedFailures(known.upper, successes(known)),
});

const rate = (parameter, shape = () => 1) => ({
  parameter,
  prior: "Gamma",
  defaultPrior: (known) => `SpreadGamma(${known.upper / shape(known)})`,
  total: (known, step) => new GammaTotal(shape(known), step),
  update: ([a, b], n, total, known) => [a + shape(known) * n, b + total],
  limits: (known) => [shape(known) / known.upper, Infinity],
  refusesClipping: true,
});

const scale = (parameter, share = 1) => ({
  parameter,
  prior: "InverseGamma",
  defaultPrior: (known) => `SpreadInverseGamma(${known.upper})`,
  // w T is Gamma(w, 1 / s): of the rate w / s in T's unit.
  total: (_known, step) => new ReversedGammaTotal(share, step),
  update: ([a, b], n, total) => [a + share * n, b + share * total],
  limits: (known) => [0, known.upper],
  refusesClipping: true,
});

/** A gamma total of a scale s given by its logarithm: of the rate w / s. */
class ReversedGammaTotal extends GammaTotal {
  given(logScale) {
    super.given(Math.log(this.shape) - logScale);
  }
}

const successes = (trials) => ({
  parameter: "probability",
  prior: "Beta",
  defaultPrior: () => beta(1, 1),
  total: (known) => new BinomialTotal(trials(known)),
  isBounded: true,
  update: ([a, b], n, total, known) => [a + total, b + trials(known) * n - total],
});

export const ONE_SUM = {
  bernoulli: { ...successes(() => 1), interval: HIGHEST_DENSITY },
  binomial: { ...successes((known) => known.upper), interval: HIGHEST_DENSITY },
  poisson: {
    parameter: "rate",
    prior: "Gamma",
    defaultPrior: (known) => `Gamma(1, ${2 / known.upper})`,
    total: () => new PoissonTotal(),
    update: ([a, b], n, total) => [a + total, b + n],
    limits: (known) => [0, known.upper],
    interval: HIGHEST_DENSITY,
    clippingShift: (value, known) => poissonShift(value, known.upper),
    clippedRecord: (known) => clippedPoisson(known.upper),
  },
  geometric: failures(() => 1),
  negative_binomial: failures((known) => known.constants.successes),
  exponential: rate("rate"),
  gamma: rate("rate", (known) => known.constants.shape),
  weibull: rate("rate"),
  pareto: rate("shape"),
  laplace: scale("scale"),
  normal_known_mean: scale("variance", 0.5),
  normal_known_variance: {
    parameter: "mean",
    prior: "Normal",
    defaultPrior: ({ lower, upper }) => `Normal(${(lower + upper) / 2}, ${(upper - lower) / 4})`,
    total: (known, step) => new NormalTotal(known.constants.variance, known.lower, step),
    limits: ({ lower, upper }) => [lower, upper],
    update: ([loc, sd], n, total, known) => {
      const { variance } = known.constants;
      const rows = variance / sd / sd;
      return [(rows * loc + total) / (rows + n), Math.sqrt(variance / (rows + n))];
    },
  },
};

/** The public constants of a statistic as numbers. */
export function knownOf(statistic) {
  const { lower, upper, constants = {} } = statistic.parameters;
  const number = (text) => (text === null || text === undefined ? 0 : toNumber(parseRational(text)));
  return {
    lower: number(lower),
    upper: number(upper),
    constants: Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, number(text)])),
  };
}

/**
 * The sums that a cell released: of A = X - lowest, and unless N is public of highest - X, in steps.
 *
 * @returns {{values: number[], scale: number, reach: number, step: number}} S = lower N + step A.
 */
export function noisySums(statistic, values, n) {
  const scale = toNumber(parseRational(statistic.scale));
  if (statistic.family === "bernoulli") {
    const [first, second] = statistic.design === "minimal" ? values : [values[1], values[0]];
    return { values: [first, second].filter((value) => value !== undefined).map(Number), scale, reach: 1, step: 1 };
  }
  const known = knownOf(statistic);
  if (statistic.design === "minimal") {
    const total = statistic.quantities.find((quantity) => quantity.name === "total");
    const step = parseRational(Object.values(total.coefficients)[0]);
    const atZero = parseRational(total.public_n_coefficient);
    const lower = parseRational(statistic.parameters.lower ?? "0");
    const shift = (lower.n * atZero.d - atZero.n * lower.d) * step.d;
    const lowest = shift / (lower.d * atZero.d * step.n);
    const reach = Math.round((known.upper - known.lower) / toNumber(step));
    return { values: [Number(values[0] - lowest * BigInt(n))], scale, reach, step: toNumber(step) };
  }
  const reach = Number(statistic.partition_total);
  return { values: values.map(Number), scale, reach, step: (known.upper - known.lower) / reach };
}
