/** A release's tree: which statistics its levels are, and what was released of them. */

import { ReleaseError, shown } from "../errors.js";
import { parseRational, toNumber } from "../exact.js";
import { countTree } from "./count_tree.js";
import { keyTree } from "./key_tree.js";
import { SUMMED, TreeUnit, totalStep } from "./unit.js";

/** Families that count records. */
const COUNTED = ["bernoulli", "categorical"];
/** The component of a tree of totals. */
const TOTAL = "total";

/** The largest value of a file. */
const MOST_VALUE = 2n ** 63n - 1n;

/** What a tree of a statistic is of: its components, or its total; null where it has no tree. */
export function componentsOf(entry) {
  if (COUNTED.includes(entry.family)) return entry.components;
  return totalStep(entry) === null ? null : [TOTAL];
}

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
  entries.forEach((entry) => checkAdding(entry, entries[0]));
  const components = componentsOf(entries[0]);
  const unit = unitOf(entries);
  const released = entries.map((entry) => {
    const positions = release.selected(where, entry.name);
    const values = release.values.get(entry.name);
    const width = entry.components.length;
    return {
      name: entry.name,
      values: components.map((_, at) => Float64Array.from(positions, (cell) => wholeOf(values[cell * width + at], unit))),
      scale: scaleOf(entry) / unit.steps,
    };
  });
  return yield* countTree(keys, released, components, { ...options, unit });
}

function scaleOf({ scale }) {
  return toNumber(parseRational(scale));
}

/** What a whole number of the tree stands for: a record, or steps of a total. */
function unitOf(entries) {
  const [{ parameters }] = entries;
  const step = totalStep(entries[0]);
  return step === null ? new TreeUnit() : TreeUnit.ofTotal(step, parameters.upper, Math.min(...entries.map(scaleOf)));
}

function wholeOf(value, unit) {
  if (value >= MOST_VALUE || value <= -MOST_VALUE) {
    throw new ReleaseError("statistic", "a value of the tree is at an end of its type: there were more records than could be counted");
  }
  return unit.whole(Number(value));
}

/** The group of a level's own: its keys are the level's nodes. */
function groupOf(release, entry, beside) {
  const stated = entry.groups ?? release.manifest.groups;
  const own = stated.filter(({ column }) => !beside.includes(column));
  if (own.length !== 1) throw new ReleaseError("manifest", `the manifest is corrupt: ${shown(entry.name)} is no level of a tree`);
  const { keys } = release.groupsOf(entry.name).find(({ column }) => column === own[0].column);
  return { ...own[0], keys };
}

/** Refuse what is neither a count of records nor a total, with discrete Laplace noise of one scale. */
function checkAdding(entry, first) {
  const { name, family, components, parameters, design, within_unit: within, count_clipped: counted } = entry;
  if (componentsOf(entry) === null) {
    throw new ReleaseError("statistic", `${shown(name)} is ${shown(family)}, and neither counts records nor has totals from 0 on: a tree is of one of ${[...COUNTED, ...SUMMED].join(", ")}`);
  }
  const isMore = within !== undefined || (counted !== undefined && COUNTED.includes(family));
  const isLike = family === first.family && design === first.design && components.join("\n") === first.components.join("\n") && JSON.stringify(parameters) === JSON.stringify(first.parameters);
  if (isMore || !isLike) {
    throw new ReleaseError("statistic", `${shown(name)} does not have what the other levels have: a tree is of the same counts, or totals, at all levels`);
  }
}
