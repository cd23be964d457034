// Questions to the reader: one cell, one method at a time, kept while they are likely to be asked again.

import { ReleaseError, readRelease } from "../src/index.js";
import { momentsPosterior } from "./moments.js";
import { whereOf } from "./state.js";

const MOST_KEPT = 60;
/** Cells that are judged together: likelihoods of some seconds, once a page. */
const MOST_TOGETHER = 36;

/**
 * One law of one number: what pictures and tables show.
 * @typedef {{mean: number, sd: number, quantile: function(number): number, interval: function(number): number[],
 *   density: function(number[]): number[]}} Law
 *
 * One entry of a posterior: a parameter, or a category of one.
 * @typedef {{key: string, index: number, parameter: string, category: string|null, label: string, title: string,
 *   unit: string, isNamed: boolean, support: number[]}} Entry
 */

/**
 * Open the release of a page. Every statistic's file is decoded and checked when it is first asked for.
 *
 * @param {Object} page - from `readPage`
 * @returns {{posterior: function(string, string[], Object): Promise, table: function(string, string[]): Promise}}
 */
export function reading(page) {
  const opened = new Map();
  const kept = new Map();

  function release(...statistics) {
    const key = JSON.stringify(statistics);
    if (!opened.has(key)) {
      const files = Object.fromEntries(statistics.map((name) => [page.pathOf(name), page.file(page.pathOf(name))]));
      const read = readRelease(page.manifestBytes, files, { statistics });
      // Whoever made the page checked its words.
      opened.set(key, read.then((found) => Object.assign(found, { about: page.about })));
    }
    return opened.get(key);
  }

  /** What was worked out under a key, or is now; the latest few are kept. */
  async function remembered(key, make) {
    if (!kept.has(key)) {
      const found = await make();
      if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
      kept.set(key, found);
    }
    return kept.get(key);
  }

  return {
    /** The posterior of one cell, with the laws of some parameters worked out; throws what the reader throws. */
    async posterior(statistic, cell, { prior, nPrior, method, parameters }, pause) {
      const key = JSON.stringify([statistic, cell, prior, nPrior, method, parameters]);
      return remembered(key, async () => {
        const asked = { method, where: whereOf(page, cell) };
        if (prior) asked.prior = prior;
        if (parameters) asked.parameters = parameters;
        if (nPrior && method !== "plug-in") asked.nPrior = nPrior;
        const opened = await release(statistic);
        const table = page.likelihoods[statistic];
        return table === undefined
          ? opened.posteriorInSlices(statistic, asked, pause)
          : ofMoments(opened, statistic, table, asked);
      });
    },

    /** The counts of a tree; throws what the reader throws. */
    async tree(name, asked, pause) {
      const { levels } = page.trees.find((one) => one.name === name);
      const found = await release(...levels.map((level) => `${name}.${level}`));
      return remembered(JSON.stringify(["tree", name, asked]), () => found.treeInSlices(name, asked, pause));
    },

    /** The column behind a histogram, in one cell; throws what the reader throws. */
    async column(name, asked, pause) {
      const found = await release(name);
      return remembered(JSON.stringify(["column", name, asked]), () => found.columnInSlices(name, asked, pause));
    },

    entries: (posterior, statistic) => entriesOf(posterior, statistic, page.words),

    /** Whether all cells together contradict a prior; null where that is not judged. */
    async together(statistic, { prior, nPrior }, pause) {
      if (page.likelihoods[statistic] !== undefined) return null;
      const asked = { most: MOST_TOGETHER, prior };
      if (nPrior) asked.nPrior = nPrior;
      return (await release(statistic)).conflictInSlices(statistic, asked, pause);
    },

    /** What was released of one cell: quantities with the standard deviations of their noise. */
    async table(statistic, cell) {
      return (await release(statistic)).table(statistic, whereOf(page, cell));
    },
  };
}

/** The posterior of a mean and a variance, by the page's table of its likelihood. */
function ofMoments(release, statistic, table, asked) {
  if (table.reason) throw new ReleaseError("statistic", table.reason);
  const entry = release.noisy(statistic);
  const [index] = release.selected(asked.where, statistic);
  const width = entry.components.length;
  const estimates = Object.fromEntries(release.table(statistic, asked.where).map(({ quantity, estimate }) => [quantity, estimate]));
  const released = {
    statistic: entry,
    values: [...release.values.get(statistic).slice(index * width, (index + 1) * width)],
    publicN: entry.design === "minimal" ? release.manifest.n : null,
    names: entry.family === "lognormal" ? ["log_mean", "log_variance"] : ["mean", "variance"],
    estimates: { n: estimates.n, total: estimates.total, squares: estimates.total_of_squares },
  };
  return momentsPosterior(table, index, released, asked);
}

/** The entries of a posterior, in order: its parameters, those of categories by the category alone. */
export function entriesOf(posterior, statistic, words) {
  return posterior.parameters.map((key, index) => {
    const [, parameter, category] = /^(\w+)\[(.*)\]$/s.exec(key) ?? [null, key, null];
    const named = words.number(statistic.name, parameter, category);
    return {
      key,
      index,
      parameter,
      category,
      label: category === null ? parameter : words.value(statistic.name, category),
      title: named?.title ?? `${parameter} of ${statistic.name}${category === null ? "" : ` = ${category}`}`,
      unit: named?.unit ?? "",
      isNamed: named !== null,
      support: supportOf(parameter),
    };
  });
}

/** One entry of a posterior as a law. */
export function lawOf(posterior, { key }) {
  return {
    mean: posterior.mean(key),
    sd: posterior.sd(key),
    quantile: (share) => posterior.quantile(share, key),
    interval: (mass) => posterior.interval(mass, key),
    density: (points) => posterior.density(key, points),
    priorDensity: (points) => posterior.priorDensity(key, points),
  };
}

function supportOf(parameter) {
  if (parameter === "probability") return [0, 1];
  return /mean|loc/.test(parameter) ? [-Infinity, Infinity] : [0, Infinity];
}
