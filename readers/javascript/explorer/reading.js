// Questions to the reader: one cell, one method at a time, kept while they are likely to be asked again.

import { readRelease } from "../src/index.js";
import { whereOf } from "./state.js";

const MOST_KEPT = 60;

/**
 * One law of one number: what pictures and tables show.
 * @typedef {{mean: number, sd: number, quantile: function(number): number,
 *   density: function(number[]): number[]}} Law
 *
 * One entry of a posterior: a parameter, or a category of one.
 * @typedef {{key: string, label: string, title: string, parameter: string, index: number, support: number[]}} Entry
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

  function release(statistic) {
    if (!opened.has(statistic)) {
      const name = `${statistic}.parquet`;
      opened.set(statistic, readRelease(page.manifestBytes, { [name]: page.file(name) }));
    }
    return opened.get(statistic);
  }

  return {
    /** The posterior of one cell; throws what the reader throws. */
    async posterior(statistic, cell, { prior, nPrior, method }) {
      const key = JSON.stringify([statistic, cell, prior, nPrior, method]);
      if (!kept.has(key)) {
        const asked = { method, where: whereOf(page, cell) };
        if (prior) asked.prior = prior;
        if (nPrior && method !== "plug-in") asked.nPrior = nPrior;
        const found = (await release(statistic)).posterior(statistic, asked);
        if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
        kept.set(key, await found);
      }
      return kept.get(key);
    },

    entries: entriesOf,

    /** What was released of one cell: quantities with the standard deviations of their noise. */
    async table(statistic, cell) {
      return (await release(statistic)).table(statistic, whereOf(page, cell));
    },
  };
}

/** The entries of a posterior, in order. */
export function entriesOf(posterior, statistic) {
  const { categories } = statistic.parameters;
  return posterior.parameters.flatMap((parameter) => {
    const support = supportOf(parameter);
    if (parameter !== "probability" || categories.length === 0) {
      return [{ key: parameter, label: parameter, title: `${parameter} of ${statistic.name}`, parameter, index: 0, support }];
    }
    return categories.map((category, index) => ({
      key: `${parameter}[${category}]`,
      label: category,
      title: `${parameter} of ${statistic.name} = ${category}`,
      parameter,
      index,
      support,
    }));
  });
}

/** One entry of a posterior of one cell as a law. */
export function lawOf(posterior, { parameter, index }) {
  const of = (found, size = 1) => flat(found).slice(index * size, (index + 1) * size);
  return {
    mean: of(posterior.mean(parameter))[0],
    sd: of(posterior.sd(parameter))[0],
    quantile: (share) => of(posterior.quantile(share, parameter))[0],
    density: (points) => of(posterior.density(parameter, points), points.length),
    priorDensity: (points) => of(posterior.priorDensity(parameter, points), points.length),
  };
}

function flat(found) {
  if (typeof found === "number") return [found];
  return Array.from(found, (each) => (typeof each === "number" || each === null ? each : flat(each))).flat();
}

function supportOf(parameter) {
  if (parameter === "probability") return [0, 1];
  return /mean|loc/.test(parameter) ? [-Infinity, Infinity] : [0, Infinity];
}
