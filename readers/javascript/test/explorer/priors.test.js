import assert from "node:assert/strict";
import { test } from "node:test";
import { readPrior, slidersOf, writePrior } from "../../explorer/priors.js";

const bounds = { lower: "-60", upper: "180", categories: ["a", "b", "c"] };
const PRIORS = [
  ["bernoulli", "Beta(1, 30)"],
  ["categorical", "Dirichlet(1)"],
  ["categorical", "Dirichlet(1, 2, 5)"],
  ["poisson", "Gamma(1, 0.4)"],
  ["exponential", "Gamma(2, 50)"],
  ["laplace", "InverseGamma(3, 60)"],
  ["normal_known_variance", "Normal(60, 60)"],
  ["normal", "NormalInverseGamma(10, 2, 3, 400)"],
  ["normal", "ScaleMixture(-60, 180)"],
  ["exponential", "SpreadGamma(100)"],
  ["laplace", "SpreadInverseGamma(60)"],
];

for (const [family, text] of PRIORS) {
  test(`sliders of ${family} with ${text} set what they show and leave the others`, () => {
    const prior = readPrior(text);
    const sliders = slidersOf(prior, { family, parameters: bounds }, prior, 1);
    assert.ok(sliders.length >= (prior.name.startsWith("Spread") ? 1 : 2));
    for (const [index, slider] of sliders.entries()) {
      const before = sliders.map(({ value }) => value(prior.numbers));
      const wanted = slider.scale.number(slider.scale.position(before[index]) + 37);
      const changed = slider.change(prior.numbers, wanted);
      const after = sliders.map(({ value }) => value(changed));
      after.forEach((found, at) => near(found, at === index ? wanted : before[at]));
      assert.notDeepEqual(readPrior(writePrior({ name: prior.name, numbers: changed })), null);
      assert.equal(slider.scale.position(slider.scale.number(500)), 500);
    }
  });
}

test("text is read as Python reads it", () => {
  assert.deepEqual(readPrior(" Beta(concentration0=30, concentration1=1) "), { name: "Beta", numbers: [1, 30] });
  assert.deepEqual(readPrior("Normal(-5, 1e1)"), { name: "Normal", numbers: [-5, 10] });
});

for (const text of [
  "",
  "Beta(1)",
  "Beta(1, 2, 3)",
  "Beta(0, 1)",
  "Beta(1, x)",
  "Mixture(1, Beta(1, 1))",
  "toString(1)",
  "Beta(1, 1)(",
]) {
  test(`no slider sets ${JSON.stringify(text)}`, () => assert.equal(readPrior(text), null));
}

function near(found, expected) {
  assert.ok(Math.abs(found - expected) < 1e-9 * Math.max(1, Math.abs(expected)), `${found} is not ${expected}`);
}
