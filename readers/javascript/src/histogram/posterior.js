/** The posterior of a histogram's bins in one cell: expected counts of the law, and counts of the rows. */

import { ReleaseError } from "../errors.js";
import { countGiven } from "./emission.js";
import { binGrid, searched } from "./grid.js";
import { Walk, cumulated, firstState } from "./walk.js";

/** Multiplications of one posterior, about three seconds of a browser; and what one bin of a draw takes, in these. */
const [MOST_WORK, OF_DRAW] = [1.5e9, 150];

/**
 * Infer the bins of one cell; yields often.
 *
 * @param {number[]} values The noisy count of every bin.
 * @param {number} scale Of its noise.
 * @param {{lower: Float64Array, upper: Float64Array, isAtom: boolean[]}} bins
 * @param {number[]} steps Of the walk.
 * @param {{draws: number, most?: number}} options How many draws will be made, and how much work is allowed.
 */
export function* histogramPosterior(values, scale, bins, steps, { draws, most = MOST_WORK }) {
  const inner = bins.isAtom.map((isAtom, bin) => (isAtom ? 0 : bins.upper[bin] - bins.lower[bin]));
  const widest = Math.max(...inner) || 1;
  const widths = inner.map((width) => width || widest);
  const grid = yield* binGrid(values, scale, widths);
  const places = values.map((_, bin) => bin);
  const walking = places.filter((bin) => !bins.isAtom[bin]);
  const walk = new Walk(walking.map((bin) => grid.bins[bin].emission), grid.spacing, steps);
  // Forward twice with each kernel: once to weigh it, once to draw.
  const ofKernels = 2 * walk.kernels.length * walking.length * grid.nStates ** 2;
  if (ofKernels + OF_DRAW * draws * values.length > most) {
    throw new ReleaseError("resolution", `a histogram of ${values.length} bins would take this reader more than some seconds: Python works it out`);
  }
  yield* walk.weigh();
  const start = firstState(grid.nStates);
  const atoms = places.filter((bin) => bins.isAtom[bin]).map((bin) => {
    const weights = grid.bins[bin].emission.map((chance, state) => chance * start[state]);
    return { bin, weights, total: weights.reduce((sum, one) => sum + one, 0) };
  });
  return new HistogramPosterior({ values, scale, bins, grid, walk, walking, atoms });
}

export class HistogramPosterior {
  constructor(parts) {
    Object.assign(this, parts);
  }

  /** The log probability of the released counts. */
  get logEvidence() {
    const { logEvidence } = this.walk;
    const highest = Math.max(...logEvidence);
    const mean = logEvidence.reduce((sum, log) => sum + Math.exp(log - highest), 0) / logEvidence.length;
    const divided = this.grid.bins.reduce((sum, { largest }) => sum + largest, 0);
    return highest + Math.log(mean) + divided + this.atoms.reduce((sum, { total }) => sum + Math.log(total), 0);
  }

  /** Means and standard deviations of expected counts, without draws; yields often. */
  *expectedCounts() {
    const { grid } = this;
    const states = new Array(this.values.length);
    const ofWalk = yield* this.walk.marginals();
    this.walking.forEach((bin, at) => (states[bin] = ofWalk[at]));
    for (const { bin, weights, total } of this.atoms) states[bin] = weights.map((weight) => weight / total);
    return states.map((law, bin) => {
      let [mean, square] = [0, 0];
      for (let point = 0; point < grid.positions.length; point += 1) {
        const [first, second] = grid.moments(bin, point);
        mean += law[point] * first;
        square += law[point] * second;
      }
      return { mean, sd: Math.sqrt(Math.max(square - mean ** 2, 0)) };
    });
  }

  /** Draw expected counts of all bins jointly, or counts of the rows: a list of draws; yields often. */
  *drawn(number, { ofRows, random }) {
    const paths = yield* this.walk.drawn(number, random);
    const ends = this.atoms.map(({ weights }) => cumulated(weights));
    const rate = 1 / this.scale;
    const drawn = [];
    for (const path of paths) {
      const means = new Float64Array(this.values.length);
      this.walking.forEach((bin, at) => (means[bin] = this.grid.mean(bin, path[at], random)));
      this.atoms.forEach(({ bin }, at) => {
        const state = searched(ends[at], random() * ends[at].at(-1), 0, ends[at].length - 1);
        means[bin] = this.grid.mean(bin, state, random);
      });
      drawn.push(ofRows ? means.map((mean, bin) => countGiven(mean, this.values[bin], rate, random())) : means);
      if (drawn.length % 50 === 0) yield;
    }
    return drawn;
  }
}
