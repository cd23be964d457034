// A prior as text and as sliders: what its mean is and how strongly it is held, both ways in step.

import { rounded } from "./numbers.js";
import { linear, logarithmic, share } from "./scales.js";

/**
 * One slider of a prior.
 * @typedef {Object} Slider
 * @property {string} name
 * @property {string} hint - what its value means, in words
 * @property {Object} scale - from `scales.js`
 * @property {function(number[]): number|null} value - of the prior's numbers; null where there is none
 * @property {function(number[], number): number[]} change - the prior's numbers with another value
 */

const FIELDS = {
  Beta: ["concentration1", "concentration0"],
  Gamma: ["concentration", "rate"],
  InverseGamma: ["concentration", "scale"],
  Normal: ["loc", "scale"],
  Dirichlet: null,
  NormalInverseGamma: ["loc", "precision", "concentration", "scale"],
  ScaleMixture: ["lower", "upper"],
  SpreadGamma: ["upper"],
  SpreadInverseGamma: ["upper"],
};

const NUMBER = /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/**
 * Read a prior that sliders can set: one call of a known name with plain numbers.
 *
 * @param {string} text
 * @returns {{name: string, numbers: number[]}|null} null for every other prior, and for text that is none
 */
export function readPrior(text) {
  const call = /^\s*([A-Za-z]+)\s*\(([^()]*)\)\s*$/.exec(text);
  if (call === null || !Object.hasOwn(FIELDS, call[1])) return null;
  const fields = FIELDS[call[1]];
  const numbers = [];
  for (const [index, argument] of call[2].replace(/,\s*$/, "").split(",").entries()) {
    const [value, keyword] = argument
      .split("=")
      .map((part) => part.trim())
      .reverse();
    const at = keyword === undefined ? index : (fields ?? []).indexOf(keyword);
    if (at < 0 || numbers[at] !== undefined || !NUMBER.test(value)) return null;
    numbers[at] = Number(value.replaceAll("_", ""));
  }
  if (fields !== null && numbers.length !== fields.length) return null;
  const isPositive = (index) => call[1] === "ScaleMixture" || fields?.[index] === "loc" || numbers[index] > 0;
  return [...numbers.keys()].every((index) => Number.isFinite(numbers[index]) && isPositive(index))
    ? { name: call[1], numbers }
    : null;
}

/** Write a prior as Python and the command line read it. */
export function writePrior({ name, numbers }) {
  return `${name}(${numbers.map((number) => String(rounded(number))).join(", ")})`;
}

/**
 * The sliders of a prior.
 *
 * @param {{name: string, numbers: number[]}} prior
 * @param {{family: string, parameters: Object}} statistic - for its public bounds
 * @param {{numbers: number[]}|null} usual - the family's default prior, by which scales of rates are chosen
 * @param {number} entry - which category is shown
 * @returns {Slider[]}
 */
export function slidersOf(prior, statistic, usual, entry) {
  const make = SLIDERS[prior.name];
  return make === undefined ? [] : make({ statistic, usual: usual ?? prior, entry });
}

const records = (family) => (family === "poisson" ? "counts like so many records" : "the larger, the narrower");
const strength = (change, value, hint) => ({ name: "Strength", hint, scale: logarithmic(0.1, 1e5), value, change });

const SLIDERS = {
  Beta: () => [
    {
      name: "Mean",
      hint: "where the prior is centred",
      scale: share(0.001),
      value: ([a, b]) => a / (a + b),
      change: ([a, b], mean) => [mean * (a + b), (1 - mean) * (a + b)],
    },
    strength(
      ([a, b], sum) => [(sum * a) / (a + b), (sum * b) / (a + b)],
      ([a, b]) => a + b,
      "counts like so many records",
    ),
  ],

  Dirichlet: ({ statistic, entry }) => {
    const size = Math.max(2, statistic.parameters.categories.length);
    const all = (numbers) => (numbers.length === 1 ? Array(size).fill(numbers[0]) : numbers);
    const sum = (numbers) => all(numbers).reduce((left, right) => left + right, 0);
    return [
      {
        name: "Mean of this category",
        hint: "the others share the rest as before",
        scale: share(0.001),
        value: (numbers) => all(numbers)[entry] / sum(numbers),
        change: (numbers, mean) => {
          const total = sum(numbers);
          const rest = total - all(numbers)[entry];
          return all(numbers).map((each, index) =>
            index === entry ? mean * total : ((1 - mean) * total * each) / rest,
          );
        },
      },
      strength(
        (numbers, total) => numbers.map((each) => (each * total) / sum(numbers)),
        sum,
        "counts like so many records",
      ),
    ];
  },

  Gamma: ({ statistic, usual }) => {
    const centre = usual.name === "SpreadGamma" ? 10 / usual.numbers[0] : usual.numbers[0] / usual.numbers[1];
    const mean = {
      name: "Mean",
      hint: "where the prior is centred",
      scale: logarithmic(centre / 1000, centre * 1000),
      value: ([a, b]) => a / b,
    };
    // Records of a Poisson prior are its rate; of the other families its concentration.
    return statistic.family === "poisson"
      ? [
          { ...mean, change: ([, b], value) => [value * b, b] },
          strength(
            ([a, b], value) => [(a / b) * value, value],
            ([, b]) => b,
            records(statistic.family),
          ),
        ]
      : [
          { ...mean, change: ([a], value) => [a, a / value] },
          strength(
            ([a, b], value) => [value, (value * b) / a],
            ([a]) => a,
            records(statistic.family),
          ),
        ];
  },

  InverseGamma: ({ usual }) => {
    const isSpread = usual.name === "SpreadInverseGamma";
    const centre = isSpread ? usual.numbers[0] / 10 : usual.numbers[1] / Math.max(usual.numbers[0] - 1, 0.1);
    return [
      {
        name: "Mean",
        hint: "where the prior is centred",
        scale: logarithmic(centre / 1000, centre * 1000),
        value: ([a, scale]) => (a > 1 ? scale / (a - 1) : null),
        change: ([a], mean) => [Math.max(a, 1.1), mean * (Math.max(a, 1.1) - 1)],
      },
      {
        name: "Strength",
        hint: "the larger, the narrower",
        scale: logarithmic(1.1, 1e5),
        value: ([a]) => a,
        change: ([a, scale], value) => [value, a > 1 ? (scale / (a - 1)) * (value - 1) : scale],
      },
    ];
  },

  Normal: ({ statistic, usual }) => {
    const spread = usual.numbers[1];
    return [
      location(statistic, (numbers, loc) => [loc, numbers[1]]),
      {
        name: "Standard deviation",
        hint: "the smaller, the stronger",
        scale: logarithmic(spread / 10000, spread * 10),
        value: ([, scale]) => scale,
        change: ([loc], scale) => [loc, scale],
      },
    ];
  },

  NormalInverseGamma: ({ statistic }) => {
    const range = width(statistic);
    return [
      location(statistic, ([, ...rest], loc) => [loc, ...rest]),
      strength(
        ([loc, , ...rest], value) => [loc, value, ...rest],
        ([, precision]) => precision,
        "of the mean: counts like so many records",
      ),
      {
        name: "Mean of the variance",
        hint: "how far records are apart",
        scale: logarithmic((range * range) / 1e8, range * range),
        value: ([, , a, scale]) => (a > 1 ? scale / (a - 1) : null),
        change: ([loc, precision, a], mean) => [loc, precision, Math.max(a, 1.1), mean * (Math.max(a, 1.1) - 1)],
      },
    ];
  },

  SpreadGamma: ({ usual }) => [largest(usual, "one over the rate")],

  SpreadInverseGamma: ({ usual }) => [largest(usual, "the scale")],

  ScaleMixture: ({ statistic }) => {
    const [low, high] = bounds(statistic);
    const reach = linear(low - (high - low), high + (high - low));
    const least = (high - low) / 1000;
    return [
      {
        name: "From",
        hint: "means and spreads of every size from here",
        scale: reach,
        value: ([lower]) => lower,
        change: ([, upper], lower) => [Math.min(lower, upper - least), upper],
      },
      {
        name: "To",
        hint: "to here",
        scale: reach,
        value: ([, upper]) => upper,
        change: ([lower], upper) => [lower, Math.max(upper, lower + least)],
      },
    ];
  },
};

function largest(usual, what) {
  const centre = usual.name.startsWith("Spread") ? usual.numbers[0] : 1;
  return {
    name: "Up to",
    hint: `${what} is of any size up to here`,
    scale: logarithmic(centre / 1e4, centre * 10),
    value: ([upper]) => upper,
    change: (_numbers, upper) => [upper],
  };
}

function location(statistic, change) {
  const [low, high] = bounds(statistic);
  return { name: "Mean", hint: "where the prior is centred", scale: linear(low, high), value: ([loc]) => loc, change };
}

function bounds({ family, parameters }) {
  const ends = [Number(parameters.lower), Number(parameters.upper)];
  return family === "lognormal" ? ends.map(Math.log) : ends;
}

function width(statistic) {
  const [low, high] = bounds(statistic);
  return high - low;
}
