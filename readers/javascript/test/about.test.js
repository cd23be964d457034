// Words beside a manifest: of this release, in their chain, visible, for what it has; or refused.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { encodeText, sha256 } from "../src/bytes.js";
import { encode } from "../src/canonical_json.js";
import { ReleaseError, readRelease } from "../src/index.js";

const ROOT = fileURLToPath(new URL("../../../tests/vectors/", import.meta.url));
const { valid } = JSON.parse(readFileSync(`${ROOT}index.json`, "utf8"));
const { name: PLAIN } = valid.find(({ signed }) => !signed);
const { name: SIGNED } = valid.find(({ signed }) => signed);

function filesOf(name) {
  const place = `${ROOT}valid/${name}/release/`;
  return Object.fromEntries(readdirSync(place).map((file) => [file, new Uint8Array(readFileSync(place + file))]));
}

function read(files, options) {
  const { "manifest.json": manifest, ...others } = files;
  return readRelease(manifest, others, options);
}

function worded(files, about, changes = {}, before = null) {
  const manifest = JSON.parse(new TextDecoder().decode(files["manifest.json"]));
  const content = {
    format_version: 1,
    release_id: manifest.release_id,
    manifest_sha256: sha256(files["manifest.json"]),
    number: before === null ? 1 : 2,
    replaces: before === null ? null : sha256(before),
    created: "2026-01-31T08Z",
    about,
    signature: null,
    ...changes,
  };
  const checksum = sha256(encodeText(encode({ ...content, checksum: null, signature: null })));
  return encodeText(encode({ checksum, ...content }));
}

const FILES = filesOf(PLAIN);
const { statistics, groups } = JSON.parse(new TextDecoder().decode(FILES["manifest.json"]));
const ABOUT = {
  title: "Flights",
  statistics: { [statistics[0].name]: { label: "Cancelled flights", digits: 3, values: { UA: "United" } } },
  keys: Object.fromEntries(groups.map(({ column }) => [column, { label: "Airport", values: { EWR: "Newark" } }])),
};

test("reads the newest words, and none where there are none", async () => {
  assert.deepEqual((await read(FILES)).about, {});
  const first = worded(FILES, ABOUT);
  assert.deepEqual((await read({ ...FILES, "about-1.json": first })).about, ABOUT);
  const second = worded(FILES, { title: "Mended" }, {}, first);
  const both = { ...FILES, "about-1.json": first, "about-2.json": second };
  assert.deepEqual((await read(both)).about, { title: "Mended" });
});

test("a sentence on a conflict has the labels of categories, its quantities have their names", async () => {
  const release = await read(filesOf("first-families"));
  const { conflict } = release.posterior("carrier", { prior: "Dirichlet(9000, 1, 1)", where: { origin: "JFK" } });
  assert.match(conflict.lines[0], /count\[United\]/);
  assert.ok(conflict.quantities.includes("count[UA]"));
});

const hostile = {
  "another release": [ABOUT, { release_id: "0".repeat(16) }],
  "another manifest": [ABOUT, { manifest_sha256: "0".repeat(64) }],
  "another number": [ABOUT, { number: 2 }],
  "a forged chain": [ABOUT, { replaces: "0".repeat(64) }],
  "another format": [ABOUT, { format_version: 2 }],
  "a wrong checksum": [ABOUT, { checksum: "0".repeat(64) }],
  "a further field": [ABOUT, { more: 1 }],
  "a text that turns around": [{ title: "a\u202eb" }],
  "a control character": [{ title: "a\u001bb" }],
  "a long label": [{ title: "x".repeat(101) }],
  "an unknown key": [{ titel: "x" }],
  "an unknown statistic": [{ statistics: { none: { label: "x" } } }],
  "an unknown group": [{ keys: { none: { label: "x" } } }],
  "digits that are none": [{ statistics: { [statistics[0].name]: { digits: 1.5 } } }],
  "a list": [[]],
  "nothing": [null],
  "texts in place of mappings": [{ statistics: "x", keys: 3 }],
};

for (const [what, [about, changes]] of Object.entries(hostile)) {
  test(`refuses words with ${what}`, async () => {
    let bytes;
    try {
      bytes = worded(FILES, about, changes);
    } catch {
      bytes = encodeText(JSON.stringify({ about }));
    }
    await assert.rejects(read({ ...FILES, "about-1.json": bytes }), (error) => {
      assert.ok(error instanceof ReleaseError, String(error));
      assert.equal(error.code, "about");
      return true;
    });
  });
}

test("refuses unsigned words beside a signed release", async () => {
  const files = filesOf(SIGNED);
  const bytes = worded(files, { title: "x" });
  await assert.rejects(read({ ...files, "about-1.json": bytes }), { code: "about" });
});
