/**
 * The likelihood of a parameter given one sum behind noise: exact sums over N and the total A.
 *
 *     L = sum over N of prior(N) sum over A of p(A | N, parameter) exp(-|y1 - A| / b - |y2 - (R N - A)| / b)
 *
 * Log densities of A are concave between the kinks of the noise, and so is, nearly, the logarithm of the sum
 * over A as a function of N: each is summed from its mode outwards, by rules whose accuracy is looked at.
 */

import { gram, sumRule } from "./rules.js";
import { mayPause, stepDone } from "./tabulated.js";

const LEFT_OUT = 24;
const NODES = 12;
/** Nodes of the panels beyond the first, which hold little. */
const FURTHER_NODES = 10;
const [FIRST_FALL, FALL] = [10, 15];
const TOLERANCE = 1e-9;
/** So many neighbouring terms are summed one by one, each from the one before. */
const MOST_STEPS = 1600;

/** The log likelihood of a parameter at positions on its line. */
export class Likelihood {
  /**
   * @param {object} total A distribution of totals, as in totals.js.
   * @param {{values: number[], scale: number, reach: number}} noisy The released sum A, and unless N is
   *   public R N - A, in steps; the noise's scale; R.
   * @param {object} nPrior `low`, `high`, `log(n)`.
   */
  constructor(total, noisy, nPrior) {
    this.total = total;
    [this.first, this.second] = noisy.values;
    this.rate = 1 / noisy.scale;
    this.reach = noisy.reach;
    this.nPrior = nPrior;
    this.hint = null;
    this.cache = new Map();
    this.begun = { position: null, terms: null };
  }

  /** Log likelihood at a position on the parameter's line, up to a constant. */
  at(position) {
    const known = this.cache.get(position);
    if (known !== undefined) return known;
    this.total.given(position);
    // What a slice of the work left undone goes on from the terms that it had.
    if (this.begun.position !== position) this.begun = { position, terms: new Map() };
    const value = this.sumOverN(this.begun.terms);
    if (this.cache.size < 20000) this.cache.set(position, value);
    return value;
  }

  /** Log of the term of N = 0, where the total is 0 with probability one. */
  get ofNone() {
    if (this.nPrior.low > 0) return -Infinity;
    const second = this.second === undefined ? 0 : Math.abs(this.second);
    return this.nPrior.log(0) - this.rate * (Math.abs(this.first) + second);
  }

  sumOverN(known) {
    const { low, high } = this.nPrior;
    const first = Math.max(low, 1);
    const none = this.ofNone;
    if (high < first) return none;
    const term = (n) => {
      let value = known.get(n);
      if (value === undefined) {
        mayPause();
        value = this.nPrior.log(n) + this.sumOverTotals(n);
        known.set(n, value);
        stepDone();
      }
      return value;
    };
    const some = first === high ? term(first) : this.sumOfTerms(term, first, high);
    return logAdd(some, none);
  }

  sumOfTerms(term, low, high) {
    const inside = (n) => Math.min(Math.max(Math.round(n), low), high);
    const { perRow, variancePerRow } = this.total;
    const second = this.second ?? 0;
    const crossing = (this.first + second) / this.reach;
    const near = [crossing, this.first / perRow, second / (this.reach - perRow)].filter(Number.isFinite);
    let centre = this.hint ?? inside(crossing);
    for (const n of [...near.map(inside), low]) if (term(n) > term(centre)) centre = n;
    centre = mode(term, centre, low, high, inside(1 / (this.rate * this.reach)));
    this.hint = centre;
    const top = term(centre);
    const step = Math.max(1, Math.round(4 / (this.rate * this.reach)));
    const from = edge(term, centre, low, top - LEFT_OUT, step);
    const to = edge(term, centre, high, top - LEFT_OUT, step);
    const sorted = this.breaks(from, centre, to, near);
    let blocks = sorted.slice(1).map((end, i) => block(term, sorted[i], end - sorted[i], top));
    for (let round = 0; round < 60; round += 1) {
      const sum = blocks.reduce((all, one) => all + one.sum, 0);
      if (blocks.every((one) => one.error <= TOLERANCE * sum)) break;
      blocks = blocks.flatMap((one) => {
        if (one.error <= TOLERANCE * sum) return [one];
        const half = Math.floor(one.n / 2);
        return [block(term, one.start, half, top), block(term, one.start + half, one.n - half, top)];
      });
    }
    return top + Math.log(blocks.reduce((all, one) => all + one.sum, 0));
  }

  /** Where sums over N are cut: finely about the kinks of the noise, as wide as totals smooth them. */
  breaks(from, centre, to, near) {
    const { perRow, variancePerRow } = this.total;
    const found = new Set([from, to + 1]);
    const cut = (n) => {
      const at = Math.floor(n) + 1;
      if (at > from && at <= to) found.add(at);
    };
    cut(near[0]);
    for (const kink of near.slice(1)) {
      const width = Math.sqrt(Math.max(kink, 1) * variancePerRow) / Math.max(perRow, 1e-300);
      for (const away of [-6, -2, 2, 6]) cut(kink + away * width);
    }
    const longest = 20 / (this.rate * this.reach);
    for (const direction of [-1, 1]) {
      let n = centre;
      cut(n);
      for (let stride = longest / 2; n > from && n < to; stride *= 1.6) {
        n += direction * Math.min(stride, 4 * (direction > 0 ? n : n / 5));
        cut(n);
        if (direction < 0 && n < 4 * NODES) break;
      }
    }
    const sorted = [...found].sort((a, b) => a - b);
    // Cuts that nearly coincide would make more blocks than they help.
    return sorted.filter((at, i) => i === 0 || i === sorted.length - 1 || at - sorted[i - 1] > NODES / 2);
  }

  /** Log of the sum over A of its density times that of the noise; N >= 1. */
  sumOverTotals(n) {
    const { total, rate } = this;
    total.at(n);
    this.left = this.reach * n; // what the total and the second sum add up to
    const isSum = total.support === "integers";
    const least = total.support === "real" ? -Infinity : 0;
    const most = isSum ? total.most : Infinity;
    const kinks = this.second === undefined ? [this.first] : [this.first, this.reach * n - this.second];
    kinks.sort((a, b) => a - b);
    const pieces = [];
    let start = least;
    for (let i = 0; i <= kinks.length; i += 1) {
      const end = i < kinks.length ? Math.min(isSum ? Math.floor(kinks[i]) : kinks[i], most) : most;
      if (isSum ? end >= start : end > start) {
        pieces.push(this.piece(start, end, rate * (kinks.length - 2 * i)));
        start = isSum ? end + 1 : end;
      }
    }
    let top = -Infinity;
    for (const piece of pieces) top = Math.max(top, piece.top);
    if (top === -Infinity) return top;
    let sum = 0;
    for (const piece of pieces) if (piece.top > top - LEFT_OUT) sum += this.sumOfPiece(piece, top);
    return top + Math.log(sum);
  }

  /** A range of totals between kinks: in positions, and where in it the weight is highest. */
  piece(start, end, slope) {
    const { total } = this;
    const positive = total.support === "positive";
    const [from, to] = positive ? [Math.log(start), Math.log(end)] : [start, end];
    let mode = Math.min(Math.max(total.mode(slope), from), to);
    if (total.support === "integers") mode = Math.round(mode);
    const piece = { from, to, slope, mode, top: 0 };
    piece.top = this.weight(mode);
    return piece;
  }

  weight(position) {
    const { total } = this;
    const amount = total.support === "positive" ? Math.exp(position) : position;
    return total.log(position) - this.distance(amount);
  }

  /** How far the released sums lie from a total, in scales of the noise. */
  distance(amount) {
    const second = this.second === undefined ? 0 : Math.abs(this.second - this.left + amount);
    return this.rate * (Math.abs(this.first - amount) + second);
  }

  sumOfPiece({ from, to, slope, mode, top: own }, top) {
    const isSum = this.total.support === "integers";
    if (isSum) {
      const steep = Math.abs(this.total.slope(mode, slope));
      const bend = this.total.curvature(mode, slope);
      const steps = (2 * LEFT_OUT) / (steep + Math.sqrt(steep * steep + 2 * bend * LEFT_OUT) || Number.MIN_VALUE);
      if (Math.min(2 * steps, to - from) < MOST_STEPS) return this.walk(mode, from, to, slope, Math.exp(own - top));
    }
    return (
      this.march(mode, to, 1, slope, own, top) +
      (mode > from ? this.march(isSum ? mode - 1 : mode, from, -1, slope, own, top) : 0)
    );
  }

  /** Sum whole numbers from a mode to both ends, each term from the one before, until little is left. */
  walk(mode, from, to, slope, own) {
    const { total } = this;
    const least = own * Math.exp(-LEFT_OUT);
    const tilt = Math.exp(slope);
    let sum = own;
    let term = own;
    for (let x = mode; x < to && term > least; x += 1) {
      term *= total.ratio(x) * tilt;
      sum += term;
    }
    term = own;
    for (let x = mode - 1; x >= from && term > least; x -= 1) {
      term /= total.ratio(x) * tilt;
      sum += term;
    }
    return sum;
  }

  /** Sum from a position towards an end, panel by panel, until little is left. */
  march(start, end, direction, slope, own, top) {
    const { total } = this;
    const isSum = total.support === "integers";
    const floor = own - LEFT_OUT;
    let [sum, position, here] = [0, start, this.weight(start)];
    for (let panel = 0; panel < 400; panel += 1) {
      const left = direction * (end - position) + Number(isSum);
      if (!(left > 0) || here < floor) break;
      const fall = panel ? FALL : FIRST_FALL;
      const steep = Math.max(-direction * total.slope(position, slope), 0);
      const bend = total.curvature(position, slope);
      let length = (2 * fall) / (steep + Math.sqrt(steep * steep + 2 * bend * fall) || Number.MIN_VALUE);
      if (isSum) length = Math.max(Math.ceil(length), 2 * NODES);
      length = Math.min(length, left);
      // Where the curvature grows outwards, the fall is larger than it seems here.
      for (let shorter = 0; shorter < 30; shorter += 1) {
        if (isSum && length <= 2 * NODES) break;
        const last = this.weight(position + direction * (isSum ? length - 1 : length));
        if (here - last < 1.5 * fall) break;
        length *= 0.7;
        if (isSum) length = Math.max(Math.floor(length), 2 * NODES);
      }
      if (isSum && length <= 2 * NODES) {
        for (let i = 0; i < length; i += 1) sum += Math.exp(this.weight(position + direction * i) - top);
      } else {
        const count = panel ? FURTHER_NODES : NODES;
        const { nodes, weights } = gram(count, isSum ? length : Infinity);
        let part = 0;
        for (let i = 0; i < count; i += 1) {
          const away = (length * (nodes[i] + 1) - Number(isSum)) / 2;
          part += weights[i] * Math.exp(this.weight(position + direction * away) - top);
        }
        sum += length * part;
      }
      position += direction * length;
      if (isSum && direction * (end - position) < 0) break;
      here = this.weight(position);
    }
    return sum;
  }
}

function logAdd(a, b) {
  const top = Math.max(a, b);
  return top === -Infinity ? top : top + Math.log1p(Math.exp(Math.min(a, b) - top));
}

/** About where a nearly concave function of whole numbers is highest. */
function mode(term, start, low, high, step) {
  let [a, centre, b] = [start, start, start];
  for (let stride = Math.max(step, 1); b < high; stride *= 2) {
    const next = Math.min(b + stride, high);
    if (term(next) <= term(centre)) {
      b = next;
      break;
    }
    [a, centre, b] = [centre, next, next];
  }
  for (let stride = Math.max(step, 1); a === centre && a > low; stride *= 2) {
    const next = Math.max(a - stride, low);
    if (term(next) <= term(centre)) {
      a = next;
      break;
    }
    [a, centre, b] = [next, next, centre];
  }
  while (b - a > 2) {
    const top = term(centre);
    if (top - term(a) < 0.5 && top - term(b) < 0.5) break;
    const inner = b - centre > centre - a ? centre + Math.ceil(0.38 * (b - centre)) : centre - Math.ceil(0.38 * (centre - a));
    if (inner === centre || inner === a || inner === b) break;
    if (term(inner) > top) {
      if (inner > centre) a = centre;
      else b = centre;
      centre = inner;
    } else if (inner > centre) b = inner;
    else a = inner;
  }
  return centre;
}

/** The whole number beyond which terms lie below a level, between a mode and an end. */
function edge(term, centre, end, level, step) {
  const direction = Math.sign(end - centre);
  if (direction === 0) return centre;
  let [inner, stride] = [centre, step];
  let outer = centre;
  while (outer !== end) {
    const next = direction > 0 ? Math.min(centre + stride, end) : Math.max(centre - stride, end);
    outer = next;
    if (term(next) < level) break;
    inner = next;
    stride *= 2;
  }
  if (term(outer) >= level) return outer;
  while (Math.abs(outer - inner) > Math.max(1, Math.abs(inner - centre) / 8)) {
    const middle = Math.round((inner + outer) / 2);
    if (middle === inner || middle === outer) break;
    if (term(middle) < level) outer = middle;
    else inner = middle;
  }
  return outer;
}

function block(term, start, n, top) {
  let sum = 0;
  if (n <= NODES + 4) {
    for (let i = 0; i < n; i += 1) sum += Math.exp(term(start + i) - top);
    return { start, n, sum, error: 0 };
  }
  const { nodes, weights, tails } = sumRule(NODES, n);
  let [last, before] = [0, 0];
  for (let i = 0; i < NODES; i += 1) {
    const value = Math.exp(term(start + nodes[i]) - top);
    sum += weights[i] * value;
    last += tails[0][i] * value;
    before += tails[1][i] * value;
  }
  return { start, n, sum: n * sum, error: n * (Math.abs(last) + Math.abs(before)) };
}
