import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { commandLine, placeOf, pythonLines, shellWord } from "../../explorer/lines.js";
import { columnFields, columnFromHash, fromHash, partOf, toHash, treeFields, treeFromHash, withPart, withQuestion } from "../../explorer/state.js";
import { written, brief, ticks } from "../../explorer/numbers.js";

const HOSTILE = [
  "it's",
  '"',
  "\\",
  "$(touch x)",
  "`id`",
  "a\nb",
  "-x",
  "café 😀",
  "</script>",
  " lead",
  "a;b&c|d",
  "=1+1",
  "\u2028",
];
const group = (column, keys) => ({
  column,
  size: keys.length,
  key: (index) => keys[index],
  has: (key) => keys.includes(key),
});
const page = {
  uri: "/a b/it's",
  statistics: [{ name: "cancelled" }],
  groups: [group("origin", HOSTILE), group("month", ["1", "2"])],
};
const question = {
  statistic: "cancelled",
  cell: ["it's", "1"],
  versus: null,
  prior: "",
  nPrior: "",
  mass: 0.95,
  shown: "",
  whole: false,
  together: false,
};

test("a shell takes every key for one word, and runs none", () => {
  for (const key of HOSTILE) {
    const printed = execFileSync("/bin/sh", ["-c", `printf %s ${shellWord(key)}`], { encoding: "utf8" });
    assert.equal(printed, key);
  }
});

test("the command line names the cell and what it is compared with", () => {
  const line = commandLine(page, { ...question, versus: ["=1+1", "1"], prior: "Beta(1, 9)" });
  assert.equal(
    line,
    "suffice posterior '/a b/it'\\''s' cancelled --where 'origin=it'\\''s' --versus origin==1+1 --where month=1 " +
      "--prior 'Beta(1, 9)' --mass 0.95 --interval central",
  );
});

test("Python's texts are ASCII", () => {
  for (const key of HOSTILE) {
    const lines = pythonLines(page, { ...question, cell: [key, "1"] }, "probability");
    assert.match(lines, /^[\x20-\x7e\n]+$/);
    assert.equal(lines.split("\n").length, 6);
  }
});

test("a question survives its address", () => {
  for (const key of HOSTILE) {
    const asked = {
      ...question,
      cell: [key, "2"],
      versus: ["it's", "1"],
      prior: "Beta(1, 9)",
      mass: 0.8,
      shown: "x[é]",
    };
    assert.deepEqual(fromHash(toHash(asked), page, question), asked);
  }
});

test("an address that asks what is not there changes nothing", () => {
  for (const hash of ["", "#top", "#explorer&statistic=none&cell=no&cell=1&mass=7", "#explorer&mass=0.9999999999999999", "#explorer&mass=1e-300", "#explorer&cell=%ff"]) {
    assert.deepEqual(fromHash(hash, page, question), question);
  }
});

const parts = {
  ...page,
  trees: [
    { name: "ill", components: ["false", "true"], groups: [] },
    { name: "it's & so on", components: ["total"], groups: [group("year", HOSTILE)] },
  ],
  columns: [{ name: "delay", groups: [group("origin", HOSTILE)] }],
};
const POPULATIONS = ["contaminated", "zero-inflated"];
const KINDS = ["law", "rows"];

test("questions of a tree and of a column survive an address, each beside the others", () => {
  for (const key of HOSTILE) {
    const tree = { name: "it's & so on", where: { year: key }, component: "total", population: "zero-inflated", mass: 0.8, opened: [`1 ${key}`, "1 b"] };
    const column = { name: "delay", where: { origin: key }, of: "rows", level: 0.9, least: -2.5, mass: 0.5, prior: "BinWalk(0.1)", whole: true };
    const asked = { ...question, cell: [key, "2"] };
    let hash = withPart("#top", "tree", treeFields(tree, POPULATIONS[0]));
    hash = withPart(hash, "column", columnFields(column, KINDS[0]));
    assert.equal(partOf(hash), "column");
    hash = withQuestion(hash, asked);
    assert.equal(partOf(hash), null);
    hash = withPart(hash, "tree", treeFields({ ...tree, mass: 0.95 }, POPULATIONS[0]));
    assert.equal(partOf(hash), "tree");
    assert.deepEqual(treeFromHash(hash, parts, POPULATIONS), { ...tree, mass: 0.95 });
    assert.deepEqual(columnFromHash(hash, parts, KINDS), column);
    assert.deepEqual(fromHash(hash, page, question), asked);
  }
});

test("an address that asks a part for what is not there asks what a page opens with", () => {
  const tree = { name: "ill", where: {}, component: "true", population: "contaminated", mass: 0.95, opened: [] };
  const column = { name: "delay", where: { origin: HOSTILE[0] }, of: "law", level: 0.5, least: null, mass: 0.95, prior: "", whole: false };
  for (const hash of ["", "#top", "#explorer&tree.name=none&tree.counted=x&tree.leaves=flat&tree.mass=2&column.key=no&column.of=x&column.least=x&column.level=1", "#explorer&tree.mass=0.9999999999999999&column.mass=1e-300"]) {
    assert.deepEqual(treeFromHash(hash, parts, POPULATIONS), tree);
    assert.deepEqual(columnFromHash(hash, parts, KINDS), column);
  }
});

test("numbers are written as they are", () => {
  assert.equal(written(0.0221234567, 6), "0.0221235");
  assert.equal(written(9.9999999, 6), "10.0000");
  assert.equal(written(123456.7, 4), "123457");
  assert.equal(written(1e-7, 3), "1.00e-7");
  assert.equal(written(NaN), "–");
  assert.equal(brief(0.5), "0.5");
  assert.equal(brief(200, 4), "200");
  assert.deepEqual(ticks(0, 1, 5).values.map(ticks(0, 1, 5).write), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
});

test("a page on the web names its own address, and any other page what is written on it", () => {
  const uri = "./releases/flights/all/0123";
  const path = "releases/flights/all/0123";
  const page = `${path}/index.html?q=1#ask`;
  assert.equal(placeOf(uri, `https://example.org/data/${page}`), `https://example.org/data/${path}`);
  assert.equal(placeOf(uri, `http://localhost:8000/${path}/`), `http://localhost:8000/${path}`);
  assert.equal(placeOf(uri, `http://example.org/${page}`), uri, "readers open no plain http of others");
  assert.equal(placeOf(uri, `http://localhost.example.org/${page}`), uri);
  assert.equal(placeOf(uri, `file:///home/${page}`), uri);
  assert.equal(placeOf("https://mirror.org/0123", `https://example.org/${page}`), "https://mirror.org/0123");
});
