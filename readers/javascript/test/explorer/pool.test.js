import assert from "node:assert/strict";
import { test } from "node:test";
import { pooledLines } from "../../explorer/lines.js";
import { aloneInterval, pooledOf, poolsOf } from "../../explorer/pool.js";
import { fromHash, toHash } from "../../explorer/state.js";

const POOLS = {
  ill: {
    link: "../publications/ab/index.html",
    uri: "./publications/it's",
    mass: 0.9,
    kind: "central",
    others: 3,
    is_identified: true,
    rows: [
      { of: ["north", "1", "probability"], numbers: [0.2, 0.01, 0.18, 0.22, 0.4] },
      { of: ["north", "2", "probability"], numbers: [0.3, 0.02, 0.26, 0.34, null] },
    ],
  },
};
const page = { pooled: poolsOf(POOLS) };
const asked = (cell, versus = null, statistic = "ill") => ({
  question: { cell, versus },
  statistic: { name: statistic },
  entry: { key: "probability" },
});

test("a cell is found by its keys and its entry", () => {
  const pooled = pooledOf(page, asked(["north", "1"]));
  assert.deepEqual([pooled.mean, pooled.sd, ...pooled.interval, pooled.ownShare], [0.2, 0.01, 0.18, 0.22, 0.4]);
  assert.equal(pooled.mass, "90 %");
  assert.equal(pooledOf(page, asked(["north", "2"])).ownShare, null);
});

test("nothing is found of other cells, of two cells, or of what was not published", () => {
  assert.equal(pooledOf(page, asked(["north", "3"])), null);
  assert.equal(pooledOf(page, asked(["north", "1"], ["north", "2"])), null);
  assert.equal(pooledOf(page, asked(["north", "1"], null, "toString")), null);
});

test("a cell alone has the kind of interval that it has together", () => {
  const law = { quantile: (share) => share, interval: (mass) => [0, mass] };
  const [low, high] = aloneInterval(law, { kind: "central", share: 0.9 });
  assert.ok(Math.abs(low - 0.05) < 1e-12 && Math.abs(high - 0.95) < 1e-12);
  assert.deepEqual(aloneInterval(law, { kind: "highest-density", share: 0.9 }), [0, 0.9]);
});

test("the switch stands in the address, and lines are quoted", () => {
  const base = { statistic: "ill", cell: [], versus: null, prior: "", nPrior: "", mass: 0.95, shown: "", whole: false };
  const declared = { statistics: [{ name: "ill" }], groups: [] };
  for (const together of [true, false]) {
    assert.deepEqual(fromHash(toHash({ ...base, together }), declared, base), { ...base, together });
  }
  const lines = pooledLines({ statistic: "ill" }, pooledOf(page, asked(["north", "1"])));
  assert.match(lines, /open_publication\("\.\/publications\/it's"\)\nprint\(publication\.pooled\("ill"\)\)$/);
});
