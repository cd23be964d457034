// Posteriors in slices are those in one go, also where one of them is hardly any work.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readRelease } from "../src/index.js";

const ROOT = fileURLToPath(new URL("../../../tests/vectors/valid/first-families/release/", import.meta.url));
const QUESTIONS = {
  cancelled: { prior: "Beta(2, 5)" },
  carrier: { prior: "Dirichlet(2)", parameters: 1 },
  stops: { prior: "Gamma(900, 150)", clipping: "modelled" },
};

async function opened() {
  const manifest = readFileSync(`${ROOT}manifest.json`);
  const names = JSON.parse(manifest).files.map(({ path }) => path);
  const bytes = (name) => new Uint8Array(readFileSync(ROOT + name));
  return readRelease(bytes("manifest.json"), Object.fromEntries(names.map((name) => [name, bytes(name)])));
}

for (const [statistic, asked] of Object.entries(QUESTIONS)) {
  test(`slices of the posterior of ${statistic}`, async (t) => {
    const release = await opened();
    const { parameters, ...priors } = asked;
    const options = { ...priors, where: release.cells()[0] };
    const whole = (await opened()).posterior(statistic, options);
    if (statistic === "stops") assert.equal(whole.clipping, "modelled");
    // A clock by which a slice is over after so many looks at it, each a step of the work.
    let now = 0;
    t.mock.method(performance, "now", () => (now += 1));
    let slices = 0;
    const named = whole.parameters.slice(0, parameters);
    const found = await release.posteriorInSlices(statistic, { ...options, parameters: named }, async () => (slices += 1));
    assert.ok(slices > 20, String(slices));
    for (const parameter of named) {
      assert.ok(Math.abs(found.mean(parameter) - whole.mean(parameter)) <= 1e-9 * whole.sd(parameter));
      assert.ok(Math.abs(found.quantile(0.9, parameter) - whole.quantile(0.9, parameter)) <= 1e-9 * whole.sd(parameter));
    }
  });
}
