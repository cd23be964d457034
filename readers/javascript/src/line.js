/** The distribution of one parameter from its log density along a line, by panels of Gauss and Legendre. */

import { ReleaseError } from "./errors.js";
import { expansionAt, expansionIntegral, gauss, legendre } from "./rules.js";

const NODES = 16;
const LEFT_OUT = 28;
const TOLERANCE = 1e-8;
const MOST_PANELS = 3000;
/** What may lie outside of limits, on either side, without being cut off: as in Python. */
const NEGLIGIBLE = 1e-4;
/** Where less than this lies within limits, the density there is not known well enough. */
const LEAST_WITHIN = 1e-6;
/** The longest first panel where moments need more of a tail than the density does. */
const LONGEST_OF_TAIL = 2;

/** How a parameter lies on its line. */
export const LINES = {
  probability: {
    value: (t) => 1 / (1 + Math.exp(-t)),
    position: (value) => Math.log(value) - Math.log1p(-value),
    logSlope: (t) => -Math.abs(t) - 2 * Math.log1p(Math.exp(-Math.abs(t))),
    contains: (value) => value > 0 && value < 1,
    ends: [0, 1],
    growth: 0,
  },
  positive: {
    value: Math.exp,
    position: Math.log,
    logSlope: (t) => t,
    contains: (value) => value > 0 && value < Infinity,
    ends: [0, Infinity],
    growth: 1,
  },
  real: {
    value: (t) => t,
    position: (value) => value,
    logSlope: () => 0,
    contains: Number.isFinite,
    ends: [-Infinity, Infinity],
    growth: 0,
  },
};

/** A distribution along a line; made by `LineDistribution.of`. */
export class LineDistribution {
  constructor({ line, log, top, panels, ends }) {
    this.line = line;
    this.log = log;
    this.top = top;
    this.panels = panels;
    this.ends = ends;
    this.total = panels.reduce((sum, one) => sum + one.mass, 0);
    this.logMass = top + Math.log(this.total);
    [this.mean, this.sd] = [Infinity, Infinity];
  }

  /**
   * @param {object} line One of `LINES`.
   * @param {(t: number) => number} log Log density along the line, with respect to t; any constant.
   * @param {{at: number, width: number}[]} starts Near each of its modes, and about how wide that is.
   * @param {number} farthest Up to where an upper tail that has fallen may rise again.
   */
  static of(line, log, starts, farthest = -Infinity) {
    const peaks = apart(starts.map((start) => peak(log, start)));
    const top = Math.max(...peaks.map((one) => one.top));
    if (!Number.isFinite(top)) {
      throw new ReleaseError("resolution", "prior and released values are too far apart to be resolved");
    }
    const high = peaks[peaks.length - 1];
    const from = reach(log, peaks[0], -1, top, 0);
    const density = reach(log, high, 1, top, 0);
    // Moments weigh the upper tail by the parameter, and by its square.
    const moments = [1, 2].map((power) => (line.growth ? reach(log, high, 1, top, power) : density));
    let to = Math.max(density, ...moments.filter(Number.isFinite));
    // Noise may be all that made the tail fall: beyond, it is the prior's.
    for (let t = to + 1; t <= farthest; t += 1) if (log(t) + 2 * (t - high.at) >= top - LEFT_OUT) to = t + 1;
    const breaks = new Set([from, to]);
    for (let t = density + LONGEST_OF_TAIL; t < Math.min(to, farthest); t += LONGEST_OF_TAIL) breaks.add(t);
    for (const { at, left, right } of peaks) {
      for (const t of [at - 1.6 * left, at, at + 1.6 * right]) if (t > from && t < to) breaks.add(t);
    }
    const panels = resolve(log, [...breaks].sort((a, b) => a - b), top);
    const found = new LineDistribution({ line, log, top, panels, ends: line.ends });
    found.setMoments(moments[0] < Infinity, moments[1] < Infinity);
    return found;
  }

  setMoments(hasMean, hasSd) {
    if (hasMean) this.mean = this.average((value) => value);
    if (hasSd) this.sd = Math.sqrt(this.average((value) => (value - this.mean) ** 2));
  }

  /** This distribution given that the parameter lies within limits; itself where next to nothing lies outside. */
  within([low, high]) {
    const { line, log, panels } = this;
    const inside = this.below(high) - this.below(low);
    if (this.below(low) <= NEGLIGIBLE && 1 - this.below(high) <= NEGLIGIBLE) return this;
    if (!(inside > LEAST_WITHIN)) {
      throw new ReleaseError("resolution", "prior and released values contradict what records within the bounds can have");
    }
    const last = panels[panels.length - 1];
    const start = line.contains(low) ? Math.max(line.position(low), panels[0].start) : panels[0].start;
    let end = last.start + last.length;
    const breaks = [...panels.map((one) => one.start), end];
    if (line.contains(high)) {
      const limit = line.position(high);
      // A moment that does not exist without the limit rests on all of the tail up to there.
      if (this.sd === Infinity) for (; end < limit; end += LONGEST_OF_TAIL) breaks.push(end);
      end = this.sd === Infinity ? limit : Math.min(limit, end);
    }
    const kept = [start, ...breaks.filter((t) => t > start && t < end), end].sort((a, b) => a - b);
    const top = Math.max(...kept.map(log), this.top + Math.log(LEAST_WITHIN));
    const found = new LineDistribution({
      line, log, top, panels: resolve(log, [...new Set(kept)], top),
      ends: [Math.max(low, line.ends[0]), Math.min(high, line.ends[1])],
    });
    const isClosed = line.contains(high);
    found.setMoments(isClosed || this.mean < Infinity, isClosed || this.sd < Infinity);
    return found;
  }

  /** The average of a function of the parameter. */
  average(of) {
    let sum = 0;
    const { nodes, weights } = gauss(NODES);
    for (const { start, length, values } of this.panels) {
      for (let i = 0; i < NODES; i += 1) {
        if (values[i] > 0) {
          const value = this.line.value(start + (length * (nodes[i] + 1)) / 2);
          sum += ((length * weights[i] * values[i]) / this.total) * of(value);
        }
      }
    }
    return sum;
  }

  /** The probability below a value. */
  below(value) {
    if (!this.line.contains(value)) return value <= 0 || value === -Infinity ? 0 : 1;
    const t = this.line.position(value);
    let sum = 0;
    for (const panel of this.panels) {
      if (t >= panel.start + panel.length) sum += panel.mass;
      else {
        if (t > panel.start) sum += panel.length * expansionIntegral(panel.expansion, relative(panel, t));
        break;
      }
    }
    return Math.min(Math.max(sum / this.total, 0), 1);
  }

  /** The value below which a share lies. */
  quantile(share) {
    let wanted = share * this.total;
    const last = this.panels[this.panels.length - 1];
    const panel = this.panels.find((one) => {
      if (wanted <= one.mass || one === last) return true;
      wanted -= one.mass;
      return false;
    });
    let [low, high] = [-1, 1];
    for (let step = 0; step < 60; step += 1) {
      const middle = (low + high) / 2;
      if (panel.length * expansionIntegral(panel.expansion, middle) < wanted) low = middle;
      else high = middle;
    }
    return this.line.value(panel.start + (panel.length * (low + 1)) / 2);
  }

  /** The density at a value. */
  density(value) {
    if (!this.line.contains(value)) return 0;
    const t = this.line.position(value);
    const panel = this.panels.find((one) => t >= one.start && t <= one.start + one.length);
    if (!panel) return 0;
    const along = Math.max(expansionAt(panel.expansion, relative(panel, t)), 0);
    return (along / this.total) * Math.exp(-this.line.logSlope(t));
  }
}

function relative(panel, t) {
  return (2 * (t - panel.start)) / panel.length - 1;
}

/** A mode near a start, and how far from it on both sides the log density has fallen by about 2. */
function peak(log, { at: start, width }) {
  let [a, centre, b] = [start, start, start];
  let top = log(centre);
  if (top === -Infinity) return { at: centre, top, left: width, right: width };
  const better = (t) => {
    const value = log(t);
    if (!(value > top)) return false;
    [centre, top] = [t, value];
    return true;
  };
  for (let stride = width, n = 0; n < 200; n += 1, stride *= 2) {
    b = centre + stride;
    const before = centre;
    if (!better(b)) break;
    a = before;
  }
  if (a === centre) {
    for (let stride = width, n = 0; n < 200; n += 1, stride *= 2) {
      a = centre - stride;
      const before = centre;
      if (!better(a)) break;
      b = before;
    }
  }
  for (let n = 0; n < 100; n += 1) {
    if (top - log(a) < 0.5 && top - log(b) < 0.5) break;
    if (b - a < 1e-13 * (1 + Math.abs(centre))) break;
    const right = b - centre > centre - a;
    const inner = right ? centre + 0.382 * (b - centre) : centre - 0.382 * (centre - a);
    const before = centre;
    if (better(inner)) {
      if (right) a = before;
      else b = before;
    } else if (right) b = inner;
    else a = inner;
  }
  const side = (direction) => {
    let distance = Math.max(direction * ((direction > 0 ? b : a) - centre), 1e-12 * (1 + Math.abs(centre)));
    for (let n = 0; n < 200 && top - log(centre + direction * distance) < 2; n += 1) distance *= 1.7;
    for (let n = 0; n < 200 && top - log(centre + direction * distance) > 5; n += 1) distance *= 0.7;
    return distance;
  };
  return { at: centre, top, left: side(-1), right: side(1) };
}

/** Peaks in order, but for those that are the same one found twice. */
function apart(peaks) {
  const sorted = peaks.sort((a, b) => a.at - b.at);
  return sorted.filter((one, i) => i === 0 || one.at - sorted[i - 1].at > one.left / 2);
}

/** Where the log density, times a power of the parameter, has fallen far below the top; else infinity. */
function reach(log, { at, left, right }, direction, top, power) {
  let distance = 3 * (direction > 0 ? right : left);
  let before = log(at + direction * distance);
  for (let n = 0; n < 400; n += 1) {
    const here = log(at + direction * distance);
    if (here + power * distance < top - LEFT_OUT || here === -Infinity) return at + direction * distance;
    // So far out that the tail is its own: a power that outgrows it there has no mean.
    const step = distance * 0.4;
    const slope = n ? (here - before) / (distance - distance / 1.4) : -Infinity;
    if (power && here < top - LEFT_OUT && slope + power > -1e-6) return Infinity;
    before = here;
    distance += step;
  }
  return power ? Infinity : at + direction * distance;
}

/** Panels in which expansions of the density, over its top, are accurate. */
function resolve(log, breaks, top) {
  let panels = breaks.slice(1).map((end, i) => panelOf(log, breaks[i], end - breaks[i], top));
  for (let round = 0; round < 60; round += 1) {
    const mass = panels.reduce((sum, one) => sum + one.mass, 0);
    const isFine = (one) => one.error <= TOLERANCE * mass;
    if (panels.every(isFine)) return panels;
    if (panels.length > MOST_PANELS) break;
    panels = panels.flatMap((one) => {
      if (isFine(one)) return [one];
      const half = one.length / 2;
      return [panelOf(log, one.start, half, top), panelOf(log, one.start + half, half, top)];
    });
  }
  throw new ReleaseError("resolution", "the posterior could not be resolved to eight digits");
}

function panelOf(log, start, length, top) {
  const { nodes, weights } = gauss(NODES);
  const values = Float64Array.from(nodes, (y) => Math.exp(log(start + (length * (y + 1)) / 2) - top));
  const expansion = legendre(values);
  let mass = 0;
  for (let i = 0; i < NODES; i += 1) mass += weights[i] * values[i];
  const error = length * (Math.abs(expansion[NODES - 1]) + Math.abs(expansion[NODES - 2]));
  return { start, length, values, expansion, mass: length * mass, error };
}
