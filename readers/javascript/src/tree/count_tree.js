/** Counts at all nodes of a public tree of keys, or totals, inferred together: from 0 on, and they add up. */

import { ReleaseError, shown } from "../errors.js";
import { uniforms } from "../random.js";
import { DEFAULT_POPULATION, namedPopulation } from "./populations.js";
import { finished, treePosterior } from "./posterior.js";
import { TreeUnit } from "./unit.js";

/** Floats hold whole numbers exactly so far. */
const MOST = 2 ** 52;
const DRAWS = 2000;
const MASS = 0.95;
/** Chances may be off by so much before it is said. */
const WORTH_SAYING = 0.01;
/** Above it what one part of a tree says leaves less than 1e-9 of what the others say, next to what is cut. */
const ROUNDED = 1e-6;

/**
 * Infer all counts, or totals; yields often.
 *
 * @param {{levels: string[], keys: string[][], parents: number[][]}} tree
 * @param {{name: string, values: ArrayLike<number>[], scale: number}[]} released Of every level: by component, and the
 *   scale of its noise, both in whole numbers of the unit.
 * @param {string[]} components
 * @param {{population?: string, sizes?: number[], most?: number, unit?: TreeUnit}} options
 */
export function* countTree(tree, released, components, { population = DEFAULT_POPULATION, sizes, most, unit = new TreeUnit() } = {}) {
  const law = namedPopulation(population);
  checkSizes(sizes, tree);
  const posteriors = {};
  for (const [at, component] of components.entries()) {
    const values = released.map((level) => level.values[at]);
    if (values.some((some) => some.some((value) => Math.abs(value) > MOST))) {
      throw new ReleaseError("statistic", "the tree has a value beyond 2^52, where floats are not whole");
    }
    const noisy = { parents: tree.parents, values, scales: released.map(({ scale }) => scale), sizes: sizes ?? null };
    posteriors[component] = yield* treePosterior(noisy, law, most);
    if (posteriors[component].rounding > ROUNDED) {
      throw new ReleaseError("resolution", `the released levels of ${shown(component)} contradict each other further than noise explains: no answer would be right`);
    }
  }
  return new CountTree(tree, components, posteriors, law.name, unit);
}

function checkSizes(sizes, { keys }) {
  if (sizes === undefined) return;
  const isFit = Array.isArray(sizes) && sizes.length === keys.at(-1).length && sizes.every((size) => size > 0 && size < Infinity);
  if (!isFit) throw new ReleaseError("usage", `sizes are of all ${keys.at(-1).length} leaves, and above 0`);
}

/** Counts at all nodes of a tree, or totals in the column's unit, given what was released. */
export class CountTree {
  constructor({ levels, keys, parents }, components, posteriors, population, unit) {
    Object.assign(this, { levels, keys, parents, components, posteriors, population, unit });
  }

  get logEvidence() {
    return this.components.reduce((sum, component) => sum + this.posteriors[component].logEvidence, 0);
  }

  /** What a chance may be off by, about. */
  get error() {
    return Math.max(...this.components.map((component) => this.posteriors[component].error));
  }

  /** What has to be said beside the numbers. */
  get notes() {
    const notes = [...this.unit.notes];
    const posteriors = this.components.map((component) => this.posteriors[component]);
    const byPoints = Math.max(...posteriors.map((posterior) => posterior.hyperparameters.error));
    if (byPoints > WORTH_SAYING) {
      notes.push(`Chances may be off by up to ${Math.min(byPoints, 1).toPrecision(1)}: the population's mean and spread are summed over points. Compare the population reciprocal, which has neither.`);
    }
    if (posteriors.some((posterior) => posterior.cut > WORTH_SAYING)) {
      notes.push("A level has next to no noise: its released values are taken as they are, and no others were weighed.");
    }
    return notes;
  }

  /**
   * A row for each node: component, level, key, mean, sd, and ends of the central interval of a mass; `released`, and
   * `below`, what was released right below it added up; null of leaves.
   */
  table(mass = MASS, { level, component } = {}) {
    const levels = level === undefined ? this.levels.map((_, place) => place) : [this.place(level)];
    const wanted = component === undefined ? this.components : [this.component(component)];
    return wanted.flatMap((name) => levels.flatMap((place) =>
      this.keys[place].map((key, node) => ({
        component: name, level: this.levels[place], key, ...this.summary(name, place, node, mass), ...this.released(name, place, node),
      }))));
  }

  /** Mean, sd and ends of one node. */
  summary(component, place, node, mass) {
    checkShare(mass);
    const { mean, sd, ...ends } = this.posteriors[component].summary(place, node, mass);
    return { mean: this.unit.value(mean), sd: this.unit.value(sd), ...this.unit.ends(ends) };
  }

  /** What was released of a node, and what was released right below it, added up; of totals rounded to the unit. */
  released(component, place, node) {
    const { tree, families } = this.posteriors[component].passer;
    const below = place + 1 < this.levels.length ? tree.values[place + 1] : null;
    return {
      released: this.unit.value(tree.values[place][node]),
      below: below === null ? null : this.unit.value(families[place][node].reduce((sum, child) => sum + below[child], 0)),
    };
  }

  /** The law of one count, or total: chances of `low`, `low + step` and on. */
  counts(level, key, component) {
    const place = this.place(level);
    const { low, weights } = this.posteriors[this.component(component)].marginals[place][this.node(place, key)];
    return { low: this.unit.value(low), step: this.unit.size, chances: Float64Array.from(weights) };
  }

  /** Joint draws: a list of draws, each by level an array in the order of its keys. They add up in every draw. */
  draws(number, { component, rng = 1 } = {}) {
    return this.drawn(this.component(component), checkedDraws(number, 1), uniforms(rng)).map((levels) =>
      Object.fromEntries(this.levels.map((level, place) => [level, levels[place].map((whole) => this.unit.value(whole))])));
  }

  /** What any nodes hold together, by level their keys, each leaf below them once; from joint draws. */
  rollUp(nodes, { mass = MASS, draws = DRAWS, rng = 1 } = {}) {
    const leaves = this.leavesBelow(nodes);
    const random = uniforms(rng);
    return this.components.map((component) => {
      const sums = this.drawn(component, checkedDraws(draws), random).map((levels) =>
        this.unit.value(leaves.reduce((sum, leaf) => sum + levels.at(-1)[leaf], 0)));
      return { component, ...summaryOfDraws(sums, mass) };
    });
  }

  /** Each node's share of the node that it is below, from joint draws: rows as of `table`. */
  share(level, { above, mass = MASS, draws = DRAWS, component, rng = 1 } = {}) {
    const place = this.place(level);
    const of = above === undefined ? place - 1 : this.place(above);
    if (of < 0 || of >= place) throw new ReleaseError("usage", `a share is of a level above ${shown(level)}`);
    const wanted = component === undefined ? this.components : [this.component(component)];
    const ancestors = this.keys[place].map((_, node) => this.ancestor(node, place, of));
    const random = uniforms(rng);
    return wanted.flatMap((name) => {
      const drawn = this.drawn(name, checkedDraws(draws), random);
      return this.keys[place].map((key, node) => {
        const shares = drawn.map((levels) => levels[place][node] / levels[of][ancestors[node]]);
        return { component: name, level, key, ...summaryOfDraws(shares, mass) };
      });
    });
  }

  /** The part that a component has in several, by default in all, from joint draws: rows as of `table`. */
  ratio(component, level, { of = this.components, mass = MASS, draws = DRAWS, rng = 1 } = {}) {
    const place = this.place(level);
    if (!(Array.isArray(of) && of.length > 0)) throw new ReleaseError("usage", "a ratio is of a list of components, one at least");
    const random = uniforms(rng);
    const names = [...new Set([this.component(component), ...of.map((name) => this.component(name))])];
    const drawn = new Map(names.map((name) => [name, this.drawn(name, checkedDraws(draws), random)]));
    return this.keys[place].map((key, node) => {
      const at = (name, draw) => drawn.get(name)[draw][place][node];
      const parts = Array.from({ length: draws }, (_, draw) => at(component, draw) / of.reduce((sum, name) => sum + at(name, draw), 0));
      return { component, level, key, ...summaryOfDraws(parts, mass) };
    });
  }

  /**
   * How probably each of a level's counts is among the `within` highest, from joint draws. Of equal counts one is as
   * probably the higher as the other.
   */
  rankProbabilities(level, { within = 1, component, draws = DRAWS, rng = 1 } = {}) {
    const place = this.place(level);
    const number = this.keys[place].length;
    if (!(Number.isInteger(within) && within >= 1 && within <= number)) {
      throw new ReleaseError("usage", `within is from 1 to the ${number} nodes of ${shown(level)}`);
    }
    const random = uniforms(rng);
    const times = new Float64Array(number);
    for (const levels of this.drawn(this.component(component), checkedDraws(draws, 1), random)) {
      const counts = Array.from(levels[place], (count, node) => ({ count, tie: random(), node }));
      counts.sort((one, other) => other.count - one.count || other.tie - one.tie);
      for (const { node } of counts.slice(0, within)) times[node] += 1;
    }
    return this.keys[place].map((key, node) => ({ level, key, probability: times[node] / draws }));
  }

  /** Joint draws of whole numbers: of each the levels' arrays. */
  drawn(component, number, random) {
    return finished(this.posteriors[component].draws(number, random));
  }

  /** The node of the level `of` that a node is below. */
  ancestor(node, place, of) {
    let above = node;
    for (let at = place; at > of; at -= 1) above = this.parents[at - 1][above];
    return above;
  }

  /** Leaves that are below one of some nodes. */
  leavesBelow(nodes) {
    const last = this.levels.length - 1;
    const isBelow = new Set();
    for (const [level, keys] of Object.entries(nodes ?? {})) {
      const place = this.place(level);
      if (!Array.isArray(keys)) throw new ReleaseError("usage", `a roll-up is of a list of keys by level: of ${shown(level)} there is none`);
      const wanted = new Set(keys.map((key) => this.node(place, key)));
      this.keys[last].forEach((_, leaf) => wanted.has(this.ancestor(leaf, last, place)) && isBelow.add(leaf));
    }
    if (isBelow.size === 0) throw new ReleaseError("usage", "a roll-up is of one node at least: name a level and its keys");
    return [...isBelow];
  }

  place(level) {
    const place = this.levels.indexOf(level);
    if (place < 0) throw new ReleaseError("usage", `the tree has no level ${shown(level)}: it has ${this.levels.map(shown).join(", ")}`);
    return place;
  }

  node(place, key) {
    const node = this.keys[place].indexOf(String(key));
    if (node < 0) throw new ReleaseError("cell", `the level ${shown(this.levels[place])} has no key ${shown(key)}`);
    return node;
  }

  component(name) {
    if (name === undefined && this.components.length === 1) return this.components[0];
    if (!this.components.includes(name)) {
      throw new ReleaseError("usage", `name one of the tree's components: ${this.components.slice(0, 8).map(shown).join(", ")}`);
    }
    return name;
  }
}

function checkShare(mass) {
  if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
}

function checkedDraws(draws, least = 2) {
  if (!(Number.isInteger(draws) && draws >= least)) throw new ReleaseError("usage", `draws: a whole number from ${least} on`);
  return draws;
}

/** Mean, sd and central ends of draws; of nothing there are no shares: such draws are left out. */
function summaryOfDraws(draws, mass) {
  checkShare(mass);
  const known = Float64Array.from(draws.filter((draw) => !Number.isNaN(draw))).sort();
  if (known.length === 0) return { mean: NaN, sd: NaN, lower: NaN, upper: NaN };
  const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
  const sd = Math.sqrt(known.reduce((sum, one) => sum + (one - mean) ** 2, 0) / known.length);
  const at = (share) => known[Math.max(Math.ceil(share * known.length - 1e-9) - 1, 0)];
  return { mean, sd, lower: at(0.5 * (1 - mass)), upper: at(0.5 * (1 + mass)) };
}
