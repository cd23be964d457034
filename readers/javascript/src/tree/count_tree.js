/** Counts at all nodes of a public tree of keys, inferred together: whole numbers from 0 on that add up. */

import { ReleaseError, shown } from "../errors.js";
import { generator } from "../random.js";
import { DEFAULT_POPULATION, namedPopulation } from "./populations.js";
import { finished, treePosterior } from "./posterior.js";

/** Floats hold whole numbers exactly so far. */
const MOST = 2 ** 52;
const DRAWS = 2000;
/** Chances may be off by so much before it is said. */
const WORTH_SAYING = 1e-3;
/** Above it what one part of a tree says leaves less than 1e-9 of what the others say, next to what is cut. */
const ROUNDED = 1e-6;

/**
 * Infer all counts; yields often.
 *
 * @param {{levels: string[], keys: string[][], parents: number[][]}} tree
 * @param {{name: string, values: ArrayLike<number>[], scale: number}[]} released Of every level: by component, and the
 *   scale of its noise.
 * @param {string[]} components
 * @param {{population?: string, sizes?: number[], most?: number}} options
 */
export function* countTree(tree, released, components, { population = DEFAULT_POPULATION, sizes, most }) {
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
  return new CountTree(tree, components, posteriors, law.name);
}

function checkSizes(sizes, { keys }) {
  if (sizes === undefined) return;
  const isFit = Array.isArray(sizes) && sizes.length === keys.at(-1).length && sizes.every((size) => size > 0 && size < Infinity);
  if (!isFit) throw new ReleaseError("usage", `sizes are of all ${keys.at(-1).length} leaves, and above 0`);
}

/** Counts at all nodes of a tree, given what was released. */
export class CountTree {
  constructor({ levels, keys, parents }, components, posteriors, population) {
    Object.assign(this, { levels, keys, parents, components, posteriors, population });
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
    if (this.population === "reciprocal") return ["Leaves: weights 1 / (n + 1)."];
    const said = [`Leaves: ${this.population}, its mean and spread integrated over.`];
    if (this.error > WORTH_SAYING) {
      said.push(`Weights of the population's mean and spread may be off by ${this.error.toPrecision(1)} in all, by the rule that integrates over them: chances of counts by no more.`);
    }
    return said;
  }

  /**
   * A row for each node: component, level, key, mean, sd, and ends of the central interval of a mass; `released`, and
   * `below`, what was released right below it added up; null of leaves.
   */
  table(mass = 0.95, { level, component } = {}) {
    checkShare(mass);
    const levels = level === undefined ? this.levels.map((_, place) => place) : [this.place(level)];
    const wanted = component === undefined ? this.components : [this.component(component)];
    return wanted.flatMap((name) => levels.flatMap((place) =>
      this.keys[place].map((key, node) => ({
        component: name, level: this.levels[place], key, ...this.posteriors[name].summary(place, node, mass), ...this.released(name, place, node),
      }))));
  }

  /** What was released of a node, and what was released right below it, added up. */
  released(component, place, node) {
    const { tree, families } = this.posteriors[component].passer;
    const below = place + 1 < this.levels.length ? tree.values[place + 1] : null;
    return {
      released: tree.values[place][node],
      below: below === null ? null : families[place][node].reduce((sum, child) => sum + below[child], 0),
    };
  }

  /** The law of one count: chances of `low`, `low + 1` and on. */
  counts(level, key, component) {
    const place = this.place(level);
    const node = this.keys[place].indexOf(String(key));
    if (node < 0) throw new ReleaseError("cell", `the level ${shown(level)} has no key ${shown(key)}`);
    const { low, weights } = this.posteriors[this.component(component)].marginals[place][node];
    return { low, chances: Float64Array.from(weights) };
  }

  /** Joint draws: a list of draws, each by level an array in the order of its keys. They add up in every draw. */
  draws(number, { component, seed = 1 } = {}) {
    if (!(Number.isInteger(number) && number > 0)) throw new ReleaseError("usage", "draws: a whole number above 0");
    const drawn = finished(this.posteriors[this.component(component)].draws(number, generator(seed)));
    return drawn.map((levels) => Object.fromEntries(this.levels.map((level, place) => [level, levels[place]])));
  }

  /** Each node's share of the node that it is below, from joint draws: rows as of `table`. */
  share(level, { above, mass = 0.95, draws = DRAWS, component, seed = 1 } = {}) {
    const place = this.place(level);
    const of = above === undefined ? place - 1 : this.place(above);
    if (of < 0 || of >= place) throw new ReleaseError("usage", `a share is of a level above ${shown(level)}`);
    const wanted = component === undefined ? this.components : [this.component(component)];
    return wanted.flatMap((name) => {
      const drawn = this.draws(draws, { component: name, seed });
      return this.keys[place].map((key, node) => {
        let ancestor = node;
        for (let at = place; at > of; at -= 1) ancestor = this.parents[at - 1][ancestor];
        const shares = drawn.map((one) => one[level][node] / one[this.levels[of]][ancestor]);
        return { component: name, level, key, ...summaryOfDraws(shares, mass) };
      });
    });
  }

  /** The part that a component has in all of a node's records, from joint draws: rows as of `table`. */
  ratio(component, level, { mass = 0.95, draws = DRAWS, seed = 1 } = {}) {
    const place = this.place(level);
    const at = this.components.indexOf(this.component(component));
    const drawn = this.components.map((name, i) => this.draws(draws, { component: name, seed: `${seed} ${i}` }));
    return this.keys[place].map((key, node) => {
      const parts = drawn[at].map((one, draw) => one[level][node] / drawn.reduce((sum, of) => sum + of[draw][level][node], 0));
      return { component, level, key, ...summaryOfDraws(parts, mass) };
    });
  }

  place(level) {
    const place = this.levels.indexOf(level);
    if (place < 0) throw new ReleaseError("usage", `the tree has no level ${shown(level)}: it has ${this.levels.map(shown).join(", ")}`);
    return place;
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
