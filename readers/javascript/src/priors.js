/** Priors by their text, as the command line takes them; nothing is evaluated. */

import { ReleaseError, shown } from "./errors.js";
import { harmonic, logBeta, logGamma } from "./special.js";

const LOG_TWO_PI = Math.log(2 * Math.PI);

/** Log densities along the line of each kind, mode and width there; arguments as the text has them. */
const KINDS = {
  Beta: {
    names: ["concentration1", "concentration0"],
    line: "probability",
    of(a, b) {
      const constant = -logBeta(a, b);
      return {
        log: (t) => constant - a * softplus(-t) - b * softplus(t),
        start: { at: Math.log(a / b), width: Math.sqrt(1 / a + 1 / b) },
      };
    },
  },
  Gamma: {
    names: ["concentration", "rate"],
    line: "positive",
    of(a, rate) {
      const constant = a * Math.log(rate) - logGamma(a);
      return {
        log: (t) => constant + a * t - rate * Math.exp(t),
        start: { at: Math.log(a / rate), width: Math.sqrt(1 / a) },
      };
    },
  },
  InverseGamma: {
    names: ["concentration", "scale"],
    line: "positive",
    of(a, scale) {
      const constant = a * Math.log(scale) - logGamma(a);
      return {
        log: (t) => constant - a * t - scale * Math.exp(-t),
        start: { at: Math.log(scale / a), width: Math.sqrt(1 / a) },
      };
    },
  },
  Normal: {
    names: ["loc", "scale"],
    line: "real",
    ofAnySign: ["loc"],
    of(loc, scale) {
      const constant = -Math.log(scale) - LOG_TWO_PI / 2;
      return {
        log: (t) => constant - 0.5 * ((t - loc) / scale) ** 2,
        start: { at: loc, width: scale },
      };
    },
  },
  NormalInverseGamma: {
    names: ["loc", "precision", "concentration", "scale"],
    ofAnySign: ["loc"],
    of: () => ({}),
  },
};

/** log(1 + e^t), without overflow. */
function softplus(t) {
  return Math.max(t, 0) + Math.log1p(Math.exp(-Math.abs(t)));
}

const LIMITS = {
  concentration: [1e-3, 1e9],
  concentration1: [1e-3, 1e9],
  concentration0: [1e-3, 1e9],
  precision: [1e-40, 1e40],
  rate: [1e-40, 1e40],
  scale: [1e-40, 1e40],
};

/**
 * A prior of one parameter.
 *
 * @param {string} text Such as `Beta(1, 9)` or `Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))`.
 * @param {string} kind The name of the conjugate kind that the family takes.
 */
export function parsePrior(text, kind) {
  const call = parseCall(text);
  if (call.name === "Mixture") {
    if (call.keywords.length || call.args.length === 0 || call.args.length % 2) {
      throw refused(text, "Mixture takes weights and priors in turn");
    }
    const components = [];
    for (let i = 0; i < call.args.length; i += 2) {
      const weight = call.args[i];
      if (typeof weight !== "number" || !(weight > 0) || !Number.isFinite(weight)) {
        throw refused(text, "every weight must be a finite number above 0");
      }
      if (typeof call.args[i + 1] !== "object") throw refused(text, "Mixture takes weights and priors in turn");
      components.push({ weight, ...component(call.args[i + 1], kind, text) });
    }
    return mixture(components);
  }
  if (SPREAD[kind] === call.name) return spread(call, kind, text);
  if (kind === "NormalInverseGamma" && call.name === "ScaleMixture") return scales(call, text);
  return mixture([{ weight: 1, ...component(call, kind, text) }]);
}

/** The kinds whose second number may be spread over ten scales up to a public bound. */
const SPREAD = { Gamma: "SpreadGamma", InverseGamma: "SpreadInverseGamma" };

/** The mixture of `kind`(3, 2 v upper) for v = 10^-5.4, 10^-4.8, ..., 1. */
function spread(call, kind, text) {
  const given = [...call.args, ...call.keywords.map(([name, value]) => (name === "upper" ? value : null))];
  const [upper] = given;
  if (given.length !== 1 || typeof upper !== "number" || !(upper >= 1e-30 && upper <= 1e30)) {
    throw refused(text, `${call.name} takes exactly (upper), a number in 1e-30..1e30`);
  }
  const variances = Array.from({ length: 10 }, (_, index) => 10 ** (-0.6 * (9 - index)));
  const roots = variances.reduce((all, variance) => all + Math.sqrt(variance), 0);
  const { line, of } = KINDS[kind];
  const components = variances.map((variance) => {
    const numbers = [3, 2 * variance * upper];
    return { weight: 0.25 / 10 + (0.75 * Math.sqrt(variance)) / roots, text: "", numbers, line, ...of(...numbers) };
  });
  // Of rates: a component's density falls as e^-(b r), of the smallest b last.
  const farthest = line === "positive" && kind === "Gamma" ? Math.log(60 / components[0].numbers[1]) : -Infinity;
  return { ...mixture(components), text: `${call.name}(${upper})`, farthest };
}

/** The mixture of 14 priors of a mean and a variance of any scale within public bounds, as Python has it. */
function scales(call, text) {
  const names = ["lower", "upper"];
  const given = new Map([...call.args.map((value, i) => [names[i], value]), ...call.keywords]);
  const [lower, upper] = names.map((name) => given.get(name));
  const isNumber = [lower, upper].every((value) => typeof value === "number" && Math.abs(value) <= 1e150);
  if (given.size !== 2 || call.args.length + call.keywords.length !== 2 || !isNumber || !(lower < upper)) {
    throw refused(text, "ScaleMixture takes exactly (lower, upper), two numbers in order");
  }
  const half = upper / 2 - lower / 2;
  const variances = Array.from({ length: 14 }, (_, index) => 10 ** (-0.6 * (13 - index)));
  const roots = variances.reduce((all, variance) => all + Math.sqrt(variance), 0);
  const components = variances.map((variance) => ({
    weight: 0.25 / 14 + (0.75 * Math.sqrt(variance)) / roots,
    text: "",
    numbers: [lower / 2 + upper / 2, variance / 4, 3, 2 * variance * half * half],
  }));
  return { ...mixture(components), text: `ScaleMixture(${lower}, ${upper})` };
}

function mixture(components) {
  const sum = components.reduce((all, { weight }) => all + weight, 0);
  const parts = components.map((one) => ({ ...one, logShare: Math.log(one.weight / sum) }));
  const text = parts.length === 1
    ? parts[0].text
    : `Mixture(${parts.map((one) => `${one.weight}, ${one.text}`).join(", ")})`;
  const log = (t) => {
    if (parts.length === 1) return parts[0].log(t);
    const terms = parts.map((one) => one.logShare + one.log(t));
    const top = Math.max(...terms);
    return top === -Infinity ? top : top + Math.log(terms.reduce((all, term) => all + Math.exp(term - top), 0));
  };
  return { text, line: parts[0].line, components: parts, log };
}

function component(call, kind, text) {
  if (call.name !== kind) throw refused(text, `this family takes ${kind}, or a Mixture of such`);
  const { names, ofAnySign = [], line, of } = KINDS[kind];
  const given = new Map(call.args.map((value, i) => [names[i], value]));
  for (const [name, value] of call.keywords) {
    if (given.has(name)) throw refused(text, "every number is given once");
    given.set(name, value);
  }
  if (given.size !== names.length || !names.every((name) => given.has(name))) {
    throw refused(text, `${kind} takes exactly (${names.join(", ")})`);
  }
  const numbers = names.map((name) => {
    const value = given.get(name);
    if (typeof value !== "number" || !Number.isFinite(value)) throw refused(text, `${name} must be a number`);
    const [low, high] = LIMITS[name] ?? [-Infinity, Infinity];
    if (!ofAnySign.includes(name) && (value < low || value > high)) {
      throw refused(text, `${name} must lie in ${low}..${high}`);
    }
    return value;
  });
  return { text: `${kind}(${numbers.map(String).join(", ")})`, numbers, line, ...of(...numbers) };
}

/** A plain conjugate prior moved as a whole, by factors or by standard deviations, as in Python; nothing of others. */
export function movedPriors({ components }, kind) {
  if (components.length > 1) return [];
  const [first, second] = components[0].numbers;
  const factors = [0.25, 0.5, 2, 4];
  const pairs = {
    Gamma: () => factors.map((factor) => [first, second * factor]),
    InverseGamma: () => factors.map((factor) => [first, second * factor]),
    Normal: () => [-2, -1, 1, 2].map((sds) => [first + sds * second, second]),
    Beta: () =>
      factors.map((factor) => {
        const odds = (first / second) * factor;
        return [odds / (1 + odds), 1 / (1 + odds)].map((share) => Number(((first + second) * share).toPrecision(4)));
      }),
  }[kind];
  const [low, high] = LIMITS.concentration;
  const isKept = (numbers) => kind !== "Beta" || numbers.every((value) => value >= low && value <= high);
  return (pairs?.() ?? []).filter(isKept).map((numbers) => parsePrior(`${kind}(${numbers.join(", ")})`, kind));
}

/** Log density along the line, and where to start, of a conjugate distribution by its numbers. */
export function conjugate(kind, numbers) {
  return KINDS[kind].of(...numbers);
}

/** A Dirichlet prior of K categories: its concentrations. */
export function parseDirichlet(text, size) {
  const call = parseCall(text);
  if (call.name !== "Dirichlet" || call.keywords.length || call.args.length === 0) {
    throw refused(text, "this family takes Dirichlet with one number, or one for each category");
  }
  const numbers = call.args;
  if (!numbers.every((value) => typeof value === "number" && value >= 1e-6 && value <= 1e9)) {
    throw refused(text, "every concentration must lie in 1e-6..1e9");
  }
  if (numbers.length !== 1 && numbers.length !== size) throw refused(text, `there are ${size} categories`);
  const concentrations = numbers.length === 1 ? new Array(size).fill(numbers[0]) : numbers;
  return { text: `Dirichlet(${numbers.map(String).join(", ")})`, concentrations };
}

/** A prior of N: `Reciprocal(max)`, `Uniform(lower, upper)`, or a number that is known. */
export function parseNPrior(given) {
  const text = String(given).trim();
  const whole = (value) => Number.isSafeInteger(value) && value >= 0 && value <= 1e15;
  if (/^\d{1,16}$/.test(text) && whole(Number(text))) return fixed(Number(text));
  const rule = "a prior of N is a whole number, Uniform(lower, upper) or Reciprocal(max)";
  const { name, args, keywords } = parseCall(text);
  const names = { Reciprocal: ["max"], Uniform: ["lower", "upper"] }[name];
  if (!names) throw refused(text, rule);
  const byName = new Map([...args.map((value, i) => [names[i], value]), ...keywords]);
  const values = names.map((key) => byName.get(key));
  if (byName.size !== names.length || args.length + keywords.length !== names.length || !values.every(whole)) {
    throw refused(text, `${rule}, of whole numbers up to 10^15`);
  }
  if (name === "Reciprocal") return reciprocal(values[0]);
  if (values[0] > values[1]) throw refused(text, "lower must be at most upper");
  const logSize = Math.log(values[1] - values[0] + 1);
  return { text: `Uniform(${values[0]}, ${values[1]})`, low: values[0], high: values[1], log: () => -logSize };
}

/** N is known. */
export function fixed(n) {
  return { text: String(n), low: n, high: n, log: () => 0 };
}

/** Proportional to 1 / (N + 1) up to a bound. */
export function reciprocal(max) {
  const logTotal = Math.log(harmonic(max + 1));
  return { text: `Reciprocal(${max})`, low: 0, high: max, log: (n) => -Math.log1p(n) - logTotal };
}

/** One call: a name, numbers or calls in order, and numbers by keyword. */
function parseCall(text) {
  if (typeof text !== "string" || text.length > 20000) throw refused("", "a prior is a text such as Beta(1, 9)");
  const tokens = text.match(/[A-Za-z_][A-Za-z_0-9]*|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[(),=]|\S/g) ?? [];
  let at = 0;
  const wrong = () => refused(text, "write a name with its numbers, as in Beta(1, 9)");
  const take = (expected) => {
    if (tokens[at] !== expected) throw wrong();
    at += 1;
  };
  const argument = (depth) => {
    const token = tokens[at] ?? "";
    if (/^[A-Za-z_]/.test(token)) return call(depth + 1);
    const value = Number(token);
    if (!/^[-+.\d]/.test(token) || Number.isNaN(value)) throw wrong();
    at += 1;
    return value;
  };
  const call = (depth) => {
    const name = tokens[at] ?? "";
    if (depth > 2 || !/^[A-Za-z_]/.test(name)) throw wrong();
    at += 1;
    take("(");
    const [args, keywords] = [[], []];
    while (tokens[at] !== ")") {
      if (tokens[at + 1] === "=") {
        const key = tokens[at];
        at += 2;
        keywords.push([key, argument(depth)]);
      } else if (keywords.length) throw wrong();
      else args.push(argument(depth));
      if (tokens[at] === ",") at += 1;
      else if (tokens[at] !== ")") throw wrong();
    }
    take(")");
    return { name, args, keywords };
  };
  const found = call(0);
  if (at !== tokens.length) throw wrong();
  return found;
}

function refused(text, rule) {
  return new ReleaseError("prior", `the prior ${shown(text)}: ${rule}`);
}
