// What a page carries of its release, and what the release declares. Files are decoded when they are asked
// for: a page with many cells opens at once.

import { poolsOf } from "./pool.js";
import { componentsOf } from "../src/tree/released_tree.js";
import { wordsOf } from "./words.js";

/**
 * One group column.
 * @typedef {{column: string, label: string, called: function(string): string, size: number, key: function(number): string, has: function(string): boolean}} Group
 *
 * One statistic, as the manifest has it.
 * @typedef {{name: string, family: string, columns: string[], parameters: Object}} Statistic
 */

/**
 * Read the data of the page.
 *
 * @param {string} text - of the script element `suffice-release`
 * @returns {{label: string, uri: string, about: Object, words: Object, name: string, loss: {epsilon: string}|{rho: string}, releaseId: string, nIsPublic: boolean,
 *   mostRows: number, publicN: number|null, likelihoods: Object, pooled: function(string, string[], string): Object|null, groups: Group[], statistics: Statistic[],
 *   trees: {name: string, levels: string[], components: string[], groups: Group[], unit: string}[],
 *   columns: {name: string, unit: string, groups: Group[], bounds: number[]}[], manifestBytes: Uint8Array,
 *   pathOf: function(string): string, file: function(string): Uint8Array}}
 */
export function readPage(text) {
  const { label, uri, manifest, about = {}, files, likelihoods = {}, pools = {} } = JSON.parse(text);
  const declared = JSON.parse(manifest);
  const words = wordsOf(about);
  const hierarchies = Object.entries(declared.plan?.hierarchies ?? {});
  const groupsOf = (of) =>
    (of.groups ?? declared.groups).map((one) => ({
      ...group(one),
      label: words.column(one.column),
      called: (key) => words.key(one.column, key),
    }));
  return {
    label,
    uri,
    about,
    words,
    name: declared.name,
    loss: declared.rho === undefined ? { epsilon: declared.epsilon } : { rho: declared.rho },
    releaseId: declared.release_id,
    nIsPublic: declared.n !== null,
    mostRows: declared.max_total_rows,
    publicN: declared.n,
    likelihoods,
    pooled: poolsOf(pools),
    groups: groupsOf(declared),
    // A posterior sample has no statistics to start from; trees and columns are shown by themselves.
    statistics: declared.statistics.filter(
      ({ mechanism, groups, family }) => mechanism === "discrete_laplace" && groups === undefined && family !== "histogram",
    ),
    trees: hierarchies.flatMap(([name, levels]) => {
      const leaves = declared.statistics.find((one) => one.name === `${name}.${levels.at(-1)}`);
      const groups = groupsOf(leaves).filter(({ column }) => column !== levels.at(-1));
      const components = componentsOf(leaves);
      // Words are of statistics, and so of levels.
      const unit = levels.map((level) => about.statistics?.[`${name}.${level}`]?.unit).find(Boolean) ?? "";
      return components === null ? [] : [{ name, levels, components, groups, unit }];
    }),
    columns: declared.statistics
      .filter(({ family, mechanism }) => family === "histogram" && mechanism === "discrete_laplace")
      .map((one) => ({
        name: one.name,
        groups: groupsOf(one),
        unit: about.statistics?.[one.name]?.unit ?? "",
        bounds: [Number(one.parameters.lower), Number(one.parameters.upper)],
      })),
    manifestBytes: new TextEncoder().encode(manifest),
    pathOf: (statistic) => declared.files.find((file) => file.statistic === statistic).path,
    file: (name) => fromBase64(files[name]),
  };
}

function group(declared) {
  if (declared.kind === "range") {
    const first = BigInt(declared.first);
    const last = BigInt(declared.last);
    return {
      column: declared.column,
      size: Number(last - first) + 1,
      key: (index) => String(first + BigInt(index)),
      has: (key) => /^-?\d+$/.test(key) && String(BigInt(key)) === key && BigInt(key) >= first && BigInt(key) <= last,
    };
  }
  const known = new Set(declared.keys);
  return {
    column: declared.column,
    size: declared.keys.length,
    key: (index) => declared.keys[index],
    has: (key) => known.has(key),
  };
}

/** Return the first keys that hold what was typed, those that begin with it first, and how many more there are. */
export function matching(group, typed, most) {
  const wanted = typed.trim().toLowerCase();
  const beginning = [];
  const holding = [];
  let found = 0;
  for (let index = 0; index < group.size; index += 1) {
    const key = group.key(index);
    const at = wanted === "" ? 0 : Math.max(key.toLowerCase().indexOf(wanted), group.called(key).toLowerCase().indexOf(wanted));
    if (at < 0) continue;
    found += 1;
    const list = at === 0 ? beginning : holding;
    if (list.length < most) list.push(key);
  }
  return { keys: [...beginning, ...holding].slice(0, most), found };
}

function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
