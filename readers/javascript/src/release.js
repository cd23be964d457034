/** A release that was checked: its statistics, cells, tables and posteriors. */

import { ReleaseError, shown } from "./errors.js";
import { CONE_NOISE, coneVariance } from "./cone_noise.js";
import { parseRational, toNumber } from "./exact.js";
import { ONE_SUM } from "./families.js";
import { countsPosterior } from "./counts.js";
import { readValues } from "./parquet.js";
import { isComputedAgain } from "./plan.js";
import { binEnds, gridPoint, isQuantile, isSampled, noStatistics } from "./samples.js";
import { KeptWork, Resumed, inSlices } from "./tabulated.js";
import { MOST_MOVED } from "./conflict.js";
import { NOISE_AWARE, PLUG_IN, oneSumPosterior, oneSumTogether } from "./posterior.js";
import { binsOf } from "./histogram/bins.js";
import { columnOf } from "./histogram/column.js";
import { stepsOf } from "./histogram/prior.js";
import { finished } from "./tree/posterior.js";
import { releasedTree, treesOf } from "./tree/released_tree.js";

/** A checked release; made by `readRelease`. */
export class Release {
  constructor(manifest, files, signatureStatus, wanted, withdrawal, about) {
    this.manifest = manifest;
    this.about = about;
    this.signatureStatus = signatureStatus;
    this.withdrawal = withdrawal;
    this.groups = groupsOf(manifest.groups);
    this.groupsByStatistic = new Map();
    this.nCells = manifest.cells;
    this.values = new Map();
    this.kept = new KeptWork();
    this.keptOfAll = new KeptWork(12 * MOST_MOVED);
    manifest.statistics.forEach((statistic, i) => {
      if (!wanted.has(statistic.name)) return;
      const groups = statistic.groups === undefined ? this.groups : groupsOf(statistic.groups);
      this.groupsByStatistic.set(statistic.name, groups);
      this.values.set(statistic.name, readValues(files.get(manifest.files[i].path), statistic, groups));
    });
  }

  get name() {
    return this.manifest.name;
  }

  get releaseId() {
    return this.manifest.release_id;
  }

  /** The statistics, in declared order. */
  get statistics() {
    return this.manifest.statistics.map((entry) => ({
      name: entry.name,
      family: entry.family,
      columns: entry.columns,
      components: entry.components ?? [],
      epsilon: entry.epsilon,
      rho: entry.rho,
      mechanism: entry.mechanism,
      scale: entry.scale,
      rowsOf: entry.rows_of,
      isComputedAgain: isComputedAgain(entry) && !isSampled(entry),
      hasPosterior: hasPosterior(entry),
    }));
  }

  /** The groups of a statistic; without one, of those that state none of their own. */
  groupsOf(statistic) {
    return statistic === undefined ? this.groups : this.groupsByStatistic.get(this.entry(statistic).name);
  }

  /** The cells: one object of group keys each, in order; one empty object where there are no groups. */
  cells(statistic) {
    const groups = this.groupsOf(statistic);
    return Array.from({ length: cellCount(groups) }, (_, index) => cellAt(groups, index));
  }

  /**
   * Estimates of a statistic's quantities with the standard deviations of their noise.
   *
   * @param {string} statistic
   * @param {Record<string, string | number>} [where] Keys that cells must have.
   */
  table(statistic, where = {}) {
    const entry = this.noisy(statistic);
    const values = this.values.get(statistic);
    const width = entry.components.length;
    const ofCone = entry.cone_noise;
    const noise = ofCone === undefined ? discreteLaplaceSd(toNumber(parseRational(entry.scale))) : null;
    const rows = [];
    const maps = entry.quantities.map((quantity) => {
      const map = mapOf(quantity, entry.components);
      const weights = map.weights.map(([component, weight]) => [component, toNumber(weight)]);
      return { quantity, ...map, noiseSd: ofCone === undefined ? noise * map.norm : Math.sqrt(coneVariance(ofCone, weights)) };
    });
    const groups = this.groupsOf(statistic);
    for (const index of this.selected(where, statistic)) {
      for (const { quantity, weights, ofPublicN, noiseSd } of maps) {
        let [numerator, denominator] = [ofPublicN.n * BigInt(this.manifest.n ?? 0), ofPublicN.d];
        for (const [component, weight] of weights) {
          const product = weight.n * values[index * width + component];
          numerator = numerator * weight.d + product * denominator;
          denominator *= weight.d;
        }
        rows.push({
          cell: cellAt(groups, index),
          quantity: quantity.name,
          category: quantity.category,
          component: quantity.component ?? null,
          labels: quantity.labels ?? [],
          estimate: toNumber({ n: numerator, d: denominator }),
          noiseSd,
        });
      }
    }
    return rows;
  }

  /**
   * The exact posterior of one cell.
   *
   * @param {string} statistic
   * @param {{prior?: string, nPrior?: string | number, where?: Record<string, string | number>,
   *   method?: string, clipping?: string}} [options] By default the family's prior, the release's prior of N,
   *   and `noise-aware`.
   */
  posterior(statistic, options = {}) {
    const entry = this.noisy(statistic);
    const method = options.method ?? NOISE_AWARE;
    if (method !== NOISE_AWARE && method !== PLUG_IN) {
      throw new ReleaseError("method", `there is no method ${shown(method)}: choose ${NOISE_AWARE} or ${PLUG_IN}`);
    }
    const selected = this.selected(options.where ?? {}, statistic);
    if (selected.length !== 1) {
      throw new ReleaseError("cell", `${selected.length} cells fit: name the key of every group in where`);
    }
    if (!hasPosterior(entry)) {
      const alike = entry.within_unit === undefined ? "" : " whose rows of a unit are alike";
      const ofNoise = entry.mechanism === CONE_NOISE ? " with noise on a cone" : alike;
      const why = entry.count_clipped === undefined ? ofNoise : " with counts of what clipping moved";
      throw new ReleaseError("statistic", `${shown(statistic)} is ${shown(entry.family)}${why}: this reader has no posterior of it; a published one can be read`);
    }
    const compute = entry.family === "categorical" ? countsPosterior : oneSumPosterior;
    const width = entry.components.length;
    const values = [...this.values.get(statistic).slice(selected[0] * width, (selected[0] + 1) * width)];
    const { n, max_total_rows: maxTotalRows } = this.manifest;
    const found = compute(entry, values, { n, maxTotalRows }, {
      ...options,
      method,
      labels: this.about.statistics?.[statistic]?.values,
      kept: { of: (key, make) => this.kept.of(`${selected[0]} ${key} ${statistic}`, make) },
    });
    this.kept.finish();
    return found;
  }

  /**
   * The same, worked out in slices of some milliseconds, so that a page stays alive meanwhile.
   *
   * @param {string} statistic
   * @param {object} options As of `posterior`, and `parameters`: those that are worked out, all by default;
   *   others are when they are asked for, in one go.
   * @param {() => Promise<void>} [pause] Awaited between slices; what it throws ends the work.
   */
  posteriorInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
    const { parameters, ...asked } = options;
    return inSlices(() => {
      const found = this.posterior(statistic, asked);
      for (const parameter of parameters ?? found.parameters) found.marginal(parameter);
      return found;
    }, pause);
  }

  /**
   * Whether all cells together contradict a prior that no cell alone may contradict, as Python judges it; null where
   * this reader does not judge. The default prior is what others are compared with, and is never contradicted.
   *
   * @param {string} statistic
   * @param {{prior?: string, nPrior?: string | number, most?: number}} [options] `most`: cells that are compared.
   */
  conflict(statistic, options = {}) {
    const entry = this.noisy(statistic);
    if (!hasPosterior(entry) || !Object.hasOwn(ONE_SUM, entry.family)) return null;
    const width = entry.components.length;
    const valuesOf = (cell) => [...this.values.get(statistic).slice(cell * width, (cell + 1) * width)];
    const keptOf = (cell) => ({
      of: (key, make) => this.keptOfAll.of(`${cell} ${key} ${statistic}`, make),
      finish: () => this.keptOfAll.finish(),
    });
    const { n, max_total_rows: maxTotalRows } = this.manifest;
    return oneSumTogether(entry, valuesOf, cellCount(this.groupsOf(statistic)), { n, maxTotalRows }, options, keptOf);
  }

  /** The same in slices, as `posteriorInSlices`. */
  conflictInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
    return inSlices(() => this.conflict(statistic, options), pause);
  }

  /** Trees of counts or totals: name, levels from the root on, and the groups beside them, of which `where` names a key. */
  get trees() {
    return treesOf(this);
  }

  /**
   * The joint posterior of the counts at all nodes of a tree, or of totals in the column's unit: they add up.
   *
   * @param {string} name As the spec called the statistic that has a hierarchy.
   * @param {{where?: Record<string, string | number>, population?: string, sizes?: number[], most?: number}} [options]
   *   `sizes`: known sizes of the leaves; `most`: multiplications, above which a tree is refused, by default some
   *   seconds of them.
   */
  tree(name, options = {}) {
    return finished(releasedTree(this, name, options));
  }

  /** The same in slices, as `posteriorInSlices`. */
  treeInSlices(name, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
    const resumed = new Resumed(releasedTree(this, name, options));
    return inSlices(() => resumed.value, pause);
  }

  /**
   * The column behind a histogram, in one cell: its quantiles, tail shares, mean and density.
   *
   * @param {string} statistic
   * @param {{where?: Record<string, string | number>, of?: "law" | "rows", prior?: string, draws?: number,
   *   rng?: string | number | (() => number), most?: number}} [options]
   */
  column(statistic, options = {}) {
    return finished(this.columnSteps(statistic, options));
  }

  /** The same in slices, as `posteriorInSlices`. */
  columnInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
    const resumed = new Resumed(this.columnSteps(statistic, options));
    return inSlices(() => resumed.value, pause);
  }

  columnSteps(statistic, { where = {}, prior, ...options }) {
    const entry = this.noisy(statistic);
    if (entry.family !== "histogram") throw new ReleaseError("statistic", `${shown(statistic)} is ${shown(entry.family)}: a column's quantiles are of histograms`);
    const selected = this.selected(where, statistic);
    if (selected.length !== 1) throw new ReleaseError("cell", `${selected.length} cells fit: name the key of every group in where`);
    const width = entry.components.length;
    const values = Array.from(this.values.get(statistic).slice(selected[0] * width, (selected[0] + 1) * width), Number);
    return columnOf(values, toNumber(parseRational(entry.scale)), binsOf(entry.parameters), stepsOf(prior), options);
  }

  /**
   * The draws of a posterior sample, in the parameter's unit: one row for each cell and draw. Of a drawn quantile
   * the lower and the upper end of the bin, in the column's unit.
   *
   * @param {string} statistic
   * @param {Record<string, string | number>} [where] Keys that cells must have.
   */
  samples(statistic, where = {}) {
    const entry = this.entry(statistic);
    if (!isSampled(entry)) {
      throw new ReleaseError("statistic", `${shown(statistic)} was released as noisy statistics, not as a sample`);
    }
    const { parameter, draws } = entry;
    const points = this.values.get(statistic);
    const groups = this.groupsOf(statistic);
    const bins = isQuantile(entry)
      ? binEnds(entry.parameters.bins).map(([lower, upper]) => ({ lower: toNumber(lower), upper: toNumber(upper) }))
      : null;
    return this.selected(where, statistic).flatMap((index) =>
      Array.from({ length: draws }, (_, draw) => ({
        cell: cellAt(groups, index),
        parameter: bins === null ? parameter : `quantile ${entry.quantile}`,
        draw,
        ...(bins === null ? { value: gridPoint(entry, points[index * draws + draw]) } : bins[points[index * draws + draw]]),
      })),
    );
  }

  /** The entry of a statistic that is no sample. */
  noisy(statistic) {
    const found = this.entry(statistic);
    if (isSampled(found)) throw noStatistics(shown(statistic));
    return found;
  }

  entry(statistic) {
    const found = this.manifest.statistics.find(({ name }) => name === statistic);
    if (!found) {
      const tree = this.trees.find(({ name }) => name === statistic);
      if (tree !== undefined) {
        const levels = tree.levels.map((level) => shown(`${tree.name}.${level}`)).join(", ");
        throw new ReleaseError("statistic", `${shown(statistic)} is a tree: release.tree(${shown(statistic)}).table(); its levels are the statistics ${levels}`);
      }
      const known = this.manifest.statistics.slice(0, 8).map(({ name }) => shown(name)).join(", ");
      throw new ReleaseError("statistic", `there is no statistic ${shown(statistic)}: there are ${known}`);
    }
    if (!this.values.has(statistic)) throw new ReleaseError("usage", `${shown(statistic)} was not read: name it in statistics`);
    return found;
  }

  /** Positions of the cells of a statistic that have the given keys. */
  selected(where, statistic) {
    const groups = this.groupsOf(statistic);
    const wanted = Object.entries(where).map(([column, key]) => {
      const group = groups.find((one) => one.column === column);
      if (!group) throw new ReleaseError("cell", `there is no group ${shown(column)}`);
      const at = group.keys.findIndex((one) => String(one) === String(key));
      if (at < 0) throw new ReleaseError("cell", `${shown(column)} has no key ${shown(key)}`);
      return [column, at];
    });
    let positions = [0];
    for (const { column, keys } of groups) {
      const only = wanted.find(([name]) => name === column);
      const own = only ? [only[1]] : keys.map((_, i) => i);
      positions = positions.flatMap((position) => own.map((at) => position * keys.length + at));
    }
    return positions;
  }
}

/** Tell whether this reader has a posterior of a statistic, as the manifest has it. */
export function hasPosterior({ family, mechanism, within_unit: within, count_clipped: counted }) {
  return within === undefined && counted === undefined && !isSampled({ mechanism }) && (family === "categorical" || Object.hasOwn(ONE_SUM, family));
}

function mapOf(quantity, components) {
  const weights = Object.entries(quantity.coefficients).map(([name, text]) => [
    components.indexOf(name),
    parseRational(text),
  ]);
  const squares = weights.reduce((sum, [, weight]) => sum + toNumber(weight) ** 2, 0);
  return { weights, ofPublicN: parseRational(quantity.public_n_coefficient), norm: Math.sqrt(squares) };
}

/** The standard deviation of discrete Laplace noise of a scale. */
export function discreteLaplaceSd(scale) {
  const half = 0.5 / scale;
  return half < 700 ? 1 / (Math.SQRT2 * Math.sinh(half)) : 0;
}

function cellCount(groups) {
  return groups.reduce((product, { keys }) => product * keys.length, 1);
}

/** The keys of a cell, by its position. */
function cellAt(groups, index) {
  const found = Object.create(null);
  let inner = cellCount(groups);
  for (const { column, keys } of groups) {
    inner /= keys.length;
    found[column] = keys[Math.floor(index / inner) % keys.length];
  }
  return found;
}

/** Groups that a manifest states, with all their keys; those of a range are whole numbers. */
export function groupsOf(stated) {
  return stated.map((group) => {
    if (group.kind !== "range") return { column: group.column, kind: group.kind, keys: group.keys };
    const [first, last] = [Number(group.first), Number(group.last)];
    return { column: group.column, kind: "range", keys: Array.from({ length: last - first + 1 }, (_, i) => first + i) };
  });
}
