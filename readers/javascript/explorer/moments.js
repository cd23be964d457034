// Posteriors of a mean and a variance: a likelihood, from a table that the page carries, put to any conjugate
// prior and summed over a grid that follows the posterior: of the mean, and of the logarithm of the standard
// deviation, as priors may have something at every scale of it.

import { CENTRAL, intervalOf } from "../src/intervals.js";
import { LINES, LineDistribution } from "../src/line.js";
import { judged } from "../src/conflict.js";
import { ReleaseError } from "../src/errors.js";
import { conjugate, parsePrior } from "../src/priors.js";
import { logGamma } from "../src/special.js";
import { NOISE_AWARE, PLUG_IN } from "../src/posterior.js";

const KIND = "NormalInverseGamma";
/** Places of the grid along either side; steps are a sixth of a standard deviation or less, or as fine as they get. */
const [PLACES, STEPS_OF_SD, MOST_ROUNDS] = [201, 6, 40];
/** The standard deviation, in half ranges, that stands for 0. */
const LEAST = 1e-6;
/** Nats below the highest at which the grid may end, and the share that an open end of a table may have. */
const [FALLEN, OPEN] = [23, 1e-5];
const ORDER = 6;

/**
 * The posterior of one cell.
 *
 * @param {Object} table - of the statistic: `centre`, `half_range`, `n_prior`, `cells`
 * @param {number} index - of the cell
 * @param {Object} released - of the cell: `statistic`, its entry in the manifest, `values`, `publicN` and `estimates`
 * @param {{method: string, prior?: string}} asked
 */
export function momentsPosterior(table, index, released, { method, prior: text, nPrior }) {
  const { centre, half_range: half } = table;
  const prior = parsePrior(text ?? `ScaleMixture(${centre - half}, ${centre + half})`, KIND);
  const parts = prior.components.map(({ logShare, numbers: [loc, precision, concentration, scale] }) => ({
    logShare,
    loc: (loc - centre) / half,
    precision,
    concentration,
    scale: scale / half ** 2,
  }));
  if (nPrior !== undefined) {
    throw new ReleaseError("usage", "this page's table of likelihoods is of the default prior of the number of records");
  }
  const cell = method === PLUG_IN ? null : table.cells[index];
  if (cell === null && method !== PLUG_IN) {
    throw new ReleaseError("resolution", "the noise leaves too much open in this cell for a table that a page can carry");
  }
  const likelihood = cell === null ? exactly(released.estimates, centre, half) : tabulated(cell);
  const grid = resolved(likelihood, parts);
  return new MomentsPosterior({
    prior,
    parts,
    grid,
    unit: { centre, half },
    names: released.names,
    method,
    nPrior: method === NOISE_AWARE ? table.n_prior : null,
    judge: () => conflictOf(released, prior),
  });
}

/** Sums that are taken for exact, as near to what was released as records can have them: log likelihoods of half ranges. */
function exactly({ n: records, total, squares }, centre, half) {
  const n = Math.max(records, 0);
  const t = Math.min(Math.max((total - centre * records) / half, -n), n);
  const least = n > 0 ? (t * t) / n : 0;
  const q = Math.min(Math.max((squares - 2 * centre * total + centre ** 2 * records) / half ** 2, least), Math.max(n, least));
  const mean = n > 0 ? t / n : 0;
  const sd = Math.max(Math.sqrt(n > 0 ? q / n - mean * mean : 0), 1e-3);
  const wide = sd / Math.sqrt(n + 1);
  return {
    window: [
      [mean - 9 * wide, mean + 9 * wide],
      [Math.log(sd) - (9 * wide) / sd, Math.log(sd) + (9 * wide) / sd].map((end) => Math.min(Math.max(end, Math.log(LEAST)), 7)),
    ],
    limits: [
      [-1e3, 1e3],
      [Math.log(LEAST), 7],
    ],
    isBounded: false,
    at: (means, logs) =>
      logs.map((log) => {
        const v = Math.exp(2 * log);
        return Float64Array.from(means, (m) => -(n * Math.log(v) + (q - 2 * m * t + n * m * m) / v) / 2);
      }),
  };
}

/** A table, interpolated through the six nearest places of either side. */
function tabulated({ mean, sd, size, values }) {
  const bytes = Uint8Array.from(atob(values), (sign) => sign.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const nats = Array.from({ length: size }, (_, row) =>
    Float64Array.from({ length: size }, (_, column) => view.getInt16(2 * (row * size + column), true) / 1000),
  );
  const across = ([low, high], place) => ((place - low) / (high - low)) * (size - 1);
  const ends = [mean, sd.map((end) => Math.log(Math.max(end, LEAST)))];
  return {
    window: ends,
    limits: ends,
    isBounded: true,
    at(means, logs) {
      const rows = means.map((place) => nearest(across(mean, place), size));
      const columns = logs.map((log) => nearest(across(sd, Math.exp(log)), size));
      // Along the means first: as many rows as are asked for, with the table's own columns.
      const between = rows.map(({ first, weights }) =>
        Float64Array.from({ length: size }, (_, column) => weights.reduce((sum, weight, k) => sum + weight * nats[first + k][column], 0)),
      );
      return columns.map(({ first, weights }) =>
        Float64Array.from(between, (row) => weights.reduce((sum, weight, k) => sum + weight * row[first + k], 0)),
      );
    },
  };
}

/** Weights of the places that a polynomial goes through. */
function nearest(position, size) {
  const first = Math.min(Math.max(Math.floor(position) - 2, 0), size - ORDER);
  const weights = Array.from({ length: ORDER }, (_, k) => {
    let weight = 1;
    for (let other = 0; other < ORDER; other += 1) {
      if (other !== k) weight *= (position - first - other) / (k - other);
    }
    return weight;
  });
  return { first, weights };
}

/** Log density of the prior at a mean and the log of a standard deviation, in half ranges, with respect to these. */
function priorAt(parts, log) {
  const v = Math.exp(2 * log);
  const terms = parts.map(({ logShare, loc, precision, concentration: a, scale }) => ({
    loc,
    bend: precision / v / 2,
    top:
      logShare + a * Math.log(scale) - logGamma(a) - a * Math.log(v) - scale / v +
      0.5 * Math.log(precision / (2 * Math.PI * v)) + Math.LN2,
  }));
  const highest = Math.max(...terms.map(({ top }) => top));
  return (mean) => {
    let sum = 0;
    for (const { loc, bend, top } of terms) sum += Math.exp(top - highest - bend * (mean - loc) ** 2);
    if (sum > 0) return highest + Math.log(sum);
    // So far out that the nearest part is all of it.
    return Math.max(...terms.map(({ loc, bend, top }) => top - bend * (mean - loc) ** 2));
  };
}

const even = ([low, high]) => Array.from({ length: PLACES }, (_, i) => low + ((high - low) * i) / (PLACES - 1));

/** A grid that the posterior fits: wide enough, and of fine steps. */
function resolved(likelihood, parts) {
  let window = likelihood.window.map((ends) => [...ends]);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const grid = weighed(likelihood, parts, window);
    const next = window.map((ends, side) => fitting(ends, likelihood.limits[side], grid.sides[side]));
    if (next.every((ends, side) => ends === window[side])) {
      require(grid, likelihood);
      return grid;
    }
    window = next;
  }
  throw tooFar();
}

/** The window to look at next along a side: wider where it ends high, narrower where most of it is empty. */
function fitting(ends, [least, most], { density, sd, places }) {
  const top = density.reduce((high, value) => Math.max(high, value), 0);
  const level = top * Math.exp(-FALLEN);
  const width = ends[1] - ends[0];
  const low = density[0] > level && ends[0] > least ? Math.max(ends[0] - width / 2, least) : ends[0];
  const high = density.at(-1) > level && ends[1] < most ? Math.min(ends[1] + width / 2, most) : ends[1];
  if (low !== ends[0] || high !== ends[1]) return [low, high];
  const step = width / (PLACES - 1);
  if (sd > STEPS_OF_SD * step) return ends;
  const first = density.findIndex((value) => value > level);
  const last = density.findLastIndex((value) => value > level);
  const nearer = [places[Math.max(first - 1, 0)], places[Math.min(last + 1, PLACES - 1)]];
  return nearer[1] - nearer[0] > 0.8 * width ? ends : nearer;
}

/** The posterior's weights on a grid, and the distribution along either side. */
function weighed(likelihood, parts, window) {
  const [means, logs] = window.map(even);
  const nats = likelihood.at(means, logs);
  const step = logs[1] - logs[0];
  let top = -Infinity;
  nats.forEach((row, j) => {
    const prior = priorAt(parts, logs[j]);
    for (let i = 0; i < PLACES; i += 1) {
      row[i] += prior(means[i]);
      if (row[i] > top) top = row[i];
    }
  });
  const [ofMean, ofSd] = [new Float64Array(PLACES), new Float64Array(PLACES)];
  nats.forEach((row, j) => {
    for (let i = 0; i < PLACES; i += 1) {
      let weight = Math.exp(row[i] - top);
      if (likelihood.isBounded) {
        // What records within the bounds can have: variances up to (1 - m) (1 + m).
        const most = Math.log(1 - means[i] ** 2) / 2;
        weight *= Math.min(Math.max((most - logs[j]) / step + 0.5, 0), 1);
      }
      ofMean[i] += weight;
      ofSd[j] += weight;
    }
  });
  return { sides: [new Side(means, ofMean), new Side(logs, ofSd)] };
}

/** Refuse a posterior of which too much lies at an end of the table that is none of the parameters. */
function require({ sides }, { limits, isBounded }) {
  const natural = [
    [-1, 1],
    [Math.log(LEAST), 0],
  ];
  sides.forEach(({ places, density }, side) => {
    const total = density.reduce((sum, value) => sum + value, 0);
    [0, 1].forEach((end) => {
      const at = end === 0 ? 0 : PLACES - 1;
      const isOpen = places[at] === limits[side][end] && !(isBounded && limits[side][end] === natural[side][end]);
      if (isOpen && density[at] > OPEN * total) throw tooFar();
    });
    if (!(total > 0)) throw tooFar();
  });
}

function tooFar() {
  return new ReleaseError(
    "resolution",
    "this prior and what was released are too far apart for the table of likelihoods that the page carries",
  );
}

/** A density at even places, and its distribution function between them. */
class Side {
  constructor(places, density) {
    this.places = places;
    this.density = density;
    this.step = places[1] - places[0];
    const at = (i) => density[Math.min(Math.max(i, 0), density.length - 1)];
    // Integrals of the cubic through four places.
    this.below = new Float64Array(places.length);
    for (let i = 0; i + 1 < places.length; i += 1) {
      const area = (13 * (at(i) + at(i + 1)) - at(i - 1) - at(i + 2)) / 24;
      this.below[i + 1] = this.below[i] + Math.max(area, 0);
    }
    this.total = this.below.at(-1);
    this.mean = this.average((value) => value);
    this.sd = Math.sqrt(this.average((value) => (value - this.mean) ** 2));
  }

  average(of) {
    const sum = this.density.reduce((all, value) => all + value, 0);
    return this.density.reduce((all, value, i) => all + value * of(this.places[i]), 0) / sum;
  }

  quantile(share) {
    const wanted = share * this.total;
    let [low, high] = [0, this.below.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.below[middle] <= wanted) low = middle;
      else high = middle;
    }
    // The density is taken for linear within a step.
    const [a, b] = [this.density[low], this.density[low + 1]];
    const part = (wanted - this.below[low]) / (this.below[low + 1] - this.below[low] || 1);
    const area = part * (a + b) / 2;
    const away = area / (a / 2 + Math.sqrt(Math.max((a * a) / 4 + ((b - a) * area) / 2, 0)) || 1);
    return this.places[low] + Math.min(Math.max(away, 0), 1) * this.step;
  }

  /** The density at a place, by the cubic through the four nearest. */
  at(place) {
    const position = (place - this.places[0]) / this.step;
    const first = Math.floor(position);
    if (first < 0 || first >= this.places.length - 1) return 0;
    const t = position - first;
    const [before, left, right, after] = [-1, 0, 1, 2].map(
      (k) => this.density[Math.min(Math.max(first + k, 0), this.density.length - 1)],
    );
    const value =
      left + (t / 2) * (right - before + t * (2 * before - 5 * left + 4 * right - after + t * (3 * (left - right) + after - before)));
    return Math.max(value, 0) / (this.total * this.step);
  }
}

/** What is known of the mean and the variance of one cell; as `Posterior` of the reader. */
class MomentsPosterior {
  constructor({ prior, parts, grid, unit, names, method, nPrior, judge }) {
    Object.assign(this, { parts, unit, method, nPrior, judge });
    this.parameters = names;
    this.prior = prior.text;
    this.clipping = "ignored";
    this.defaultInterval = CENTRAL;
    [this.ofMean, this.ofLog] = grid.sides;
  }

  get conflict() {
    this.found ??= { conflict: this.judge() };
    return this.found.conflict;
  }

  isMean(parameter) {
    return this.parameters.indexOf(parameter) === 0;
  }

  mean(parameter) {
    const { centre, half } = this.unit;
    return this.isMean(parameter) ? centre + half * this.ofMean.mean : half ** 2 * this.ofLog.average((log) => Math.exp(2 * log));
  }

  sd(parameter) {
    const { half } = this.unit;
    if (this.isMean(parameter)) return half * this.ofMean.sd;
    const mean = this.ofLog.average((log) => Math.exp(2 * log));
    return half ** 2 * Math.sqrt(this.ofLog.average((log) => (Math.exp(2 * log) - mean) ** 2));
  }

  quantile(share, parameter) {
    const { centre, half } = this.unit;
    return this.isMean(parameter) ? centre + half * this.ofMean.quantile(share) : half ** 2 * Math.exp(2 * this.ofLog.quantile(share));
  }

  interval(mass, parameter, kind = this.defaultInterval) {
    return intervalOf((share) => this.quantile(share, parameter), mass, kind, this.isMean(parameter) ? [-Infinity, Infinity] : [0, Infinity]);
  }

  density(parameter, values) {
    const { centre, half } = this.unit;
    if (this.isMean(parameter)) return Float64Array.from(values, (value) => this.ofMean.at((value - centre) / half) / half);
    return Float64Array.from(values, (value) => (value > 0 ? this.ofLog.at(Math.log(value / half ** 2) / 2) / (2 * value) : 0));
  }

  priorDensity(parameter, values) {
    const { centre, half } = this.unit;
    const of = this.isMean(parameter) ? meanOfPrior : varianceOfPrior;
    const unit = this.isMean(parameter) ? half : half ** 2;
    return Float64Array.from(values, (value) => {
      const place = this.isMean(parameter) ? (value - centre) / half : value / half ** 2;
      return this.parts.reduce((sum, part) => sum + Math.exp(part.logShare + of(part, place)), 0) / unit;
    });
  }
}

/** A Student distribution of 2 a degrees of freedom. */
function meanOfPrior({ loc, precision, concentration: a, scale }, mean) {
  const width = scale / (a * precision);
  const constant = logGamma(a + 0.5) - logGamma(a) - 0.5 * Math.log(2 * a * Math.PI * width);
  return constant - (a + 0.5) * Math.log1p((mean - loc) ** 2 / (2 * a * width));
}

function varianceOfPrior({ concentration: a, scale }, variance) {
  if (!(variance > 0)) return -Infinity;
  return a * Math.log(scale) - logGamma(a) - (a + 1) * Math.log(variance) - scale / variance;
}

/** Whether the prior and the released sums disagree: records' parts in these under means and variances of the prior. */
function conflictOf({ statistic, values, publicN }, { components, text }) {
  const pairs = components.flatMap(({ logShare, numbers: [loc, precision, concentration, scale] }) => {
    const { log, start } = conjugate("InverseGamma", [concentration, scale]);
    const variances = LineDistribution.of(LINES.positive, log, [start]);
    return LEVELS.flatMap(({ share, weight }) => {
      const variance = variances.quantile(share);
      return NORMALS.map(({ away, chance }) => ({
        weight: Math.exp(logShare) * weight * chance,
        mean: loc + Math.sqrt(variance / precision) * away,
        variance,
      }));
    });
  }).filter(({ weight }) => weight > 1e-17);
  const parts = {
    total: ({ weight, mean, variance }) => ({ weight, mean, variance, third: 0 }),
    total_of_squares: ({ weight, mean, variance: v }) => ({
      weight,
      mean: v + mean ** 2,
      variance: 2 * v * (v + 2 * mean ** 2),
      third: 8 * v ** 2 * (v + 3 * mean ** 2),
    }),
  };
  const names = statistic.quantities.map(({ name }) => name).filter((name) => name !== "n");
  return judged(statistic, values, publicN, (place) => pairs.map(parts[names[place]]), text);
}

/** Levels of a distribution function, evenly spaced in their logits, and a normal number at half deviations. */
const LEVELS = Array.from({ length: 52 }, (_, i) => {
  const share = (logit) => 1 / (1 + Math.exp(-logit));
  return { share: share(i - 25.5), weight: share(i - 25) - share(i - 26) };
});
const NORMALS = Array.from({ length: 33 }, (_, i) => ({ away: (i - 16) / 2, chance: Math.exp(-0.5 * ((i - 16) / 2) ** 2) }));
const ALL = NORMALS.reduce((sum, { chance }) => sum + chance, 0);
for (const one of NORMALS) one.chance /= ALL;
