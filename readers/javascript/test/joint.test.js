// Joint posteriors of trees and histograms, beside Python's and beside enumeration.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { binsOf } from "../src/histogram/bins.js";
import { columnOf } from "../src/histogram/column.js";
import { stepsOf } from "../src/histogram/prior.js";
import { readRelease } from "../src/index.js";
import { countTree } from "../src/tree/count_tree.js";
import { namedPopulation } from "../src/tree/populations.js";
import { finished, treePosterior } from "../src/tree/posterior.js";

const ROOT = fileURLToPath(new URL("../../../tests/vectors/", import.meta.url));
const json = (path) => JSON.parse(readFileSync(ROOT + path, "utf8"));

const trees = json("trees.json");
const histograms = json("histograms.json");

const treeOf = (one) => finished(treePosterior(one, namedPopulation(one.population)));

/** How far a tree's answers are from those stated, in units of the tolerance, and how many ends of intervals differ. */
function off(one, posterior) {
  const { tolerance, mass } = trees;
  let [largest, ends] = [Math.abs(posterior.logEvidence - one.log_evidence) / tolerance.log_evidence, 0];
  for (const { level, node, mean, sd, lower, upper } of one.nodes) {
    const found = posterior.summary(level, node, mass);
    largest = Math.max(largest, Math.abs(found.mean - mean) / sd / tolerance.mean_in_sds, Math.abs(found.sd / sd - 1) / tolerance.sd);
    ends += Number(found.lower !== lower || found.upper !== upper);
  }
  return { largest, ends };
}

for (const one of trees.cases) {
  test(`infers a tree as Python does: ${one.about}`, () => {
    const { largest, ends } = off(one, treeOf(one));
    assert.ok(largest <= 1, `${largest} times the tolerance`);
    assert.equal(ends, 0);
  });
}

test("tells a tree whose noise of one level is forgotten", () => {
  const [one] = trees.cases;
  const wider = { ...one, scales: one.scales.map((scale, level) => (level === 1 ? 1.2 * scale : scale)) };
  assert.ok(off(one, treeOf(wider)).largest > 1000);
});

test("infers a small tree as enumeration does", () => {
  const { about, means, log_evidence: evidence, relative } = trees.enumerated;
  const posterior = treeOf(trees.cases.find((one) => one.about === about));
  assert.ok(Math.abs(posterior.logEvidence - evidence) <= relative);
  means.forEach((level, at) => level.forEach((mean, node) => {
    assert.ok(Math.abs(posterior.summary(at, node, 0.95).mean / mean - 1) <= relative);
  }));
});

test("draws counts that add up, with the marginals' means", () => {
  const [one] = trees.cases;
  const posterior = treeOf(one);
  let state = 7;
  const random = () => ((state = (state * 48271) % 2147483647) / 2147483647);
  const drawn = finished(posterior.draws(2000, random));
  for (const counts of drawn) {
    one.parents.forEach((parents, level) => counts[level].forEach((count, node) => {
      const below = parents.reduce((sum, parent, child) => sum + (parent === node ? counts[level + 1][child] : 0), 0);
      assert.equal(below, count);
    }));
  }
  for (const { level, node, mean, sd } of one.nodes) {
    const found = drawn.reduce((sum, counts) => sum + counts[level][node], 0) / drawn.length;
    // 5.5 standard errors of 20 means: a false alarm in a million runs.
    assert.ok(Math.abs(found - mean) <= (5.5 * sd) / Math.sqrt(drawn.length), `${level} ${node}: ${found} ${mean}`);
  }
});

test("refuses a tree that would take too long, by name", () => {
  const one = trees.cases.find(({ about }) => about === "many leaves");
  assert.throws(() => finished(treePosterior({ ...one, scales: [2000, 1000, 500] }, namedPopulation("contaminated"))), { code: "resolution" });
  // A lattice of three hyperparameters is finer for few leaves: these are refused, and twice as many are not.
  const few = (number) => ({
    parents: [new Array(number).fill(0)], values: [[300 * number], new Array(number).fill(300)], scales: [30, 30], sizes: null,
  });
  const refused = { code: "resolution", message: /with the population zero-inflated.*suffice tree RELEASE TREE --population zero-inflated --out FILE; the population contaminated/ };
  assert.throws(() => finished(treePosterior(few(30), namedPopulation("zero-inflated"))), refused);
  assert.throws(() => finished(treePosterior(few(60), namedPopulation("zero-inflated"), 1e9)), refused);
  assert.equal(finished(treePosterior(few(30), namedPopulation("reciprocal"))).hyperparameters.points.length, 1);
  assert.throws(() => finished(treePosterior(few(30), namedPopulation("reciprocal"), 1e5)), { code: "resolution", message: /FILE$/ });
  assert.throws(() => namedPopulation("flat"), { code: "prior" });
});

test("refuses levels that contradict each other further than noise explains", () => {
  const tree = { levels: ["all", "place"], keys: [["true"], ["a", "b", "c", "d"]], parents: [[0, 0, 0, 0]] };
  const asked = (root) => finished(countTree(tree, [
    { name: "n.all", values: [[root]], scale: 1 }, { name: "n.place", values: [[10, 10, 10, 10]], scale: 4 },
  ], ["true"], { population: "reciprocal" }));
  assert.ok(asked(50).error < 1e-6);
  assert.throws(() => asked(1000), { code: "resolution", message: /contradict each other/ });
});

async function read(name) {
  const folder = `${ROOT}valid/${name}/release/`;
  const files = Object.fromEntries(readdirSync(folder).map((file) => [file, new Uint8Array(readFileSync(folder + file))]));
  return readRelease(files["manifest.json"], files);
}

test("reads the trees of a release", async () => {
  const release = await read("trees");
  assert.deepEqual(release.trees.map(({ name }) => name), ["daily", "flights"]);
  const tree = release.tree("flights");
  assert.deepEqual(tree.parents, [[0, 0], [0, 1, 1]]);
  const [all, newark, others] = tree.table(0.95, { component: "true" });
  assert.ok(Math.abs(all.mean - newark.mean - others.mean) < 1e-9);
  assert.equal(all.below, newark.released + others.released);
  const daily = await release.treeInSlices("daily", { where: { state: "a" } });
  assert.deepEqual(daily.table(), release.tree("daily", { where: { state: "a" } }).table());
  assert.equal(daily.parents[1].filter((month) => month === 1).length, 28);
  assert.throws(() => release.tree("daily"), { code: "cell" });
  assert.throws(() => release.tree("flights", { where: { origin: "JFK" } }), { code: "cell" });
  assert.throws(() => release.tree("nothing"), { code: "statistic" });
  const isTree = { code: "statistic", message: /^flights is a tree: release\.tree\(flights\)\.table\(\); its levels are the statistics flights\./ };
  assert.throws(() => release.table("flights"), isTree);
  assert.throws(() => release.posterior("flights"), isTree);
  for (const nodes of [undefined, {}, { origin: "EWR" }, { origin: ["ewr"] }]) {
    assert.throws(() => tree.rollUp(nodes), { name: "ReleaseError" });
  }
  for (const of of [[], "true", null]) assert.throws(() => tree.ratio("true", "origin", { of }), { code: "usage" });
});

/** How far the rows of a tree are from those stated, in units of the tolerance; Infinity where an end differs. */
function offRows(table, { rows, tolerance }) {
  assert.equal(table.length, rows.length);
  // Rows are by component here, and by level there.
  const levels = [...new Set(rows.map(({ level }) => level))];
  const found = levels.flatMap((level) => table.filter((row) => row.level === level));
  return rows.reduce((largest, row, i) => {
    assert.deepEqual([found[i].level, found[i].key, row.component ?? "total"], [row.level, row.key, found[i].component]);
    const areEnds = ["lower", "upper"].every((end) => Math.abs(found[i][end] - row[end]) <= 1e-12 * Math.abs(row[end]));
    const off = Math.max(Math.abs(found[i].mean - row.mean) / row.sd / tolerance.mean_in_sds, Math.abs(found[i].sd / row.sd - 1) / tolerance.sd);
    return Math.max(largest, off, areEnds ? 0 : Infinity);
  }, 0);
}

for (const name of ["trees", "trees-of-totals"]) {
  test(`has the counts and totals of a release that Python has: ${name}`, async () => {
    const release = await read(name);
    for (const stated of json(`valid/${name}/expected.json`).trees) {
      const tree = release.tree(stated.tree, { where: stated.where });
      assert.ok(offRows(tree.table(stated.mass), stated) <= 1, stated.tree);
      assert.ok(Math.abs(tree.logEvidence - stated.log_evidence) <= stated.tolerance.log_evidence * tree.components.length);
    }
  });
}

test("tells totals in another unit, and ends that are no wider than the steps", async () => {
  const release = await read("trees-of-totals");
  const stated = json("valid/trees-of-totals/expected.json").trees.find(({ tree }) => tree === "waits");
  const tree = release.tree("waits");
  assert.equal(tree.unit.steps, 9);
  assert.match(tree.notes.join(" "), /clipped to 0\.\.50\. .*steps of 1\.758/);
  assert.equal(release.tree("stops").unit.steps, 1);
  for (const unit of [{ steps: 9, size: 1.01 * tree.unit.size }, { steps: 1 }]) {
    const other = Object.assign(Object.create(Object.getPrototypeOf(tree)), tree, { unit: Object.assign(Object.create(Object.getPrototypeOf(tree.unit)), tree.unit, unit) });
    assert.ok(offRows(other.table(), stated) > 1000);
  }
  const { low, step, chances } = tree.counts("origin", "LGA");
  const mean = chances.reduce((sum, chance, i) => sum + chance * (low + i * step), 0);
  assert.ok(Math.abs(mean - tree.table(0.95, { level: "origin" }).at(-1).mean) < 1e-6);
});

test("draws roll-ups, shares and ranks as enumeration has them", () => {
  const stated = trees.enumerated;
  const one = trees.cases.find(({ about }) => about === stated.about);
  const keys = { levels: ["all", "half", "leaf"], keys: [["true"], ["x", "y"], ["a", "b", "c"]], parents: one.parents };
  const released = one.values.map((values, level) => ({ name: `n.${level}`, values: [values], scale: one.scales[level] }));
  const tree = finished(countTree(keys, released, ["true"], { population: "reciprocal" }));
  const draws = 4000;
  // 5.5 standard errors, of which an sd of shares is at most a half: a false alarm in a million runs.
  const isNear = (found, wanted, sd) => Math.abs(found - wanted) <= (5.5 * sd) / Math.sqrt(draws);
  const ranks = tree.rankProbabilities("leaf", { draws, rng: "ranks" }).map(({ probability }) => probability);
  stated.highest.forEach((chance, leaf) => assert.ok(isNear(ranks[leaf], chance, Math.sqrt(chance * (1 - chance))), `${leaf}: ${ranks[leaf]}, not ${chance}`));
  assert.ok(!isNear(ranks[0], stated.highest[1], 0.5), "two leaves that changed places are told");
  const shares = tree.share("leaf", { above: "all", draws, rng: "shares" });
  stated.shares_of_root.forEach((share, leaf) => assert.ok(isNear(shares[leaf].mean, share, shares[leaf].sd)));
  assert.ok(!isNear(shares[0].mean, stated.shares_of_root[1], 0.5));
  const level = (values) => ({ name: "n", values: [values], scale: 0.02 });
  const equal = finished(countTree(keys, [level([9]), level([3, 6]), level([3, 3, 3])], ["true"], { population: "reciprocal" }));
  for (const { probability } of equal.rankProbabilities("leaf", { draws })) assert.ok(isNear(probability, 1 / 3, 0.5), "equal counts are as probably the highest");
  const { mean, sd } = stated.first_and_last;
  const [ends] = tree.rollUp({ half: ["x"], leaf: ["a", "c"] }, { draws });
  assert.ok(isNear(ends.mean, mean, sd) && Math.abs(ends.sd / sd - 1) < 0.2);
  assert.ok(!isNear(tree.rollUp({ leaf: ["a", "b"] }, { draws })[0].mean, mean, sd));
  const same = { level: "leaf", draws: 10 };
  assert.deepEqual(tree.draws(3, { rng: "a" }), tree.draws(3, { rng: "a" }));
  assert.equal(tree.draws(3, { rng: () => 0.5 })[0].all[0], tree.draws(3, { rng: () => 0.5 })[2].all[0]);
  assert.throws(() => tree.rankProbabilities("leaf", { ...same, within: 4 }), { code: "usage" });
  assert.throws(() => tree.rollUp({ leaf: ["d"] }), { code: "cell" });
  assert.throws(() => tree.rollUp({}), { code: "usage" });
  assert.throws(() => tree.share("all"), { code: "usage" });
});

test("refuses keys that do not nest", async () => {
  const release = await read("trees");
  const { plan } = release.manifest;
  release.manifest = { ...release.manifest, plan: { ...plan, derived: { ...plan.derived, city: { ...plan.derived.city, map: { EWR: "Newark", JFK: "Newark", LGA: "Newark" } } } } };
  assert.throws(() => release.tree("flights"), { code: "manifest" });
});

const columnFor = (one, options) =>
  finished(columnOf(one.values, one.scale, binsOf({ bins: one.bins }), stepsOf(), options));

/** The first bin whose cumulated frequency differs by more than chance explains; null where none does. */
function unlike(column, { levels, frequencies, mean_between: [low, high] }, draws) {
  for (const [k, level] of levels.entries()) {
    const [, lower] = column.quantiles(level);
    let stated = 0;
    for (let bin = 0; bin < column.bins.lower.length - 1; bin += 1) {
      stated += frequencies[k][bin];
      const found = lower.filter((end) => end <= column.bins.lower[bin]).length / lower.length;
      // A false alarm of 1e-9 a comparison, of some thousand.
      const sd = Math.sqrt(Math.max(stated * (1 - stated), 1e-4) * (1 / draws + 1 / lower.length));
      if (column.bins.lower[bin + 1] > column.bins.lower[bin] && Math.abs(found - stated) > 6.2 * sd) return `${level} ${bin}: ${found}, not ${stated}`;
    }
  }
  const { lower, upper } = column.bins;
  for (const [stated, ends] of [[low, lower], [high, upper]]) {
    const means = column.shares.map((draw) => draw.reduce((sum, share, bin) => sum + share * ends[bin], 0));
    const mean = means.reduce((sum, one) => sum + one, 0) / means.length;
    if (Math.abs(mean - stated.mean) > 6.2 * stated.sd * Math.sqrt(1 / draws + 1 / means.length)) return `mean: ${mean}, not ${stated.mean}`;
  }
  return null;
}

for (const one of histograms.cases) {
  test(`infers a histogram as Python does: ${one.about}`, () => {
    const { tolerance, draws } = histograms;
    for (const stated of one.columns) {
      const column = columnFor(one, { of: stated.of, draws: 1500 });
      assert.ok(Math.abs(column.logEvidence - one.log_evidence) <= tolerance.log_evidence);
      if (stated.of === "law") {
        column.expectedCounts().forEach(({ mean, sd }, bin) => {
          assert.ok(Math.abs(mean / one.means[bin] - 1) <= tolerance.relative, `bin ${bin}: ${mean}, not ${one.means[bin]}`);
          assert.ok(Math.abs(sd / one.sds[bin] - 1) <= tolerance.relative);
        });
      }
      assert.equal(unlike(column, stated, draws), null);
    }
  });
}

test("tells the draws of another histogram", () => {
  const [first] = histograms.cases;
  const moved = columnFor({ ...first, values: [...first.values.slice(1), 0] }, { draws: 1500 });
  assert.ok(Math.abs(moved.logEvidence - first.log_evidence) > 1e-3);
  assert.notEqual(unlike(moved, first.columns[0], histograms.draws), null);
});

test("answers quantiles, shares and means of a release's column", async () => {
  const release = await read("bins");
  const column = release.column("delay", { where: { origin: "EWR" } });
  const { lower, upper, median } = column.quantile(0.5);
  assert.ok(lower <= median && median <= upper);
  assert.ok(Math.abs(column.cdf(10).mean + column.tailShare(10).mean - 1) < 1e-9);
  const even = column.mean(0.95, { isEven: true });
  const whole = column.mean();
  assert.ok(whole.lower < even.lower && even.upper < whole.upper);
  // At an atom the share up to it is the share below it and its own.
  const atom = column.bins.isAtom.indexOf(true);
  const share = column.density()[atom].mean;
  assert.ok(Math.abs(column.cdf(0).mean - (1 - column.tailShare(0).mean) - share) < 1e-9);
  assert.deepEqual((await release.columnInSlices("delay", { where: { origin: "EWR" } })).quantile(0.5), column.quantile(0.5));
  assert.throws(() => release.column("delay"), { code: "cell" });
  assert.throws(() => release.column("delay", { where: { origin: "EWR" }, prior: "Beta(1, 1)" }), { code: "prior" });
  assert.throws(() => column.gini(), { code: "usage" });
  const index = release.column("wait", { where: { origin: "EWR" } }).gini();
  assert.ok(index.lower > 0 && index.upper < 1);
});

test("refuses what it does not know within half of the range", () => {
  const one = histograms.cases.find(({ about }) => about === "few records under wide noise");
  const { isRefused, median, lower, upper } = columnFor({ ...one, values: one.values.map(() => 3), scale: 200 }, { draws: 1000 }).quantile(0.5);
  assert.ok(isRefused && Number.isNaN(median) && lower < upper);
});
