// The parts that everything else rests on.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { encodeText, sha256 } from "../src/bytes.js";
import { decode } from "../src/canonical_json.js";
import { format, ofNumber, parseRational, toNumber } from "../src/exact.js";
import { leastScale } from "../src/plan.js";
import { parseNPrior, parsePrior } from "../src/priors.js";
import { gauss, gram, sumRule } from "../src/rules.js";
import { sampleFields } from "../src/samples.js";
import { logBeta, logBinomial, logGamma, logPoisson } from "../src/special.js";

test("SHA-256 is Node's, whatever the length", () => {
  for (const size of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000]) {
    const data = Uint8Array.from({ length: size }, (_, i) => (i * 31) % 251);
    assert.equal(sha256(data), createHash("sha256").update(data).digest("hex"));
  }
});

test("canonical JSON is one byte sequence for a document", () => {
  const decoded = (text) => decode(encodeText(text));
  assert.deepEqual(decoded('{"a":[1,null,true],"b":"é\u2028"}'), { a: [1, null, true], b: "é\u2028" });
  // U+FFFF stands before U+10000, though not in UTF-16.
  assert.notEqual(decoded('{"\uffff":1,"\u{10000}":2}'), null);
  assert.equal(decoded('{"\u{10000}":2,"\uffff":1}'), null);
  for (const text of [' {}', '{"b":1,"a":2}', '{"a":1,"a":2}', "1.0", "1e3", "-0", "9007199254740992", '"\\ud800"', '"\\u00e9"', "", "[".repeat(5000)]) {
    assert.equal(decoded(text), null, text.slice(0, 20));
  }
  assert.equal(Object.hasOwn(decoded('{"__proto__":1}'), "__proto__"), true);
});

test("exact numbers are rounded once, and written as manifests write them", () => {
  for (const [text, written] of [["0.250", "0.25"], ["2/6", "1/3"], ["-12.5", "-12.5"], ["100", "100"]]) {
    assert.equal(format(parseRational(text)), written);
  }
  for (const value of [1 / 3, 0.1, 5e-324, 1e308, 2 ** 53 + 2, 123456.789]) {
    assert.equal(toNumber(ofNumber(value)), value);
    assert.equal(toNumber(parseRational(format(ofNumber(value))) ?? ofNumber(value)), value);
  }
  assert.equal(toNumber(parseRational("9007199254740993")), 9007199254740992); // ties to even
  for (const text of ["1e5", "0x10", "1/0", "", ".5", "NaN", "9".repeat(5000)]) assert.equal(parseRational(text), null);
});

test("the noise scale is the least whose privacy loss is at most epsilon", () => {
  assert.equal(leastScale(1n, parseRational("0.25")).scale, 4);
  const { scale } = leastScale(17179869184n, parseRational("0.3"));
  assert.ok(17179869184 / scale <= 0.3);
  assert.equal(leastScale(1n, parseRational("1/3")).text, "3.000000000000000444089209850062616169452667236328125");
});

test("rules are exact for polynomials, over intervals and over whole numbers", () => {
  const powers = (x) => x ** 9 - 3 * x ** 4 + x;
  const { nodes, weights } = gauss(12);
  const integral = nodes.reduce((sum, y, i) => sum + weights[i] * (y ** 10 + powers(y)), 0);
  assert.ok(Math.abs(integral - (1 / 11 - 3 / 5)) < 1e-15);
  for (const n of [24, 37, 1000]) {
    const y = (i) => (2 * i + 1) / n - 1;
    let exact = 0;
    for (let i = 0; i < n; i += 1) exact += powers(y(i)) / n;
    const gauss12 = gram(12, n);
    assert.ok(Math.abs(gauss12.nodes.reduce((sum, at, i) => sum + gauss12.weights[i] * powers(at), 0) - exact) < 1e-14);
    const whole = sumRule(12, n);
    assert.ok(whole.nodes.every(Number.isInteger));
    assert.ok(Math.abs(whole.nodes.reduce((sum, at, i) => sum + whole.weights[i] * powers(y(at)), 0) - exact) < 1e-13);
  }
});

test("log probabilities keep their digits where counts are large", () => {
  assert.ok(Math.abs(logGamma(0.5) - Math.log(Math.PI) / 2) < 1e-14);
  assert.ok(Math.abs(logBeta(3, 1e9) - (Math.log(2) - 3 * Math.log(1e9) - 3e-9)) < 1e-13);
  // At its mean a count of many trials has the probability that Stirling's formula gives.
  const [n, p] = [1e12, 0.25];
  assert.ok(Math.abs(logBinomial(n * p, n, p, 1 - p) + 0.5 * Math.log(2 * Math.PI * n * p * (1 - p))) < 1e-11);
  assert.ok(Math.abs(logPoisson(1e12, 1e12) + 0.5 * Math.log(2 * Math.PI * 1e12)) < 1e-12);
  let sum = 0;
  for (let x = 0; x <= 20; x += 1) sum += Math.exp(logBinomial(x, 20, 0.3, 0.7));
  assert.ok(Math.abs(sum - 1) < 1e-14);
});

test("priors are read from their text, and nothing else is", () => {
  assert.equal(parsePrior("Beta(concentration0=9, concentration1 = 1)", "Beta").text, "Beta(1, 9)");
  assert.equal(parsePrior(" Mixture(3, Beta(1, 9), 7, Beta(9, 1)) ", "Beta").text, "Mixture(3, Beta(1, 9), 7, Beta(9, 1))");
  assert.equal(parseNPrior("Uniform(0, 20)").text, "Uniform(0, 20)");
  assert.ok(Math.abs(parseNPrior("Reciprocal(3)").log(1) - Math.log(1 / 2 / (1 + 1 / 2 + 1 / 3 + 1 / 4))) < 1e-14);
  const bad = ["Beta", "Beta(1,)", "Beta(1, 2, 3)", "Beta(0, 1)", "Beta(1, 2", "Beta(1, 2))", "Beta(1; 2)", "Gamma(1, 2)", "Beta(1, Beta(1, 1))", "Mixture(Beta(1, 1))", "Mixture(1, 2)", 7, null];
  for (const text of bad) assert.throws(() => parsePrior(text, "Beta"), { code: "prior" }, String(text));
});

test("a sample's range is at most 2^62, and its scale at most 2^46", () => {
  const sample = { draws: "1", grid: "3", prior: "Beta(1, 1)", within: ["0.2", "0.8"] };
  const fields = (range, epsilon) => sampleFields(sample, { measure: "epsilon", amount: parseRational(epsilon) }, { range_sensitivity: String(range) }, "x");
  const much = String(2n ** 20n);
  assert.equal(fields(2n ** 62n, much).range_sensitivity, String(2n ** 62n));
  assert.throws(() => fields(2n ** 62n + 1n, much), /range_sensitivity.*above 2\^62/);
  assert.equal(BigInt(fields(2n ** 46n - 2n, "1").scale), 2n ** 46n - 1n);
  assert.throws(() => fields(2n ** 46n, "1"), /scale.*above 2\^46/);
});
