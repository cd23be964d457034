/** What families release, as it follows from a plan's entry: components, sensitivity, maps to quantities. */

import { keysOf } from "./domains.js";
import { add, compare, divide, format, multiply, rational, rootRoundedDown, subtract, toNumber } from "./exact.js";
import { integer, isMapping, number, onlyKeys, refused } from "./plan_values.js";
import { binLabels } from "./samples.js";

const ONE = rational(1n);
const ZERO = rational(0n);

/** Keys of the entries of families, beside those of every one. */
const KEYS = {
  bernoulli: ["nulls"],
  categorical: ["categories", "other"],
  histogram: ["nulls", "lower", "upper", "bins", "atoms"],
  normal: ["nulls", "lower", "upper", "lattice_bits"],
  lognormal: ["nulls", "lower", "upper", "lattice_bits"],
  binomial: ["nulls", "trials"],
  poisson: ["nulls", "upper"],
  geometric: ["nulls", "upper"],
  negative_binomial: ["nulls", "successes", "upper"],
  exponential: ["nulls", "upper", "lattice_bits"],
  gamma: ["nulls", "shape", "upper", "lattice_bits"],
  weibull: ["nulls", "shape", "upper", "lattice_bits"],
  pareto: ["nulls", "minimum", "upper", "lattice_bits"],
  laplace: ["nulls", "location", "half_range", "lattice_bits"],
  normal_known_mean: ["nulls", "mean", "half_range", "lattice_bits"],
  normal_known_variance: ["nulls", "variance", "lower", "upper", "lattice_bits"],
};
const OF_UNITS = ["bernoulli", "categorical", "histogram", "poisson", "normal"];
/** What is a number in an entry, and nothing else follows from it. */
const NUMBERS = ["location", "mean"];
const WITHIN_UNIT = ["bernoulli", "normal", "lognormal"];
const OF_MOMENTS = ["normal", "lognormal"];
/** Families that count what clipping moved, where they are asked to. */
const COUNT_CLIPPED = [
  "normal", "lognormal", "binomial", "poisson", "geometric", "negative_binomial", "exponential", "gamma", "weibull",
  "pareto", "normal_known_variance",
];

/** Refuse an entry that no spec could have. */
export function checkEntry(entry, { unit }, place) {
  const { family, nulls, other } = entry;
  const optional = [
    "where",
    "groups",
    ...(OF_MOMENTS.includes(family) ? ["moment_weight"] : ["sample"]),
    ...(WITHIN_UNIT.includes(family) ? ["within_unit"] : []),
    ...(COUNT_CLIPPED.includes(family) ? ["count_clipped"] : []),
  ];
  onlyKeys(entry, ["column", "family", "rows_of", "share", ...KEYS[family]], optional, place);
  if (typeof entry.column !== "string") throw refused(`${place}.column`, "it is no name");
  if (entry.where !== undefined && typeof entry.where !== "string" && !isMapping(entry.where)) {
    throw refused(`${place}.where`, "it is no condition");
  }
  const isUnits = entry.rows_of === "units" && unit !== null && OF_UNITS.includes(family);
  if (entry.rows_of !== "rows" && !isUnits) throw refused(`${place}.rows_of`, "this statistic has no such rows");
  if (entry.within_unit !== undefined && (entry.within_unit !== true || unit === null || isUnits)) {
    throw refused(`${place}.within_unit`, "this statistic has none");
  }
  if (entry.count_clipped !== undefined && (isUnits || entry.within_unit !== undefined || entry.sample !== undefined)) {
    throw refused(`${place}.count_clipped`, "this statistic has none");
  }
  if (entry.sample !== undefined && (family === "categorical" || entry.within_unit !== undefined)) {
    throw refused(`${place}.sample`, "this statistic has none");
  }
  if (KEYS[family].includes("nulls") && nulls !== "drop") {
    onlyKeys(nulls, ["value"], [], `${place}.nulls`);
    number(nulls.value, `${place}.nulls`);
  }
  for (const key of NUMBERS) if (KEYS[family].includes(key)) number(entry[key], `${place}.${key}`);
  if (family === "categorical" && typeof other !== "boolean") throw refused(`${place}.other`, "it is not true or false");
}

/** The block of sums with counts of moved records beside it: a weighs a share of what a record changes, rounded up. */
export function besideSums(block, stated, place) {
  onlyKeys(stated, ["weight"], [], place);
  const share = number(stated.weight, place);
  if (compare(share, rational(1n, 1000n)) < 0 || compare(share, ONE) > 0) throw refused(place, "its weight is out of range");
  const exact = multiply(rational(block.minimalL1 ?? block.recordL1), share);
  const weight = (exact.n + exact.d - 1n) / exact.d;
  const sums = block.components.length;
  const count = (name, side) => ({
    name, coefficients: [...block.components.map(() => ZERO), ...[0, 1].map((i) => (i === side ? rational(1n, weight) : ZERO))],
  });
  const withCounts = (one) => ({ ...one, coefficients: [...one.coefficients, ZERO, ZERO] });
  return {
    ...block,
    components: [...block.components, "a count(x<lower)", "a count(x>upper)"],
    largest: block.largest > weight ? block.largest : weight,
    ...(block.minimalL1 === undefined
      ? { recordL1: block.recordL1 + weight, recordL2: block.recordL1 ** 2n + weight ** 2n }
      : {
          minimalL1: largest(block.minimalL1 + weight, block.betweenEnds + 2n * weight),
          minimalL2: largest((block.minimalL2 ?? block.minimalL1 ** 2n) + weight ** 2n, block.betweenEnds ** 2n + 2n * weight ** 2n),
        }),
    quantities: [...block.quantities.map(withCounts), count("n_below", 0), count("n_above", 1)],
    counted: {
      weight: String(weight),
      sum_components: block.components.slice(0, sums),
      sum_partition_total: block.minimalL1 === undefined ? String(block.recordL1) : null,
    },
  };
}

function largest(one, other) {
  return one > other ? one : other;
}

/**
 * The square of a block's L2 sensitivity: no component is ever negative, so that a unit's records in a cell add
 * up, cells are orthogonal, and what replaces a unit is removed and added.
 */
export function squaredSensitivity(block, { replaces, rows, maxInCell }) {
  if (block.minimalL1 !== undefined) return block.minimalL2 ?? block.minimalL1 ** 2n;
  const [kept, inCell] = [BigInt(rows), BigInt(Math.min(maxInCell, rows))];
  const squares = (kept / inCell) * inCell ** 2n + (kept % inCell) ** 2n;
  return squares * (block.recordL2 ?? block.recordL1 ** 2n) * (replaces ? 2n : 1n);
}

/** The same of weighted moments beside a public N: the largest of D^2 (f^2 + (2 M - D)^2) over D from 0 to 2 M. */
function minimalMoments(steps, first) {
  const inner = steps ** 2n - 2n * first ** 2n;
  const root = inner > 0n ? rootRoundedDown(inner) : 0n;
  const near = (3n * steps - root) / 2n; // where the derivative is 0, or one off
  return [near - 1n, near, near + 1n, 2n * steps]
    .map((change) => change ** 2n * (first ** 2n + (2n * steps - change) ** 2n))
    .reduce(largest);
}

export const BLOCKS = {
  bernoulli(entry, mayBeMinimal) {
    const parameters = parametersOf({});
    if (mayBeMinimal && entry.nulls !== "drop") {
      return {
        components: ["true"], largest: 1n, minimalL1: 1n, parameters,
        quantities: [
          { name: "n", coefficients: [ZERO], ofPublicN: ONE },
          { name: "total", coefficients: [ONE] },
        ],
      };
    }
    return {
      components: ["false", "true"], largest: 1n, recordL1: 1n, parameters,
      quantities: [
        { name: "n", coefficients: [ONE, ONE] },
        { name: "total", coefficients: [ZERO, ONE] },
      ],
    };
  },
  categorical(entry, mayBeMinimal) {
    const names = [...keysOf(entry.categories, "categories").map(String), ...(entry.other ? ["other"] : [])];
    return {
      components: names, largest: 1n, recordL1: 1n,
      minimalL1: mayBeMinimal && entry.other ? 2n : undefined, minimalL2: 2n,
      parameters: parametersOf({ categories: names }),
      quantities: names.map((category, k) => ({
        name: "count", category, coefficients: names.map((_, i) => (i === k ? ONE : ZERO)),
      })),
    };
  },
  histogram(entry) {
    const names = binLabels(entry);
    const one = (k) => names.map((_, i) => (i === k || k === null ? ONE : ZERO));
    return {
      components: names, largest: 1n, recordL1: 1n,
      parameters: {
        ...parametersOf({ categories: names, lower: number(entry.lower, "lower"), upper: number(entry.upper, "upper") }),
        bins: { edges: entry.bins, atoms: entry.atoms },
      },
      quantities: [
        { name: "n", coefficients: one(null) },
        ...names.map((category, k) => ({ name: "count", category, coefficients: one(k) })),
      ],
    };
  },
  normal: (entry, mayBeMinimal) =>
    moments(entry, mayBeMinimal, number(entry.lower, "lower"), number(entry.upper, "upper")),
  lognormal(entry, mayBeMinimal, stated, place) {
    const [lower, upper] = ["lower", "upper"].map((end) =>
      nearly(stated, end, Math.log(toNumber(number(entry[end], end))), 2 ** -32, place));
    return moments(entry, mayBeMinimal, lower, upper);
  },
  binomial: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.trials }),
  poisson: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.upper }),
  geometric: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.upper }),
  negative_binomial: (entry, mayBeMinimal) =>
    oneSum(entry, mayBeMinimal, { counts: entry.upper, constants: { successes: entry.successes } }),
  exponential: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { upper: number(entry.upper, "upper") }),
  gamma: (entry, mayBeMinimal) =>
    oneSum(entry, mayBeMinimal, { upper: number(entry.upper, "upper"), constants: { shape: entry.shape } }),
  weibull(entry, mayBeMinimal, stated, place) {
    const power = toNumber(number(entry.upper, "upper")) ** toNumber(number(entry.shape, "shape"));
    return oneSum(entry, mayBeMinimal, { upper: nearly(stated, "upper", power, 1e-13, place) });
  },
  pareto(entry, mayBeMinimal, stated, place) {
    const ratio = divide(number(entry.upper, "upper"), number(entry.minimum, "minimum"));
    return oneSum(entry, mayBeMinimal, { upper: nearly(stated, "upper", Math.log(toNumber(ratio)), 2 ** -32, place) });
  },
  laplace: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { upper: number(entry.half_range, "half_range") }),
  normal_known_mean(entry, mayBeMinimal) {
    const half = number(entry.half_range, "half_range");
    return oneSum(entry, mayBeMinimal, { upper: multiply(half, half) });
  },
  normal_known_variance: (entry, mayBeMinimal) =>
    oneSum(entry, mayBeMinimal, {
      lower: number(entry.lower, "lower"), upper: number(entry.upper, "upper"), constants: { variance: entry.variance },
    }),
};

/** The sums of (M - X)^2, 2 (M - X)(M + X) and (M + X)^2, or weighted moments beside a public N. */
function moments(entry, mayBeMinimal, lower, upper) {
  const bits = bitsOf(entry);
  const steps = 1n << BigInt(bits);
  const half = rational(1n, 2n);
  const centre = multiply(add(lower, upper), half);
  const step = divide(multiply(subtract(upper, lower), half), rational(steps));
  const parameters = parametersOf({ lower, upper, bits });
  // n, sum X and sum X^2 as maps of the components, and of a public N.
  const inUnits = (n, total, squares, ofN) => {
    const map = (a, b, c) => n.map((_, i) =>
      add(add(multiply(a, n[i]), multiply(b, total[i])), multiply(c, squares[i])));
    return [
      { name: "n", coefficients: n, ofPublicN: ofN },
      { name: "total", coefficients: map(centre, step, ZERO), ofPublicN: multiply(centre, ofN) },
      {
        name: "total_of_squares",
        coefficients: map(multiply(centre, centre), multiply(rational(2n), multiply(centre, step)), multiply(step, step)),
        ofPublicN: multiply(multiply(centre, centre), ofN),
      },
    ];
  };
  if (mayBeMinimal && entry.nulls !== "drop") {
    const weight = entry.moment_weight === undefined ? rational(2n) : number(entry.moment_weight, "moment_weight");
    const factor = divide(rational(steps), weight);
    if (weight.n <= 0n || factor.d !== 1n) throw refused("moment_weight", "it does not fit the lattice");
    const inner = add(divide(ONE, weight), rational(2n));
    const bound = multiply(rational(steps * steps, 4n), multiply(inner, inner));
    const shift = bitLength(factor.n) - bitLength(steps);
    const exponent = shift ? `(m${shift > 0 ? "+" : ""}${shift})` : "m";
    return {
      components: [`2^${exponent} sum(X)`, "sum(X^2)"],
      largest: steps * steps > steps * factor.n ? steps * steps : steps * factor.n,
      minimalL1: bound.n / bound.d, minimalL2: minimalMoments(steps, factor.n), betweenEnds: 2n * steps * factor.n, weight, parameters,
      quantities: inUnits([ZERO, ZERO], [divide(weight, rational(steps)), ZERO], [ZERO, ONE], ONE),
    };
  }
  const record = rational(1n, 4n * steps * steps);
  const unit = rational(1n, 4n * steps);
  const quarter = rational(1n, 4n);
  const minus = (one) => subtract(ZERO, one);
  return {
    components: ["sum((M-X)^2)", "sum(2(M-X)(M+X))", "sum((M+X)^2)"],
    largest: 4n * steps * steps, recordL1: 4n * steps * steps, parameters,
    quantities: inUnits(
      [record, record, record], [minus(unit), ZERO, unit], [quarter, minus(quarter), quarter], ZERO,
    ),
  };
}

/** The sums of X - lowest and highest - X, or that of X beside a public N; a lattice about 0 has a lower bound. */
function oneSum(entry, mayBeMinimal, { counts, lower, upper, constants }) {
  const isCount = counts !== undefined;
  const bits = isCount ? null : bitsOf(entry);
  const steps = isCount ? integer(counts, "upper") : 1n << BigInt(bits);
  if (steps < 1n) throw refused("upper", "it is no count");
  const [low, high] = [lower ?? ZERO, upper ?? rational(steps)];
  const lowest = lower === undefined ? 0n : -steps;
  const width = steps - lowest;
  const [value, bound] = isCount ? ["x", "C"] : ["X", "M"];
  const known = constants && Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, format(number(text, name))]));
  const parameters = parametersOf({ lower: low, upper: high, bits, constants: known });
  if (mayBeMinimal && entry.nulls !== "drop") {
    const step = divide(subtract(high, low), rational(width));
    return {
      components: [`sum(${value})`], largest: steps, minimalL1: width, betweenEnds: width, parameters,
      quantities: [
        { name: "n", coefficients: [ZERO], ofPublicN: ONE },
        { name: "total", coefficients: [step], ofPublicN: subtract(low, multiply(step, rational(lowest))) },
      ],
    };
  }
  return {
    components: [lowest ? `sum(${bound} + ${value})` : `sum(${value})`, `sum(${bound} - ${value})`],
    largest: width, recordL1: width, parameters,
    quantities: [
      { name: "n", coefficients: [rational(1n, width), rational(1n, width)] },
      { name: "total", coefficients: [divide(high, rational(width)), divide(low, rational(width))] },
    ],
  };
}

function parametersOf({ categories = [], lower = null, upper = null, bits = null, constants }) {
  return {
    categories,
    lower: lower && format(lower),
    upper: upper && format(upper),
    lattice_bits: bits,
    ...(constants ? { constants } : {}),
  };
}

function bitsOf(entry) {
  const bits = Number(integer(entry.lattice_bits, "lattice_bits"));
  if (!(bits >= 2 && bits <= 24)) throw refused("lattice_bits", "it is out of range");
  return bits;
}

/** A bound that is a rounded function of the plan's: as stated, where it is that number but for rounding. */
function nearly(stated, end, value, off, place) {
  const bound = number(stated.parameters?.[end], `${place}.parameters.${end}`);
  if (!(Math.abs(toNumber(bound) - value) <= off * Math.max(Math.abs(value), 1))) {
    throw refused(`${place}.parameters.${end}`, "it contradicts the plan that was charged");
  }
  return bound;
}

function bitLength(size) {
  return size.toString(2).length;
}
