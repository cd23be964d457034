/** The keys of a tree: those of every level, and where the parent of each stands, by a plan's maps and the calendar. */

import { label, periodStart } from "../domains.js";
import { ReleaseError, shown } from "../errors.js";

/**
 * The tree of a plan's hierarchy.
 *
 * @param {object} plan
 * @param {string} name
 * @param {{column: string, kind: string, every: string | null, keys: (string | number)[]}[]} groups Of every level,
 *   its own: the root's first.
 * @returns {{levels: string[], keys: string[][], parents: number[][]}} Parents of all levels but the first.
 */
export function keyTree(plan, name, groups) {
  const levels = plan.hierarchies[name];
  const keys = groups.map((group) => group.keys.map(String));
  const parents = [];
  const refuse = (level) => {
    throw new ReleaseError("manifest", `the manifest is corrupt: hierarchies.${shown(name)}: keys of ${shown(level)} do not nest`);
  };
  for (let level = levels.length - 1; level > 0; level -= 1) {
    const above = levels[level - 1];
    const of = Object.hasOwn(plan.derived, above) ? plan.derived[above] : null;
    const targets = groups[level - 1].kind === "period"
      ? keys[level].map((key) => label(periodStart(key, groups[level].every), groups[level - 1].every))
      : of !== null && of.map !== undefined
        ? mapped(of, levels, keys, parents, level)
        : keys[level].map(() => keys[0][0]);
    if (targets === null) refuse(above);
    const place = new Map(keys[level - 1].map((key, node) => [key, node]));
    const found = targets.map((key) => place.get(String(key)));
    const isTree = found.every((node) => node !== undefined) && new Set(found).size === keys[level - 1].length;
    if (!isTree) refuse(above);
    parents.unshift(found);
  }
  if (keys[0].length !== 1) refuse(levels[0]);
  return { levels, keys, parents };
}

/** Where every node of a level leads to by a map of the keys of that level, or of one below it; null where nowhere. */
function mapped(of, levels, keys, parents, level) {
  const source = levels.indexOf(of.column);
  if (source < level) return null;
  const targets = new Array(keys[level].length).fill(null);
  for (let key = 0; key < keys[source].length; key += 1) {
    // `parents` begins at the level below this one.
    let node = key;
    for (let at = source; at > level; at -= 1) node = parents[at - level - 1][node];
    const target = Object.hasOwn(of.map, keys[source][key]) ? of.map[keys[source][key]] : null;
    if (target === null || (targets[node] !== null && targets[node] !== target)) return null;
    targets[node] = target;
  }
  return targets.includes(null) ? null : targets;
}
