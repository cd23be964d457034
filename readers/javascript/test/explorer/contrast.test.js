import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast } from "../../explorer/contrast.js";

// Laws with closed forms: the difference of normals is normal; of two uniforms and exponentials as below.

function normal(mean, sd) {
  return {
    mean,
    sd,
    density: (points) => points.map((x) => Math.exp((-0.5 * (x - mean) ** 2) / sd ** 2) / sd / Math.sqrt(2 * Math.PI)),
    quantile: (share) => mean + sd * standardQuantile(share),
  };
}

function exponential(rate) {
  return {
    mean: 1 / rate,
    sd: 1 / rate,
    density: (points) => points.map((x) => rate * Math.exp(-rate * x)),
    quantile: (share) => -Math.log1p(-share) / rate,
  };
}

/** Beta(1/2, 1/2): its density has no bound at either end. */
const arcsine = {
  mean: 0.5,
  sd: Math.sqrt(1 / 8),
  density: (points) => points.map((x) => 1 / Math.PI / Math.sqrt(x * (1 - x))),
  quantile: (share) => Math.sin((Math.PI * share) / 2) ** 2,
};

function standardQuantile(share) {
  let [low, high] = [-9, 9];
  for (let turn = 0; turn < 80; turn += 1) {
    const middle = (low + high) / 2;
    if (distribution(middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

function distribution(x) {
  // Simpson's rule from the middle.
  const n = 400;
  const h = x / n;
  let sum = 0;
  for (let i = 0; i <= n; i += 1) sum += (i === 0 || i === n ? 1 : i % 2 ? 4 : 2) * Math.exp(-0.5 * (i * h) ** 2);
  return 0.5 + (sum * h) / 3 / Math.sqrt(2 * Math.PI);
}

function close(found, expected, tolerance = 1e-6) {
  assert.ok(Math.abs(found - expected) <= tolerance * Math.max(1, Math.abs(expected)), `${found} is not ${expected}`);
}

test("the difference of two normals is normal", () => {
  const { difference, greater } = contrast(normal(3, 3), normal(1, 4), 0.95);
  close(difference.mean, 2);
  close(difference.sd, 5);
  close(difference.median, 2);
  close(difference.lower, 2 - 5 * 1.959963985);
  close(difference.upper, 2 + 5 * 1.959963985);
  close(greater, distribution(0.4));
});

test("far scales: a narrow and a wide normal", () => {
  const { difference, greater } = contrast(normal(0.5, 0.0001), normal(0, 1), 0.9);
  close(difference.upper, 0.5 + Math.hypot(1, 0.0001) * 1.644853627);
  close(greater, distribution(0.5));
});

test("the ratio of two exponentials", () => {
  const { ratio, greater } = contrast(exponential(2), exponential(6), 0.8);
  // P(A / B < r) = 2 r / (2 r + 6).
  const quantile = (share) => (3 * share) / (1 - share);
  close(ratio.median, 3, 1e-5);
  close(ratio.lower, quantile(0.1), 1e-5);
  close(ratio.upper, quantile(0.9), 1e-5);
  close(greater, 0.75);
});

test("densities without a bound at their ends", () => {
  const { greater, difference } = contrast(arcsine, arcsine, 0.5);
  close(greater, 0.5);
  close(difference.median, 0, 1e-5);
});

test("the sides can be told: turned around, the probability is of the other side", () => {
  const one = contrast(normal(3, 3), normal(1, 4), 0.95);
  const other = contrast(normal(1, 4), normal(3, 3), 0.95);
  close(one.greater + other.greater, 1);
  assert.ok(one.greater > 0.6);
  close(one.difference.lower, -other.difference.upper);
});

test("no ratio where the second may be zero or below", () => {
  assert.equal(contrast(normal(3, 3), normal(1, 4), 0.95).ratio, null);
});

test("a law that cannot be tabulated is not compared", () => {
  const broken = { ...normal(0, 1), density: (points) => points.map(() => 0.1) };
  assert.equal(contrast(broken, normal(0, 1), 0.95), null);
});
