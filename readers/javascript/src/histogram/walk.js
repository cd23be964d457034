/**
 * A walk over ordered bins with a state of no records, as in Python: a filter forward on a grid of log intensities for
 * each of twenty-five kernels, weighed by their evidence; draws backward.
 */

import { searched } from "./grid.js";

/** Standard deviations of a step of the log intensity; each has the same prior probability, as each of the others. */
export const STEPS = [0.05, 0.1, 0.2, 0.4, 0.8];
const JUMP_SCALE = 1.5;
/**
 * Of columns: the share of steps that are jumps, and the chance that a bin has no records where the one before has none,
 * and that it has where that has. Smooth ones, uneven ones, heaped ones.
 */
const KINDS = [
  [0.05, 0.98],
  [0.05, 0.998],
  [0.2, 0.98],
  [0.2, 0.998],
  [0.5, 0.5],
];
const NARROW = 0.75;
const FLOOR = 1e-300;
/** Of a law that adds up to 1: what is smaller leaves no trace in the next. */
const NONE = 1e-22;

/** The law of the first bin's state, and of an atom's. */
export function firstState(nStates) {
  const found = new Float64Array(nStates).fill(0.5 / (nStates - 1));
  found[nStates - 1] = 0.5;
  return found;
}

/** Between all states, row by row: the grid's points, then that of no records. */
function transition(step, spacing, nStates, stay, jumps) {
  const nPoints = nStates - 1;
  const matrix = new Float64Array(nStates * nStates);
  const ratio = step / spacing;
  const normal = new Float64Array(nPoints);
  const jump = new Float64Array(nPoints);
  for (let gap = 0; gap < nPoints; gap += 1) {
    if (ratio < NARROW) normal[gap] = gap === 0 ? 1 - ratio ** 2 : gap === 1 ? 0.5 * ratio ** 2 : 0;
    else normal[gap] = Math.exp(-0.5 * (gap / ratio) ** 2);
    jump[gap] = Math.exp((-gap * spacing) / JUMP_SCALE);
  }
  for (let from = 0; from < nPoints; from += 1) {
    let [ofNormal, ofJump] = [0, 0];
    for (let to = 0; to < nPoints; to += 1) {
      ofNormal += normal[Math.abs(from - to)];
      ofJump += jump[Math.abs(from - to)];
    }
    for (let to = 0; to < nPoints; to += 1) {
      const gap = Math.abs(from - to);
      matrix[from * nStates + to] = stay * (((1 - jumps) * normal[gap]) / ofNormal + (jumps * jump[gap]) / ofJump);
    }
    matrix[from * nStates + nPoints] = 1 - stay;
    matrix[nPoints * nStates + from] = (1 - stay) / nPoints;
  }
  matrix[nPoints * nStates + nPoints] = stay;
  return matrix;
}

/** Walks of one cell given what was released. */
export class Walk {
  /**
   * @param {Float64Array[]} emissions Of every bin that is no atom.
   * @param {number} spacing Between the grid's points.
   * @param {number[]} steps
   */
  constructor(emissions, spacing, steps) {
    this.emissions = emissions;
    this.nStates = emissions[0]?.length ?? 2;
    this.kernels = KINDS.flatMap(([jumps, stay]) => steps.map((step) => ({ step, stay, jumps })));
    this.matrix = ({ step, stay, jumps }) => transition(step, spacing, this.nStates, stay, jumps);
    this.logEvidence = null;
  }

  /** Weigh all kernels; yields after each. */
  *weigh() {
    this.logEvidence = [];
    for (const kernel of this.kernels) {
      this.logEvidence.push(this.forward(this.matrix(kernel), null));
      yield;
    }
  }

  /** The posterior probability of every kernel. */
  get weights() {
    const highest = Math.max(...this.logEvidence);
    const raw = this.logEvidence.map((log) => Math.exp(log - highest));
    const total = raw.reduce((sum, one) => sum + one);
    return raw.map((one) => one / total);
  }

  /** Run forward with one kernel: the log evidence; laws of states go where they are kept. */
  forward(matrix, kept) {
    const { nStates } = this;
    let expected = firstState(nStates);
    let log = 0;
    for (const emission of this.emissions) {
      const alpha = new Float64Array(nStates);
      let mass = 0;
      for (let i = 0; i < nStates; i += 1) mass += alpha[i] = expected[i] * emission[i];
      mass = Math.max(mass, FLOOR);
      for (let i = 0; i < nStates; i += 1) alpha[i] /= mass;
      log += Math.log(mass);
      kept?.push(alpha);
      expected = multiplied(alpha, matrix, nStates);
    }
    return log;
  }

  /** The posterior of every bin's state over all kernels; yields after each. */
  *marginals() {
    const { nStates, emissions } = this;
    const found = emissions.map(() => new Float64Array(nStates));
    const { weights } = this;
    for (const [number, kernel] of this.kernels.entries()) {
      if (weights[number] < NONE) continue;
      const matrix = this.matrix(kernel);
      const alphas = [];
      this.forward(matrix, alphas);
      let backward = new Float64Array(nStates).fill(1);
      for (let bin = emissions.length - 1; bin >= 0; bin -= 1) {
        let total = 0;
        for (let i = 0; i < nStates; i += 1) total += alphas[bin][i] * backward[i];
        for (let i = 0; i < nStates; i += 1) found[bin][i] += (weights[number] * alphas[bin][i] * backward[i]) / Math.max(total, FLOOR);
        backward = before(emissions[bin], backward, matrix, nStates);
      }
      yield;
    }
    return found;
  }

  /** Draw states of all bins jointly: a list of paths; yields after each kernel. */
  *drawn(number, random) {
    const { weights } = this;
    const times = weights.map(() => 0);
    for (let draw = 0; draw < number; draw += 1) times[picked(weights, random())] += 1;
    const paths = [];
    for (const [at, kernel] of this.kernels.entries()) {
      if (times[at] === 0) continue;
      const matrix = this.matrix(kernel);
      const alphas = [];
      this.forward(matrix, alphas);
      paths.push(...this.backward(alphas, matrix, times[at], random));
      yield;
    }
    return paths;
  }

  backward(alphas, matrix, count, random) {
    const { nStates } = this;
    const last = alphas.length - 1;
    const paths = Array.from({ length: count }, () => new Int16Array(alphas.length));
    if (last < 0) return paths;
    const ends = cumulated(alphas[last]);
    for (const path of paths) path[last] = searched(ends, random() * ends[nStates - 1], 0, nStates - 1);
    for (let bin = last - 1; bin >= 0; bin -= 1) {
      // One distribution function for every state that is gone to.
      const known = new Map();
      for (const path of paths) {
        const after = path[bin + 1];
        if (!known.has(after)) known.set(after, cumulated(alphas[bin].map((weight, from) => weight * matrix[from * nStates + after])));
        const of = known.get(after);
        path[bin] = searched(of, random() * of[nStates - 1], 0, nStates - 1);
      }
    }
    return paths;
  }
}

/** A row times a matrix. */
function multiplied(row, matrix, n) {
  const found = new Float64Array(n);
  for (let i = 0; i < n; i += 1) {
    const weight = row[i];
    if (weight < NONE) continue;
    const begin = i * n;
    for (let j = 0; j < n; j += 1) found[j] += weight * matrix[begin + j];
  }
  return found;
}

/** A matrix times what bins from here on say, divided by its largest. */
function before(emission, backward, matrix, n) {
  const both = emission.map((chance, i) => chance * backward[i]);
  const found = new Float64Array(n);
  let largest = FLOOR;
  for (let i = 0; i < n; i += 1) {
    let sum = 0;
    for (let j = 0; j < n; j += 1) sum += matrix[i * n + j] * both[j];
    found[i] = sum;
    largest = Math.max(largest, sum);
  }
  return found.map((one) => one / largest);
}

export function cumulated(weights) {
  let sum = 0;
  return Float64Array.from(weights, (weight) => (sum += weight));
}

function picked(weights, uniform) {
  const ends = cumulated(weights);
  return searched(ends, uniform * ends.at(-1), 0, ends.length - 1);
}
