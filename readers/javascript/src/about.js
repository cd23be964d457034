/** What the owner of a release calls things: `about-N.json` beside its manifest, of which the largest N counts. */

import { encodeText, sha256 } from "./bytes.js";
import { decode, encode } from "./canonical_json.js";
import { ReleaseError } from "./errors.js";
import { checkSignature } from "./signature.js";

const ABOUT = { name: "release's description", prefix: "suffice about 1\n" };
const LARGEST = 256 * 2 ** 10;
const MOST = 99;
const LINES = { title: 100, description: 2000, licence: 300, contact: 300, source: 300, label: 100, unit: 40 };
const FIELDS = "about checksum created format_version manifest_sha256 number release_id replaces signature";
const UNSEEN = /(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * The newest words among the files; an empty object where there are none.
 *
 * @throws {ReleaseError} with the code `about`, or `signature`
 */
export async function readAbout(given, manifest, manifestBytes, publicKeys) {
  let number = 0;
  while (number < MOST && given.has(`about-${number + 1}.json`)) number += 1;
  if (number === 0) return {};
  const bytes = given.get(`about-${number}.json`);
  const before = given.get(`about-${number - 1}.json`);
  const stated = bytes instanceof Uint8Array && bytes.length <= LARGEST ? decode(bytes) : null;
  const fits =
    isMapping(stated) &&
    Object.keys(stated).sort().join(" ") === FIELDS &&
    stated.format_version === 1 &&
    stated.release_id === manifest.release_id &&
    stated.manifest_sha256 === sha256(manifestBytes) &&
    stated.number === number &&
    stated.replaces === (number === 1 ? null : sha256(before)) &&
    stated.checksum === sha256(encodeText(encode({ ...stated, checksum: null, signature: null }))) &&
    (stated.signature !== null || manifest.signature === null) &&
    areWords(stated.about, manifest);
  if (!fits) throw new ReleaseError("about", `about-${number}.json stands beside the manifest, and holds no words of this release`);
  await checkSignature(stated, publicKeys, ABOUT);
  return stated.about;
}

function areWords(about, manifest) {
  const { statistics = {}, keys = {}, ...rest } = isMapping(about) ? about : { "": null };
  const names = new Set(manifest.statistics.map(({ name }) => name));
  const stated = [manifest, ...manifest.statistics].flatMap(({ groups = [] }) => groups);
  const columns = new Set(stated.map(({ column }) => column));
  return (
    areLines(rest, ["title", "description", "licence", "contact", "source"]) &&
    every(statistics, (name, { values = {}, parameters = {}, ...words }) =>
      names.has(name) && isNumber(words) && every(values, isLabel) && every(parameters, (_, one) => isNumber(one)),
    ) &&
    every(keys, (column, { values = {}, ...words }) =>
      columns.has(column) && areLines(words, ["label", "unit", "description"]) && every(values, isLabel),
    )
  );
}

function isNumber({ digits = 0, ...words }) {
  return Number.isInteger(digits) && digits >= 0 && digits <= 12 && areLines(words, ["label", "unit", "description"]);
}

function isLabel(_, text) {
  return isLine(text, LINES.label);
}

function areLines(words, known) {
  return Object.entries(words).every(([name, text]) => known.includes(name) && isLine(text, LINES[name]));
}

function isLine(text, most) {
  return typeof text === "string" && text.trim() !== "" && [...text].length <= most && !UNSEEN.test(text);
}

function every(mapping, check) {
  return isMapping(mapping) && Object.entries(mapping).every(([name, one]) => (one ?? null) !== null && check(name, one));
}

function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
