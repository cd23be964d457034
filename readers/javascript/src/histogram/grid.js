/**
 * The grid of log intensities of a histogram's bins, and what was released as emissions on it, as in Python: points .1
 * apart, each of which stands for the interval about it, in which the emission is averaged over as many places as it
 * takes to see it.
 */

import { logEmission, logEmissionOfNone } from "./emission.js";

const SPACING = 0.1;
/** The lowest expected count on the grid, of the widest bin. */
const LEAST = 0.05;
const [BLOCK, MOST] = [16, 320];
const PLACES = [4, 16, 64, 256, 1024];
/** Of the width of an emission: places that are no farther apart see it. */
const SEEN = 0.4;

/** The grid of one cell: emissions of bins of these widths, of values behind noise of one scale. Yields often. */
export function* binGrid(values, scale, widths) {
  const widest = Math.max(...widths);
  const highest = Math.max(1 / widest, ...values.map((value, bin) => {
    const most = 8 * scale + Math.max(value, 0);
    return (most + 8 * Math.sqrt(most) + 8) / widths[bin];
  }));
  let nPoints = Math.ceil(Math.log((highest * widest) / LEAST) / SPACING / BLOCK) * BLOCK;
  let spacing = SPACING;
  if (nPoints > MOST) [nPoints, spacing] = [MOST, (SPACING * nPoints) / MOST];
  const positions = Float64Array.from({ length: nPoints }, (_, i) => Math.log(LEAST / widest) + spacing * i);
  const rows = new Map();
  const ofBins = [];
  for (let bin = 0; bin < values.length; bin += 1) {
    // Bins of equal width share what is worked out of equal counts.
    const name = `${widths[bin]} ${values[bin]}`;
    if (!rows.has(name)) {
      rows.set(name, emissionsOf(positions, spacing, widths[bin], values[bin], 1 / scale));
      yield;
    }
    ofBins.push(rows.get(name));
  }
  return new BinGrid(positions, spacing, widths, ofBins);
}

/** Emissions on all points, divided by the largest, no records last; and the places that intervals took. */
function emissionsOf(positions, spacing, width, y, rate) {
  const nPoints = positions.length;
  const logs = new Float64Array(nPoints + 1);
  const places = new Array(nPoints).fill(null);
  const b = 1 / rate;
  const half = Math.exp(spacing / 2);
  for (let i = 0; i < nPoints; i += 1) {
    const mean = width * Math.exp(positions[i]);
    // How wide the emission is in x, and whether the interval is anywhere near it.
    const wide = Math.sqrt(mean + 2 * b * b) / mean;
    const reach = 9 * Math.sqrt(mean + Math.max(y, 0)) + 40 * b + 1;
    const isNear = mean * half > y - reach && mean / half < y + reach;
    const wanted = spacing / (SEEN * wide);
    if (!isNear || wanted <= 1) {
      logs[i] = logEmission(mean, y, rate);
      continue;
    }
    const number = PLACES.find((few) => wanted <= few) ?? PLACES.at(-1);
    const inner = Float64Array.from({ length: number }, (_, k) => logEmission(mean * Math.exp(((k + 0.5) / number - 0.5) * spacing), y, rate));
    const peak = inner.reduce((most, log) => Math.max(most, log), -Infinity);
    let sum = 0;
    const ends = inner.map((log) => (sum += Math.exp(log - peak)));
    logs[i] = peak + Math.log(sum / number);
    places[i] = ends.map((end) => end / sum);
  }
  logs[nPoints] = logEmissionOfNone(y, rate);
  const largest = logs.reduce((most, log) => Math.max(most, log), -Infinity);
  return { emission: logs.map((log) => Math.exp(log - largest)), largest, places };
}

class BinGrid {
  constructor(positions, spacing, widths, bins) {
    Object.assign(this, { positions, spacing, widths, bins });
  }

  get nStates() {
    return this.positions.length + 1;
  }

  /** Draw the expected count of a bin in the interval of its state. */
  mean(bin, state, random) {
    if (state === this.positions.length) return 0;
    let share = random();
    const ends = this.bins[bin].places[state];
    if (ends !== null) share = (searched(ends, random(), 0, ends.length - 1) + share) / ends.length;
    return this.widths[bin] * Math.exp(this.positions[state] + (share - 0.5) * this.spacing);
  }

  /** The mean and the mean square of the expected count of a bin about a point. */
  moments(bin, point) {
    const mean = this.widths[bin] * Math.exp(this.positions[point]);
    const ends = this.bins[bin].places[point];
    if (ends === null) return [mean, mean * mean];
    let [first, second, before] = [0, 0, 0];
    ends.forEach((end, k) => {
      const factor = Math.exp(((k + 0.5) / ends.length - 0.5) * this.spacing);
      first += (end - before) * factor;
      second += (end - before) * factor * factor;
      before = end;
    });
    return [mean * first, mean * mean * second];
  }
}

/** The first place from `low` to `high` whose end is not below a number. */
export function searched(ends, wanted, low, high) {
  let [first, last] = [low, high];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (ends[middle] < wanted) first = middle + 1;
    else last = middle;
  }
  return first;
}
