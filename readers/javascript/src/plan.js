/** What follows from a canonical plan, computed again: the price, the cells, and each statistic's block. */

import {
  add, compare, divide, format, multiply, nextDown, nextUp, ofNumber, parseRational, rational, subtract, toNumber,
} from "./exact.js";
import { ReleaseError, shown } from "./errors.js";

const ONE = rational(1n);
const ZERO = rational(0n);
const NOISE_REACH = rational(64n);
const LARGEST_SCALE = 2 ** 55;
const MOST_CELLS = 1e7;
const MOST_COMPONENTS = 65536;
const MOST_PERIODS = 65536;
const DAY = 86400000;

/** The heading of a release and the fields of its statistics, as its manifest has to state them. */
export function derive(plan, order) {
  const { privacy } = plan;
  onlyKeys(plan, ["dataset", "derived", "format_version", "groups", "max_total_rows", "name", "privacy", "statistics", "window"], [], "plan");
  onlyKeys(privacy, ["epsilon", "neighboring", "unit"], [], "privacy");
  if (!isMapping(plan.derived) || !Object.values(plan.derived).every(isMapping)) throw refused("derived", "it is no mapping");
  if (plan.window !== null) onlyKeys(plan.window, ["column", "every", "time_zone"], [], "window");
  const unit = privacy.unit === "row" ? null : privacy.unit;
  if (unit !== null) {
    onlyKeys(unit, ["column", "max_rows", "nulls"], ["type"], "privacy.unit");
    if (typeof unit.column !== "string" || !["drop", "own_unit"].includes(unit.nulls)) throw refused("privacy.unit", "it is no unit");
  }
  const maxRows = unit ? Number(integer(unit.max_rows, "privacy.unit.max_rows")) : 1;
  if (!(maxRows >= 1)) throw refused("privacy.unit", "max_rows is no count");
  const replaces = privacy.neighboring === "replace_one";
  if (!replaces && privacy.neighboring !== "add_or_remove_one") throw refused("privacy", "neighboring is no relation");
  const epsilon = number(privacy.epsilon, "privacy.epsilon");
  if (compare(epsilon, ZERO) <= 0) throw refused("privacy.epsilon", "it is not above 0");
  const groups = ordered(plan.groups, order.groups, "groups").map(([column, domain]) => group(column, domain));
  const cells = groups.reduce((product, { size }) => product * size, 1);
  if (cells > MOST_CELLS) throw refused("groups", "there are too many cells");
  const entries = ordered(plan.statistics, order.statistics, "statistics");
  checkVariables(plan.statistics, order.variables);
  const shares = entries.reduce((sum, [name, entry]) => add(sum, share(name, entry)), ZERO);
  const mayBeMinimal = replaces && unit === null && groups.length === 0 && plan.window === null;
  const terms = {
    replaces, unit, maxRows, mayBeMinimal, hasGroups: groups.length > 0, maxTotalRows: integer(plan.max_total_rows, "max_total_rows"),
  };
  const statistics = entries.map(([name, entry]) => {
    const own = divide(multiply(epsilon, share(name, entry)), shares);
    return { name, entry, epsilon: own, terms };
  });
  return {
    heading: {
      name: plan.name,
      dataset: plan.dataset,
      epsilon: format(epsilon),
      neighboring: privacy.neighboring,
      unit: unit ? `column:${unit.column}` : "row",
      ...(unit ? { max_rows: maxRows, unit_nulls: unit.nulls } : {}),
      max_total_rows: Number(plan.max_total_rows),
      cells,
      groups: groups.map(({ stated }) => stated),
    },
    statistics,
  };
}

/**
 * The fields of a statistic that follow from the plan: all of them in families that this reader knows, else
 * the price and the noise, which follow from the sensitivity that is stated.
 */
export function statisticFields({ name, entry, epsilon, terms }, stated) {
  const make = Object.hasOwn(BLOCKS, entry.family) ? BLOCKS[entry.family] : null;
  if (make !== null) checkEntry(entry, terms, `statistics.${shown(name)}`);
  const isKnown = isComputedAgain(entry);
  const fields = { name, family: entry.family, epsilon: format(epsilon), noise: "discrete_laplace" };
  const place = `statistics.${shown(name)}`;
  let l1 = integer(stated.l1_sensitivity, `${place}.l1_sensitivity`);
  if (isKnown) {
    const block = make(entry, terms.mayBeMinimal, stated, place);
    if (block.components.length > MOST_COMPONENTS) throw refused(place, "it has too many components");
    const ofRecord = block.recordL1;
    const times = (terms.replaces ? 2n : 1n) * (entry.rows_of === "units" ? 1n : BigInt(terms.maxRows));
    l1 = block.minimalL1 ?? ofRecord * times;
    const { scale, text } = leastScale(l1, epsilon);
    const reach = add(rational(block.largest * terms.maxTotalRows), multiply(NOISE_REACH, ofNumber(scale)));
    Object.assign(fields, {
      columns: [entry.column],
      rows_of: sentence(entry, terms),
      design: block.minimalL1 === undefined ? "partition_of_unity" : "minimal",
      components: block.components,
      l1_sensitivity: String(l1),
      scale: text,
      partition_total: block.minimalL1 === undefined ? String(ofRecord) : null,
      value_type: compare(reach, rational(2n ** 63n)) < 0 ? "int64" : "decimal128(38, 0)",
      quantities: block.quantities.map((one) => quantity(one, block.components)),
      ...(block.weight ? { moment_weight: format(block.weight) } : {}),
      parameters: block.parameters,
    });
    return fields;
  }
  if (l1 < 1n) throw refused(`${place}.l1_sensitivity`, "it is below 1");
  fields.scale = leastScale(l1, epsilon).text;
  return fields;
}

/** Whether every field of a statistic is computed again; of others the map to quantities is taken as stated. */
export function isComputedAgain({ family, within_unit: within }) {
  return Object.hasOwn(BLOCKS, family) && within === undefined;
}

/** The least float64 noise scale whose privacy loss, rounded up, is at most epsilon. */
export function leastScale(l1, epsilon) {
  let down = toNumber(epsilon);
  if (compare(ofNumber(down), epsilon) > 0) down = nextDown(down);
  const exact = divide(rational(l1), ofNumber(down));
  let scale = toNumber(exact);
  if (compare(ofNumber(scale), exact) < 0) scale = nextUp(scale);
  if (!(scale > 0 && scale <= LARGEST_SCALE)) throw refused("statistics", "a noise scale is above 2^55");
  return { scale, text: format(ofNumber(scale)) };
}

/** Keys of the entries of families, beside those of every one. */
const KEYS = {
  bernoulli: ["nulls"],
  categorical: ["categories", "other"],
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
const OF_UNITS = ["bernoulli", "categorical", "poisson", "normal"];
/** What is a number in an entry, and nothing else follows from it. */
const NUMBERS = ["location", "mean"];
const WITHIN_UNIT = ["bernoulli", "normal", "lognormal"];
const OF_MOMENTS = ["normal", "lognormal"];

/** Refuse an entry that no spec could have. */
function checkEntry(entry, { unit }, place) {
  const { family, nulls, other } = entry;
  const optional = [...(OF_MOMENTS.includes(family) ? ["moment_weight"] : []), ...(WITHIN_UNIT.includes(family) ? ["within_unit"] : [])];
  onlyKeys(entry, ["column", "family", "rows_of", "share", ...KEYS[family]], optional, place);
  if (typeof entry.column !== "string") throw refused(`${place}.column`, "it is no name");
  const isUnits = entry.rows_of === "units" && unit !== null && OF_UNITS.includes(family);
  if (entry.rows_of !== "rows" && !isUnits) throw refused(`${place}.rows_of`, "this statistic has no such rows");
  if (entry.within_unit !== undefined && (entry.within_unit !== true || unit === null || isUnits)) {
    throw refused(`${place}.within_unit`, "this statistic has none");
  }
  if (KEYS[family].includes("nulls") && nulls !== "drop") {
    onlyKeys(nulls, ["value"], [], `${place}.nulls`);
    number(nulls.value, `${place}.nulls`);
  }
  for (const key of NUMBERS) if (KEYS[family].includes(key)) number(entry[key], `${place}.${key}`);
  if (family === "categorical" && typeof other !== "boolean") throw refused(`${place}.other`, "it is not true or false");
}

function onlyKeys(mapping, required, optional, place) {
  const fits = isMapping(mapping)
    && required.every((key) => Object.hasOwn(mapping, key))
    && Object.keys(mapping).every((key) => required.includes(key) || optional.includes(key));
  if (!fits) throw refused(place, "its keys are not those that the format states");
}

function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function share(name, entry) {
  const found = number(entry?.share, `statistics.${shown(name)}.share`);
  if (compare(found, rational(1n, 1000000n)) < 0 || compare(found, rational(1000000n)) > 0) {
    throw refused(`statistics.${shown(name)}.share`, "it is no share");
  }
  return found;
}

function sentence(entry, { unit, maxRows, hasGroups }) {
  if (unit === null) return null;
  if (entry.rows_of !== "units") return `of rows kept: at most ${maxRows} of each unit`;
  if (entry.family === "normal") {
    const where = hasGroups ? " in one cell" : "";
    return `of units: the mean of each unit's rows${where}; the variance is that of these means`;
  }
  return `of units: one row of each unit, chosen by hash${hasGroups ? ", in its cell" : ""}`;
}

function quantity({ name, category = null, coefficients, ofPublicN = ZERO }, components) {
  const stated = coefficients
    .map((weight, i) => [components[i], weight])
    .filter(([, weight]) => weight.n !== 0n)
    .map(([component, weight]) => [component, format(weight)]);
  return { name, category, coefficients: Object.fromEntries(stated), public_n_coefficient: format(ofPublicN) };
}

// Blocks of families ---------------------------------------------------------------------------------------

const BLOCKS = {
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
      minimalL1: mayBeMinimal && entry.other ? 2n : undefined,
      parameters: parametersOf({ categories: names }),
      quantities: names.map((category, k) => ({
        name: "count", category, coefficients: names.map((_, i) => (i === k ? ONE : ZERO)),
      })),
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
      minimalL1: bound.n / bound.d, weight, parameters,
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
      components: [`sum(${value})`], largest: steps, minimalL1: width, parameters,
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

// Groups ---------------------------------------------------------------------------------------------------

function group(column, domain) {
  const head = { column };
  if (Array.isArray(domain)) {
    const keys = keysOf(domain, column);
    return { size: keys.length, stated: { ...head, kind: "list", every: null, keys } };
  }
  if (domain?.range) {
    const [first, last] = domain.range.map((end) => integer(end, `groups.${shown(column)}`));
    const size = Number(last - first + 1n);
    if (!(size >= 1 && size <= MOST_CELLS)) throw refused(`groups.${shown(column)}`, "it is no range");
    return { size, stated: { ...head, kind: "range", first: String(first), last: String(last) } };
  }
  const keys = keysOf(domain, column);
  return { size: keys.length, stated: { ...head, kind: "period", every: domain.every, keys } };
}

/** The keys of a domain: as listed, of a range, or of consecutive periods. */
function keysOf(domain, place) {
  const wrong = () => refused(shown(place), "it is no domain");
  if (Array.isArray(domain)) {
    if (domain.length === 0 || !domain.every((key) => typeof key === "string") || new Set(domain).size !== domain.length) {
      throw wrong();
    }
    return domain;
  }
  if (domain?.range) {
    const [first, last] = domain.range.map((end) => Number(integer(end, place)));
    if (!(last >= first && last - first < MOST_COMPONENTS)) throw wrong();
    return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
  }
  if (typeof domain?.from !== "string" || typeof domain?.to !== "string") throw wrong();
  const keys = [];
  let start = periodStart(domain.from, domain.every);
  for (let key = domain.from; keys.length < MOST_PERIODS; key = label(start, domain.every)) {
    if (start === null || label(start, domain.every) !== key) throw wrong();
    keys.push(key);
    if (key === domain.to) return keys;
    if (start > periodStart(domain.to, domain.every)) throw wrong();
    start = following(start, domain.every);
  }
  throw wrong();
}

/** The first day of a period, in milliseconds; null where a label is no period's. */
export function periodStart(text, every) {
  const parts = { year: /^(\d{4})$/, month: /^(\d{4})-(\d{2})$/, day: /^(\d{4})-(\d{2})-(\d{2})$/, week: /^(\d{4})-W(\d{2})$/ }[every];
  const found = parts?.exec(text);
  if (!found) return null;
  const [year, second = 1, third = 1] = found.slice(1).map(Number);
  if (every === "week") {
    const first = utc(year, 0, 4); // the fourth of January lies in the first week
    return first - ((new Date(first).getUTCDay() + 6) % 7) * DAY + (second - 1) * 7 * DAY;
  }
  return utc(year, second - 1, third);
}

/** The label of the period that begins on a day. */
export function label(start, every) {
  if (every === "week") {
    const thursday = new Date(start + 3 * DAY);
    const year = thursday.getUTCFullYear();
    const week = Math.floor((thursday.getTime() - utc(year, 0, 1)) / DAY / 7) + 1;
    return `${String(year).padStart(4, "0")}-W${String(week).padStart(2, "0")}`;
  }
  return new Date(start).toISOString().slice(0, { year: 4, month: 7, day: 10 }[every]);
}

function following(start, every) {
  if (every === "day" || every === "week") return start + (every === "day" ? 1 : 7) * DAY;
  const date = new Date(start);
  return every === "month"
    ? utc(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
    : utc(date.getUTCFullYear() + 1, 0, 1);
}

function utc(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  return date.getTime();
}

// Reading --------------------------------------------------------------------------------------------------

function ordered(mapping, names, place) {
  const keys = Object.keys(mapping ?? {});
  if (!Array.isArray(names) || names.length !== keys.length || !names.every((name) => Object.hasOwn(mapping, name)) || new Set(names).size !== names.length) {
    throw refused(`declared_order.${place}`, "its names are not those of the plan");
  }
  return names.map((name) => [name, mapping[name]]);
}

/** The order of the names of mappings by variables or columns; families of one column have none. */
function checkVariables(statistics, variables) {
  if (!Array.isArray(variables)) throw refused("declared_order.variables", "it is no list");
  const seen = new Set();
  for (const [name, key, names, ...more] of variables) {
    const entry = Object.hasOwn(statistics, name) ? statistics[name] : null;
    const isKnown = entry === null || Object.hasOwn(BLOCKS, entry.family) || !Object.hasOwn(entry, key);
    if (isKnown || more.length || seen.has(`${name} ${key}`)) throw refused("declared_order.variables", "its names are not those of the plan");
    seen.add(`${name} ${key}`);
    ordered(entry[key], names, "variables");
  }
}

function number(text, place) {
  const found = parseRational(text);
  if (found === null) throw refused(place, "it is no exact number");
  return found;
}

function integer(text, place) {
  const found = number(text, place);
  if (found.d !== 1n) throw refused(place, "it is no whole number");
  return found.n;
}

function bitLength(size) {
  return size.toString(2).length;
}

function refused(place, rule) {
  return new ReleaseError("manifest", `the manifest is corrupt: ${place}: ${rule}`);
}
