/**
 * Published likelihoods of one parameter: a log likelihood of each cell as polynomials on panels, to which any prior is put.
 *
 * At the position x of a parameter (its logit, its logarithm or itself), on the last panel with left <= x, with
 * u = (2 x - left - right) / (right - left) and v = u cut to -1..1,
 *
 *     log L = sum over k of a_k v^k + min((a_1 + a_3 + a_5 + a_7) (u - v), 0)
 */

import { ReleaseError, shown } from "./errors.js";
import { LINES, LineDistribution } from "./line.js";
import { Posterior } from "./posterior.js";
import { parsePrior } from "./priors.js";

const DEGREE = 8;
/** The line of each table's positions, and the kinds of priors on it. */
const KINDS = {
  logit: { line: LINES.probability, priors: ["Beta"], parameter: "probability" },
  logarithm: { line: LINES.positive, priors: ["Gamma", "InverseGamma"], parameter: "parameter" },
  identity: { line: LINES.real, priors: ["Normal"], parameter: "parameter" },
};
/** What of a posterior may lie where a table is no more than low. */
const LEAST_KNOWN = 1e-5;
const SEEN = 33;

/** The likelihood of one parameter in every cell; made by `Publication.likelihood`. */
export class PublishedLikelihood {
  /** @param {{rows: number, columns: Object}} table One row a panel, the cells one after the other. */
  constructor({ rows, columns }) {
    for (const name of ["cell", "left", "right", "line", "top", "error", "depth", ...powers()]) {
      if (!Object.hasOwn(columns, name)) throw corrupt(`it has no column ${name}`);
    }
    this.columns = columns;
    this.starts = [];
    for (let row = 0; row < rows; row += 1) {
      const cell = columns.cell[row];
      if (cell === this.starts.length) this.starts.push(row);
      else if (cell !== this.starts.length - 1) throw corrupt("its cells do not follow each other");
    }
    this.starts.push(rows);
    const kind = rows > 0 && Object.hasOwn(KINDS, columns.line[0]) ? KINDS[columns.line[0]] : null;
    if (kind === null) throw corrupt("its line is none of logit, logarithm and identity");
    Object.assign(this, kind);
  }

  /** How many cells there are. */
  get length() {
    return this.starts.length - 1;
  }

  /** The keys of every cell, with what its values miss by (`error`, nats) and how far below the highest that holds (`depth`). */
  get cells() {
    const { columns } = this;
    const groups = Object.keys(columns).filter((name) => name.startsWith("group_"));
    return this.starts.slice(0, -1).map((row) => ({
      keys: Object.fromEntries(groups.map((name) => [name.slice("group_".length), columns[name][row]])),
      error: columns.error[row],
      depth: columns.depth[row],
    }));
  }

  /** The number of the cell with some keys. */
  cell(where = {}) {
    const wanted = Object.entries(where);
    const fits = this.cells.flatMap(({ keys }, at) =>
      wanted.every(([column, key]) => Object.hasOwn(keys, column) && String(keys[column]) === String(key)) ? [at] : [],
    );
    if (fits.length !== 1) throw new ReleaseError("cell", `keys name one cell, and these name ${fits.length}`);
    return fits[0];
  }

  /** The log likelihood of a cell at a value of the parameter, but for a constant of the release. */
  logProb(cell, value) {
    const [low, high] = this.line.ends;
    if (!(value >= low && value <= high)) return -Infinity;
    return this.at(cell, this.line.position(value));
  }

  /** The same at a position on the line. */
  at(cell, position) {
    const { columns } = this;
    const row = this.panel(cell, position);
    const place = (2 * position - columns.left[row] - columns.right[row]) / (columns.right[row] - columns.left[row]);
    // A value at an end of the range is infinitely far along: the last panel's line goes on there.
    const within = Math.min(Math.max(place, -1), 1);
    let value = 0;
    for (let power = DEGREE; power >= 0; power -= 1) value = value * within + columns[`a${power}`][row];
    const rise = columns.a1[row] + columns.a3[row] + columns.a5[row] + columns.a7[row];
    return place === within ? value : value + Math.min(rise * (place - within), 0);
  }

  panel(cell, position) {
    let [low, high] = [this.starts[cell], this.starts[cell + 1] - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.columns.left[middle] <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * The posterior of a cell under a prior.
   *
   * @param {number | Object} cell Its number, or its keys.
   * @param {string} text A conjugate prior, as `Beta(1, 9)`, or a `Mixture` of such.
   */
  posterior(cell, text) {
    const at = typeof cell === "number" ? cell : this.cell(cell);
    if (!(Number.isInteger(at) && at >= 0 && at < this.length)) {
      throw new ReleaseError("cell", `there is no cell ${shown(String(cell))}: there are ${this.length}, from 0`);
    }
    const { line, parameter } = this;
    const prior = this.read(text);
    const log = (t) => prior.log(t) + this.at(at, t);
    const starts = [...prior.components.map(({ start }) => start), this.highest(at)];
    const distribution = LineDistribution.of(line, log, starts, prior.farthest);
    this.requireKnown(at, distribution);
    return new Posterior({
      parameters: [parameter],
      prior: prior.text,
      nPrior: null,
      method: "noise-aware",
      clipping: "ignored",
      defaultInterval: line === LINES.real ? "central" : "highest-density",
      marginals: [{ line, distribution, prior }],
      judge: () => null,
    });
  }

  read(text) {
    let refused = null;
    for (const kind of this.priors) {
      try {
        return parsePrior(text, kind);
      } catch (error) {
        if (!(error instanceof ReleaseError)) throw error;
        refused ??= error;
      }
    }
    throw refused;
  }

  /** Where the likelihood is highest, and about how wide it is there. */
  highest(cell) {
    const { columns } = this;
    let best = { at: 0, width: 1, top: -Infinity };
    for (let row = this.starts[cell]; row < this.starts[cell + 1]; row += 1) {
      const [left, length] = [columns.left[row], columns.right[row] - columns.left[row]];
      for (let i = 0; i < SEEN; i += 1) {
        const at = left + (length * i) / (SEEN - 1);
        const top = this.at(cell, at);
        if (top > best.top) best = { at, width: length / SEEN, top };
      }
    }
    return best;
  }

  /** Refuse a posterior that lies where the table is no more than low. */
  requireKnown(cell, distribution) {
    const { columns, line } = this;
    const row = this.starts[cell];
    const lowest = columns.top[row] - columns.depth[row];
    const unknown = distribution.average((value) => (this.at(cell, line.position(value)) < lowest ? 1 : 0));
    if (unknown > LEAST_KNOWN) {
      throw new ReleaseError("resolution", "the prior puts the posterior where the table is not known: compute it in Python");
    }
  }
}

function powers() {
  return Array.from({ length: DEGREE + 1 }, (_, power) => `a${power}`);
}

function corrupt(rule) {
  return new ReleaseError("file", `the table of a likelihood is corrupt, or of several parameters: ${rule}`);
}
