/** A release's tree: which statistics its levels are, and what was released of them. */

import { ReleaseError, shown } from "../errors.js";
import { parseRational, toNumber } from "../exact.js";
import { countTree } from "./count_tree.js";
import { keyTree } from "./key_tree.js";

/** Families that count records; trees of totals, of other families, are read level by level. */
export const COUNTING = ["bernoulli", "categorical"];

/** The trees of a manifest: names, levels, and the groups beside the leaves', of which there is a tree for each. */
export function treesOf(release) {
  const { hierarchies = {} } = release.manifest.plan;
  return Object.entries(hierarchies).map(([name, levels]) => {
    const { groups } = leavesOf(release, name, levels);
    return { name, levels: [...levels], beside: groups.filter(({ column }) => column !== levels.at(-1)).map(({ column }) => column) };
  });
}

function leavesOf(release, name, levels) {
  const entry = release.manifest.statistics.find((one) => one.name === `${name}.${levels.at(-1)}`);
  return { entry, groups: entry.groups ?? release.manifest.groups };
}

/**
 * The joint posterior of a tree, as a generator that yields often.
 *
 * @param {object} release
 * @param {string} name
 * @param {{where?: Record<string, string | number>, population?: string, sizes?: number[], most?: number}} options
 */
export function* releasedTree(release, name, { where = {}, ...options } = {}) {
  const trees = treesOf(release);
  const tree = trees.find((one) => one.name === name);
  if (tree === undefined) {
    const known = trees.length === 0 ? "it has none" : `its trees are ${trees.map((one) => shown(one.name)).join(", ")}`;
    throw new ReleaseError("statistic", `the release has no tree ${shown(name)}: ${known}`);
  }
  const { levels, beside } = tree;
  const stray = Object.keys(where).find((column) => !beside.includes(column));
  if (stray !== undefined) throw new ReleaseError("cell", `${shown(stray)} is no group beside the tree's: a tree has all of its nodes`);
  const open = beside.find((column) => !Object.hasOwn(where, column));
  if (open !== undefined) throw new ReleaseError("cell", `there is a tree for each key of ${shown(open)}: name one in where`);
  const entries = levels.map((level) => release.noisy(`${name}.${level}`));
  const groups = entries.map((entry) => groupOf(release, entry, beside));
  const keys = keyTree(release.manifest.plan, name, groups);
  entries.forEach((entry) => checkCounts(entry, entries[0]));
  const { components } = entries[0];
  const released = entries.map((entry) => {
    const positions = release.selected(where, entry.name);
    const values = release.values.get(entry.name);
    return {
      name: entry.name,
      values: components.map((_, at) => Float64Array.from(positions, (cell) => Number(values[cell * components.length + at]))),
      scale: toNumber(parseRational(entry.scale)),
    };
  });
  return yield* countTree(keys, released, components, options);
}

/** The group of a level's own: its keys are the level's nodes. */
function groupOf(release, entry, beside) {
  const stated = entry.groups ?? release.manifest.groups;
  const own = stated.filter(({ column }) => !beside.includes(column));
  if (own.length !== 1) throw new ReleaseError("manifest", `the manifest is corrupt: ${shown(entry.name)} is no level of a tree`);
  const { keys } = release.groupsOf(entry.name).find(({ column }) => column === own[0].column);
  return { ...own[0], keys };
}

/** Refuse what is no count of records with discrete Laplace noise of one scale. */
function checkCounts({ name, family, components, design, within_unit: within, count_clipped: counted }, first) {
  if (!COUNTING.includes(family)) {
    throw new ReleaseError("statistic", `${shown(name)} is ${shown(family)}: trees of totals are inferred in Python, and read level by level here`);
  }
  const isCount = within === undefined && counted === undefined;
  if (!isCount || components.join("\n") !== first.components.join("\n") || design !== first.design) {
    throw new ReleaseError("statistic", `${shown(name)} does not count records as the other levels do: a tree is of counts alone`);
  }
}
