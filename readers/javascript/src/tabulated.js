/**
 * A likelihood that many priors are put to: interpolated between nodes once it was asked often in one place.
 *
 * It is worked out in slices where a deadline is set: what was found is kept, and asking again goes on from there.
 */

/** So many likelihoods are kept, the latest, unless more are asked for. */
const MOST_KEPT = 8;
/** Milliseconds of a slice. */
const SLICE = 12;
const NODES = 24;
/** So many direct answers, before a panel's nodes are worth their work. */
const FIRST = 6;
/** A panel whose last coefficients are larger, in logs, is halved; after so many halvings answers are direct. */
const TOLERANCE = 3e-12;
const MOST_HALVINGS = 8;
const MOST_KNOWN = 50_000;

const ANGLES = Array.from({ length: NODES }, (_, i) => (Math.PI * (i + 0.5)) / NODES);
const POINTS = ANGLES.map(Math.cos);
const WEIGHTS = ANGLES.map((angle, i) => (i % 2 ? -1 : 1) * Math.sin(angle));

/** Thrown where the deadline of a slice has come. */
class SliceEnded extends Error {}

/** When the present slice ends, in milliseconds of `performance.now`, and what it has done; never where none is set. */
const slice = { end: Infinity, steps: 0 };

/**
 * Do work that likelihoods make long, in slices.
 *
 * @param {function(): *} work Is begun again for every slice; likelihoods go on from where they were.
 * @param {function(): Promise<void>} pause Awaited between slices; what it throws ends the work.
 */
export async function inSlices(work, pause) {
  for (;;) {
    slice.end = performance.now() + SLICE;
    slice.steps = 0;
    try {
      return work();
    } catch (error) {
      if (!(error instanceof SliceEnded)) throw error;
    } finally {
      slice.end = Infinity;
    }
    await pause();
  }
}

/** End the slice where its deadline has come: what was kept by then is there when the work is begun again. */
export function mayPause() {
  // A slice that kept nothing would be begun again for ever.
  if (slice.steps > 0 && performance.now() > slice.end) throw new SliceEnded();
}

/** Say that something was kept that the next slice need not do again. */
export function stepDone() {
  slice.steps += 1;
}

/** Work in small steps, which goes on from where it was when it is asked for again. */
export class Resumed {
  /** @param {Generator<void, *>} steps Yields after every few milliseconds of work, and returns what it found. */
  constructor(steps) {
    this.steps = steps;
  }

  get value() {
    while (this.steps !== null) {
      mayPause();
      const { done, value } = this.steps.next();
      stepDone();
      if (done) [this.steps, this.found] = [null, value];
    }
    return this.found;
  }
}

/** Likelihoods, and other work that slices go on with, by what they are of: the latest few. */
export class KeptWork {
  constructor(most = MOST_KEPT) {
    this.most = most;
    this.kept = new Map();
    this.asked = new Set();
  }

  /** What was kept under a key, or else is made now. */
  of(key, make) {
    const found = this.kept.get(key) ?? make();
    this.kept.delete(key);
    this.kept.set(key, found);
    if (this.kept.size > this.most) this.kept.delete(this.kept.keys().next().value);
    this.asked.add(found);
    return found;
  }

  /** Say that a posterior is done: likelihoods that are asked again are worth interpolating. */
  finish() {
    for (const work of this.asked) work.isAskedAgain = true;
    this.asked.clear();
  }
}

export class TabulatedLikelihood {
  /**
   * @param {{at: function(number): number, ofNone: number}} likelihood
   * @param {number} width About how wide its mode is.
   */
  constructor(likelihood, width) {
    this.likelihood = likelihood;
    this.width = 2 ** Math.ceil(Math.log2(16 * width));
    this.panels = new Map();
    this.known = new Map();
    this.isAskedAgain = false;
  }

  get ofNone() {
    return this.likelihood.ofNone;
  }

  /** The log likelihood at a position on the parameter's line. */
  at(position) {
    if (!this.isAskedAgain) return this.direct(position);
    const index = Math.floor(position / this.width);
    let panel = this.panels.get(index);
    if (panel === undefined) {
      panel = { start: index * this.width, length: this.width, depth: 0, asked: new Set(), values: null, halves: null };
      this.panels.set(index, panel);
    }
    while (panel.halves !== null) panel = panel.halves[position < panel.halves[1].start ? 0 : 1];
    if (panel.values !== null) return interpolated(panel, position);
    panel.asked.add(position);
    if (panel.asked.size <= FIRST || panel.depth > MOST_HALVINGS || !Number.isFinite(position))
      return this.direct(position);
    this.fill(panel);
    return this.at(position);
  }

  fill(panel) {
    const { start, length, depth } = panel;
    const values = POINTS.map((point) => this.direct(start + (length * (point + 1)) / 2));
    if (values.every(Number.isFinite) && lastCoefficients(values) <= TOLERANCE) {
      panel.values = values;
      return;
    }
    const half = (from) => ({
      start: from,
      length: length / 2,
      depth: depth + 1,
      asked: new Set(),
      values: null,
      halves: null,
    });
    panel.halves = [half(start), half(start + length / 2)];
  }

  direct(position) {
    const known = this.known.get(position);
    if (known !== undefined) return known;
    mayPause();
    const value = this.likelihood.at(position);
    if (this.known.size < MOST_KNOWN) {
      this.known.set(position, value);
      stepDone();
    }
    return value;
  }
}

function interpolated({ start, length, values }, position) {
  const at = (2 * (position - start)) / length - 1;
  let [above, below] = [0, 0];
  for (let i = 0; i < NODES; i += 1) {
    const away = at - POINTS[i];
    if (away === 0) return values[i];
    above += (WEIGHTS[i] / away) * values[i];
    below += WEIGHTS[i] / away;
  }
  return above / below;
}

/** The size of the last coefficients of the polynomial through values at the nodes. */
function lastCoefficients(values) {
  let largest = 0;
  for (const order of [NODES - 1, NODES - 2, NODES - 3]) {
    let sum = 0;
    for (let i = 0; i < NODES; i += 1) sum += values[i] * Math.cos(order * ANGLES[i]);
    largest = Math.max(largest, Math.abs((2 * sum) / NODES));
  }
  return largest;
}
