/**
 * Messages up and down a tree of counts, at one point of the hyperparameters.
 *
 * Up goes the chance of all that was released at a node and below it, U(n) = p(y | n) pi(n) of leaves, and of others
 * p(y | n) times the sum of the parts below; the sum of the root's message is the evidence. Down goes what the rest
 * says, O(n). A marginal is proportional to U(n) O(n). As in Python, with a window of its own for every message.
 *
 * Work that is long is a generator: it yields after every family.
 */

import { logHyperprior } from "./populations.js";
import { TAIL, divided, normalised, placed, scaled, summed } from "./messages.js";

/** Nats beyond those of `TAIL` at which windows of leaves begin before they are cut. */
const REACH = 12 - Math.log(TAIL);
/** The largest count up to which a law of leaves is tabulated once for all of them. */
const TABLE = 2 ** 22;

/**
 * @typedef {{parents: ArrayLike<number>[], values: (ArrayLike<number>|null)[], scales: (number|null)[],
 *   sizes: ArrayLike<number>|null}} NoisyTree Levels from the root on; parents of all but the first; whole numbers
 *   that were released, and the scale of their noise, of levels that were.
 */

/** What passes over a tree have in common at all points. */
export class Passer {
  /** @param {NoisyTree} tree */
  constructor(tree, population) {
    this.tree = tree;
    this.population = population;
    this.depth = tree.parents.length;
    this.nodes = [1, ...tree.parents.map(({ length }) => length)];
    this.families = tree.parents.map((parents, level) => {
      const families = Array.from({ length: this.nodes[level] }, () => []);
      for (let node = 0; node < parents.length; node += 1) families[parents[node]].push(node);
      return families;
    });
    this.findKeys();
  }

  get nLeaves() {
    return this.nodes[this.depth];
  }

  get leavesAreReleased() {
    return this.tree.scales[this.depth] !== null;
  }

  /** Leaves that differ in what their messages depend on: each once, and which of them every leaf is. */
  findKeys() {
    const { values, scales, sizes } = this.tree;
    const [released, scale] = [values[this.depth], scales[this.depth]];
    const above = scale === null ? this.boundsFromAbove() : null;
    const reach = scale === null ? 0 : Math.ceil(REACH * scale);
    const numbers = new Map();
    this.keys = [];
    this.keyOf = new Int32Array(this.nLeaves);
    for (let leaf = 0; leaf < this.nLeaves; leaf += 1) {
      const value = released === null ? 0 : released[leaf];
      const bound = above === null ? Math.max(value, 0) + reach : above[leaf];
      const size = sizes === null ? 1 : sizes[leaf];
      const name = `${value} ${bound} ${size}`;
      if (!numbers.has(name)) {
        numbers.set(name, this.keys.length);
        this.keys.push({ value, bound, size, low: scale === null ? 0 : Math.max(Math.min(value, bound) - reach, 0), number: 0 });
      }
      const key = numbers.get(name);
      this.keys[key].number += 1;
      this.keyOf[leaf] = key;
    }
    this.largest = this.keys.reduce((most, { bound }) => Math.max(most, bound), 0);
    this.cells = this.keys.reduce((sum, { low, bound }) => sum + bound - low + 1, 0);
    this.isTabled = this.keys.every(({ size }) => size === this.keys[0].size) && this.largest < Math.min(TABLE, 4 * this.cells);
  }

  /** A count that each leaf exceeds only if a noise above it exceeds its reach. */
  boundsFromAbove() {
    const { parents, values, scales } = this.tree;
    let bounds = [Infinity];
    for (let level = 0; level <= this.depth; level += 1) {
      if (level > 0) bounds = Array.from(parents[level - 1], (parent) => bounds[parent]);
      const [released, scale] = [values[level], scales[level]];
      if (released !== null) bounds = bounds.map((bound, node) => Math.min(bound, Math.max(released[node], 0) + Math.ceil(REACH * scale)));
    }
    return bounds;
  }

  /** The message of every key, and the logarithm of its sum. */
  leaves(point) {
    const scale = this.tree.scales[this.depth];
    const table = this.isTabled ? this.population.logWeights(0, this.largest + 1, point, this.keys[0].size) : null;
    const constant = scale === null ? 0 : Math.log(Math.tanh(0.5 / scale));
    return this.keys.map(({ value, bound, size, low }) => {
      const width = bound - low + 1;
      const logs = table === null ? this.population.logWeights(low, width, point, size) : table.slice(low, bound + 1);
      if (scale !== null) for (let i = 0; i < width; i += 1) logs[i] -= Math.abs(low + i - value) / scale;
      const highest = largestOf(logs);
      for (let i = 0; i < width; i += 1) logs[i] = Math.exp(logs[i] - highest);
      const { message, logSum } = normalised(low, logs);
      return { message, logSum: logSum + highest + constant };
    });
  }

  /** The log density of a point and of the leaves' values alone. */
  ofLeaves(point) {
    const prior = logHyperprior(point);
    if (prior === -Infinity) return prior;
    return prior + this.logEvidenceOfLeaves(point);
  }

  logEvidenceOfLeaves(point) {
    if (!this.isTabled || 8 * this.largest > this.cells) {
      return this.leaves(point).reduce((sum, { logSum }, key) => sum + logSum * this.keys[key].number, 0);
    }
    // Sums of weights that fall by q a count on either side, for all values at once: from below, and from above.
    const rate = 1 / this.tree.scales[this.depth];
    const table = this.population.logWeights(0, this.largest + 1, point, this.keys[0].size);
    const below = new Float64Array(table.length);
    const above = new Float64Array(table.length);
    for (let n = 0, log = -Infinity; n < table.length; n += 1) below[n] = log = logSum(table[n], log - rate);
    for (let n = table.length - 1, log = -Infinity; n >= 0; n -= 1) {
      above[n] = log - rate;
      log = logSum(table[n], above[n]);
    }
    const constant = Math.log(Math.tanh(0.5 * rate));
    return this.keys.reduce((sum, { value, number }) => {
      const at = Math.max(value, 0);
      return sum + number * (constant + logSum(below[at], above[at]) - (at - value) * rate);
    }, 0);
  }

  /** The log density of a point and of all that was released. */
  *ofTree(point) {
    const prior = logHyperprior(point);
    return prior === -Infinity ? prior : prior + (yield* this.up(point, false)).logEvidence;
  }

  /**
   * Pass messages up to the root.
   *
   * @param {number[]} point
   * @param {boolean} isKept Whether the way back is kept.
   * @param {number} most Multiplications, above which null comes back.
   */
  *up(point, isKept, most = Infinity) {
    const { values, scales } = this.tree;
    const leaves = this.leaves(point);
    let logEvidence = leaves.reduce((sum, one, key) => sum + one.logSum * this.keys[key].number, 0);
    let work = 4 * this.cells;
    let parts = Array.from(this.keyOf, (key, node) => ({ message: leaves[key].message, node }));
    const levels = [];
    for (let level = this.depth - 1; level >= 0; level -= 1) {
      const below = parts;
      const sums = [];
      parts = [];
      for (let node = 0; node < this.nodes[level]; node += 1) {
        const family = this.families[level][node].map((child) => below[child]);
        const sum = added(family, isKept, (pair) => {
          logEvidence += pair.logSum;
          work += pair.work;
        });
        let { message } = sum;
        if (values[level] !== null) {
          const { weights, highest } = withNoise(message, values[level][node], scales[level]);
          const cut = normalised(message.low, weights);
          logEvidence += cut.logSum + highest;
          message = cut.message;
        }
        parts.push({ message, node });
        if (isKept) sums.push(sum);
        if (work > most) return null;
        yield;
      }
      if (isKept) levels.unshift({ nodes: below, sums });
    }
    return { logEvidence, work, root: parts[0].message, levels };
  }

  /**
   * Pass down what the rest says, and give the marginals of every level.
   *
   * @param {object} upward From `up`, with its way back.
   * @param {function(number, number, {low: number, weights: Float64Array})} found Is given level, node, chances.
   * @returns {{rounding: number, cut: number}} What rounding and the cut of tails may change a chance by, about.
   */
  *down({ root, levels }, found) {
    const errors = { rounding: 0, cut: 0 };
    let outside = [new Float64Array(root.weights.length).fill(1)];
    let messages = [root];
    found(0, 0, marginal(root, outside[0], errors));
    for (let level = 0; level < this.depth; level += 1) {
      const { nodes, sums } = levels[level];
      const below = new Array(nodes.length);
      for (let node = 0; node < sums.length; node += 1) {
        const { message } = sums[node];
        const said = this.saidOfSum(level, node, message, { low: messages[node].low, weights: outside[node] });
        const waiting = [[sums[node], said]];
        while (waiting.length > 0) {
          const [part, weights] = waiting.pop();
          if (part.left === undefined) {
            below[part.node] = weights;
            found(level + 1, part.node, marginal(part.message, weights, errors));
          } else {
            const [first, second] = divided(part, weights);
            waiting.push([part.left, first], [part.right, second]);
          }
        }
        yield;
      }
      outside = below;
      messages = nodes.map(({ message }) => message);
    }
    return errors;
  }

  /** What the rest and a node's released value say of the sum below it, on its window. */
  saidOfSum(level, node, { low, weights: { length } }, outside) {
    const weights = placed(outside, low, length);
    const released = this.tree.values[level];
    return scaled(released === null ? weights : withNoise({ low, weights }, released[node], this.tree.scales[level]).weights);
  }
}

/** Add parts two by two, the first with the second and so on; the last may be left alone. */
function added(parts, isKept, tell) {
  let left = parts;
  while (left.length > 1) {
    const sums = [];
    for (let i = 0; i < left.length; i += 2) {
      const sum = i + 1 < left.length ? summed(left[i], left[i + 1], isKept) : left[i];
      if (sum !== left[i]) tell(sum);
      sums.push(sum);
    }
    left = sums;
  }
  return left[0];
}

/** Multiply a message by the chance of its node's released value; also return what was divided by. */
function withNoise({ low, weights }, value, scale) {
  const constant = Math.log(Math.tanh(0.5 / scale));
  // Where a window is far from its value all chances are small.
  let nearest = Infinity;
  for (let i = 0; i < weights.length; i += 1) if (weights[i] > 0) nearest = Math.min(nearest, Math.abs(low + i - value));
  const found = new Float64Array(weights.length);
  for (let i = 0; i < weights.length; i += 1) {
    if (weights[i] > 0) found[i] = weights[i] * Math.exp((nearest - Math.abs(low + i - value)) / scale);
  }
  return { weights: found, highest: constant - nearest / scale };
}

/** Posterior chances, and what they may be off by. */
function marginal({ low, weights }, outside, errors) {
  const joint = new Float64Array(weights.length);
  let [total, ofMessage, ofOutside] = [0, 0, 0];
  for (let i = 0; i < weights.length; i += 1) {
    joint[i] = weights[i] * outside[i];
    total += joint[i];
    ofMessage += weights[i] * weights[i];
    ofOutside += outside[i] * outside[i];
  }
  const rounding = (Number.EPSILON * Math.sqrt(ofMessage * ofOutside)) / total;
  errors.rounding = Math.max(errors.rounding, Number.isNaN(rounding) ? Infinity : rounding);
  if (total > 0) for (let i = 0; i < joint.length; i += 1) joint[i] /= total;
  const ends = (low > 0 ? joint[0] : 0) + joint[joint.length - 1];
  errors.cut = Math.max(errors.cut, ends * joint.length);
  return { low, weights: joint };
}

function largestOf(logs) {
  let highest = -Infinity;
  for (let i = 0; i < logs.length; i += 1) if (logs[i] > highest) highest = logs[i];
  return highest;
}

function logSum(a, b) {
  const high = Math.max(a, b);
  return high === -Infinity ? high : high + Math.log1p(Math.exp(-Math.abs(a - b)));
}
