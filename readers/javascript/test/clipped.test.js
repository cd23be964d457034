// Sums of clipped counts, beside convolutions of no cleverness.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClippedLikelihood, clippedFailures, clippedPoisson } from "../src/clipped.js";
import { fixed, parseNPrior } from "../src/priors.js";

/** Log of the sum over N and the total of all that is said to be summed, each convolution by its definition. */
function dense(record, { values: [first, second], scale, reach }, nPrior, most) {
  let sum = 0;
  let totals = [1];
  for (let n = 0; n <= most; n += 1) {
    if (n) {
      const next = new Array(totals.length + reach).fill(0);
      totals.forEach((chance, a) => record.forEach((own, x) => (next[a + x] += chance * own)));
      totals = next;
    }
    if (n < nPrior.low || n > nPrior.high) continue;
    totals.forEach((chance, a) => {
      const away = Math.abs(first - a) + (second === undefined ? 0 : Math.abs(second - (reach * n - a)));
      sum += Math.exp(nPrior.log(n) - away / scale) * chance;
    });
  }
  return Math.log(sum);
}

const RECORDS = {
  poisson: { record: clippedPoisson(5), reach: 5, positions: [-2, 0.3, 1.5, 2.5] },
  geometric: { record: clippedFailures(7, 1), reach: 7, positions: [-3, -1.5, 0, 2] },
  "negative binomial": { record: clippedFailures(6, 2.5), reach: 6, positions: [-2.5, -0.5, 1] },
};

for (const [name, { record, reach, positions }] of Object.entries(RECORDS)) {
  test(`the likelihood of clipped counts is that of convolutions: ${name}`, () => {
    for (const position of positions) {
      const chances = record(position);
      assert.ok(Math.abs(chances.reduce((all, one) => all + one, 0) - 1) < 1e-12);
      for (const values of [[40, 25], [-6, 90], [11, 2]]) {
        for (const [own, nPrior] of [[values, parseNPrior("Uniform(0, 60)")], [[values[0]], fixed(20)]]) {
          const noisy = { values: own, scale: reach / 0.8, reach };
          const found = new ClippedLikelihood(record, noisy, nPrior).at(position);
          const expected = dense(chances, noisy, nPrior, 60);
          assert.ok(Math.abs(found - expected) < 1e-8, `${position} ${own}: ${found}, not ${expected}`);
          // Of other noise it is another number: what is compared would tell.
          const other = dense(chances, { ...noisy, scale: noisy.scale * 1.02 }, nPrior, 60);
          assert.ok(Math.abs(found - other) > 1e-6);
        }
      }
    }
  });
}
