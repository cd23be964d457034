import assert from "node:assert/strict";
import { test } from "node:test";

import { beside } from "../../explorer/numbers.js";
import { matching, readPage } from "../../explorer/page-data.js";
import { entriesOf } from "../../explorer/reading.js";
import { firstQuestion, inWords } from "../../explorer/state.js";
import { wordsOf } from "../../explorer/words.js";

const ABOUT = {
  statistics: {
    delay: { label: "Arrival delay", unit: "minutes" },
    carrier: { label: "Airline", values: { UA: "United" }, parameters: { probability: { label: "Share" } } },
  },
  keys: { origin: { label: "Airport", values: { EWR: "Newark" } }, month: { label: "Month", unit: "of 2013" } },
};

const MANIFEST = {
  name: "flights",
  n: null,
  groups: [
    { column: "origin", kind: "list", keys: ["EWR", "JFK"] },
    { column: "month", kind: "range", first: "1", last: "12" },
  ],
  statistics: [],
  files: [],
};

const pageOf = (about) => readPage(JSON.stringify({ manifest: JSON.stringify(MANIFEST), about, files: {} }));

test("labels and units stand in place of names", () => {
  const words = wordsOf(ABOUT);
  assert.equal(words.statistic("delay"), "Arrival delay");
  assert.equal(words.column("month"), "Month (of 2013)");
  assert.deepEqual(words.number("delay", "mean", null), { title: "Arrival delay, mean", unit: "minutes" });
  assert.deepEqual(words.number("delay", "variance", null), { title: "Arrival delay, variance", unit: "minutes²" });
  assert.deepEqual(words.number("carrier", "probability", "UA"), { title: "Share, United", unit: "" });
  assert.deepEqual(words.number("carrier", "probability", "DL"), { title: "Share, DL", unit: "" });
});

test("what nobody named is called by its name, whatever the name is", () => {
  const words = wordsOf({ statistics: {}, keys: {} });
  for (const name of ["cancelled", "__proto__", "constructor", "toString"]) {
    assert.equal(words.statistic(name), name);
    assert.equal(words.column(name), name);
    assert.equal(words.key(name, name), name);
    assert.equal(words.number(name, name, name), null);
  }
  assert.equal(wordsOf(undefined).statistic("cancelled"), "cancelled");
});

test("a cell is called by its keys", () => {
  assert.equal(inWords(pageOf(ABOUT), ["EWR", "3"]), "Newark, Month 3");
  assert.equal(inWords(pageOf(undefined), ["EWR", "3"]), "origin=EWR, month=3");
});

test("keys are found by what they are called", () => {
  const [origin] = pageOf(ABOUT).groups;
  assert.deepEqual(matching(origin, "newa", 5), { keys: ["EWR"], found: 1 });
  assert.deepEqual(matching(origin, "jf", 5), { keys: ["JFK"], found: 1 });
});

test("entries have titles in words, and keys as they were", () => {
  const posterior = { parameters: ["probability[UA]", "probability[DL]"] };
  const named = entriesOf(posterior, { name: "carrier" }, wordsOf(ABOUT));
  assert.deepEqual(
    named.map(({ key, label, title }) => [key, label, title]),
    [
      ["probability[UA]", "United", "Share, United"],
      ["probability[DL]", "DL", "Share, DL"],
    ],
  );
  const [plain] = entriesOf({ parameters: ["mean"] }, { name: "delay" }, wordsOf());
  assert.deepEqual([plain.title, plain.isNamed], ["mean of delay", false]);
});

test("numbers have the digits that their standard deviation allows", () => {
  assert.equal(beside(0.0267084, 0.000468769), "0.02671");
  assert.equal(beside(1234.567, 85), "1235");
  assert.equal(beside(1.5, 0), "1.500");
  assert.equal(beside(Number.NaN, 1), "–");
});

test("a page opens with the first statistic that there is an answer for", () => {
  const statistic = (name, family) => ({ name, family, mechanism: "discrete_laplace", parameters: { lower: "0", upper: "9" } });
  const statistics = [statistic("delay", "histogram"), statistic("fare", "normal"), statistic("late", "bernoulli")];
  const opened = (likelihoods, of = statistics) =>
    firstQuestion(readPage(JSON.stringify({ manifest: JSON.stringify({ ...MANIFEST, statistics: of }), files: {}, likelihoods })));
  assert.equal(opened({}).statistic, "late");
  assert.equal(opened({ fare: { columns: [] } }).statistic, "fare");
  assert.equal(opened({ fare: { reason: "too many cells" } }).statistic, "late");
  // A histogram has a section of its own.
  assert.equal(opened({}, statistics.slice(0, 2)).statistic, "fare");
});
