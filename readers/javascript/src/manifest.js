/** What a manifest of format 1 must be: its form, its checksum, and all that follows from its plan. */

import { decodeBase64, encodeText, sha256 } from "./bytes.js";
import { encode } from "./canonical_json.js";
import { coneSize } from "./cone_noise.js";
import { label, periodStart } from "./domains.js";
import { ReleaseError, shown } from "./errors.js";
import { parseRational } from "./exact.js";
import { fileSizes, valuesOfCell } from "./parquet.js";
import { derive, statisticFields } from "./plan.js";
import { groupsOf } from "./release.js";
import { isSampled } from "./samples.js";

export const LARGEST_MANIFEST = 24 * 2 ** 20;

const HEX16 = /^[0-9a-f]{16}$/;
const HEX32 = /^[0-9a-f]{32}$/;
const HEX64 = /^[0-9a-f]{64}$/;
const VERSION = /^[A-Za-z0-9.+!_-]{1,64}$/;
const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
const STATISTIC = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const MOST_AMENDMENTS = 99;

/** Fields that do not follow from the plan, and what each must be. */
const STATED = {
  format_version: (value) => value === 1,
  window: (value) => typeof value === "string",
  amends: (value) => value === null || isAmendment(value),
  release_id: isText(HEX16),
  created: isText(/^\d{4}-\d{2}-\d{2}T\d{2}Z$/),
  n: (value) => value === null || isCount(value),
  input_verified: (value) => typeof value === "boolean",
  declared_order: isMapping,
  files: Array.isArray,
  ledger_id: isText(HEX32),
  drawing_sequence: (value) => isCount(value) && value > 0,
  drawing_hash: isText(HEX64),
  versions: (value) => isMapping(value) && Object.entries(value).every((pair) => pair.every(isText(VERSION))),
  checksum: isText(HEX64),
  signature: (value) => value === null || isSignature(value),
  plan: isMapping,
  plan_hash: isText(HEX64),
  statistics: Array.isArray,
};

/** Fields that a manifest may leave out. */
const OPTIONAL = { audit: isText(HEX64), contract: isText(HEX64) };

/** Refuse a manifest that is damaged, or contradicts its plan. */
export function checkManifest(manifest) {
  if (!isMapping(manifest) || manifest.format_version !== 1) {
    throw corrupt("it is of another format than 1, which this reader reads");
  }
  if (manifest.checksum !== sha256(encodeText(encode({ ...manifest, checksum: null, signature: null })))) {
    throw corrupt("its checksum does not fit");
  }
  for (const [field, fits] of Object.entries(STATED)) {
    if (!Object.hasOwn(manifest, field) || !fits(manifest[field])) throw corrupt(`${field}: it is not what the format states there`);
  }
  for (const [field, fits] of Object.entries(OPTIONAL)) {
    if (Object.hasOwn(manifest, field) && !fits(manifest[field])) throw corrupt(`${field}: it is not what the format states there`);
  }
  const { plan } = manifest;
  if (manifest.plan_hash !== sha256(encodeText(encode(plan)))) throw differs("plan_hash");
  if (plan.format_version !== "1" || !isMapping(plan.privacy) || !isMapping(plan.groups) || !isMapping(plan.statistics)) {
    throw corrupt("plan: no spec could have this plan");
  }
  let derived;
  try {
    derived = derive(plan, manifest.declared_order);
    checkDerived(manifest, derived);
  } catch (error) {
    if (error instanceof ReleaseError) throw error;
    throw corrupt("plan: no spec could have this plan");
  }
  checkStated(manifest, derived);
}

function checkDerived(manifest, { heading, statistics }) {
  for (const [field, value] of Object.entries(heading)) same(manifest[field], value, field);
  for (const field of Object.keys(manifest)) {
    const isKnown = Object.hasOwn(STATED, field) || Object.hasOwn(OPTIONAL, field) || Object.hasOwn(heading, field);
    if (!isKnown) throw corrupt(`${shown(field)}: the format has no such field`);
  }
  if (!NAME.test(manifest.name) || !NAME.test(manifest.dataset)) throw corrupt("name: it is no name");
  if (manifest.statistics.length !== statistics.length) throw differs("statistics");
  statistics.forEach((statistic, i) => {
    const stated = manifest.statistics[i];
    const place = `statistics.${shown(statistic.name)}`;
    if (!STATISTIC.test(statistic.name) || !isMapping(stated)) throw differs(place);
    const fields = statisticFields(statistic, stated);
    for (const [field, value] of Object.entries(fields)) same(stated[field], value, `${place}.${field}`);
    if (Object.hasOwn(fields, "quantities") || isSampled(fields)) {
      for (const field of Object.keys(stated)) if (!Object.hasOwn(fields, field)) throw differs(`${place}.${shown(field)}`);
    } else checkUnknown(stated, statistic, fields, place);
  });
}

/** A statistic of a family that this reader does not compute again: it must be consistent in itself. */
function checkUnknown(stated, { terms }, fields, place) {
  for (const field of ["cells", "groups"]) if (Object.hasOwn(stated, field) !== Object.hasOwn(fields, field)) throw differs(`${place}.${field}`);
  const { components, quantities, design, partition_total: total } = stated;
  const isList = Array.isArray(components) && components.every((name) => typeof name === "string");
  if (!isList || components.length === 0 || new Set(components).size !== components.length) throw differs(`${place}.components`);
  if (!["partition_of_unity", "bounded", "minimal"].includes(design)) throw differs(`${place}.design`);
  if (!["int64", "decimal128(38, 0)"].includes(stated.value_type)) throw differs(`${place}.value_type`);
  const isOnCone = Object.hasOwn(fields, "cone_noise");
  if (isOnCone && (components.length !== coneSize(fields.cone_noise) || total !== null)) throw differs(`${place}.components`);
  for (const field of ["scale", "l1_sensitivity", "l2_squared"]) if (isOnCone && Object.hasOwn(stated, field)) throw differs(`${place}.${field}`);
  if (!isOnCone && Object.hasOwn(stated, "cone_noise")) throw differs(`${place}.cone_noise`);
  if (total !== null && design !== "partition_of_unity") throw differs(`${place}.partition_total`);
  if (design === "minimal" && !terms.mayBeMinimal) throw differs(`${place}.design`);
  if (total !== null) {
    const size = parseRational(total);
    if (size === null || size.d !== 1n || size.n < 1n) throw differs(`${place}.partition_total`);
    // What a record adds over all components is the least that its unit can cost.
    if (size.n * (terms.replaces ? 2n : 1n) > BigInt(stated.l1_sensitivity)) throw differs(`${place}.l1_sensitivity`);
  }
  const isMap = (map) =>
    isMapping(map) &&
    isMapping(map.coefficients) &&
    typeof map.name === "string" &&
    parseRational(map.public_n_coefficient) !== null &&
    Object.entries(map.coefficients).every(([name, text]) => components.includes(name) && parseRational(text) !== null);
  if (!Array.isArray(quantities) || !quantities.every(isMap)) throw differs(`${place}.quantities`);
  if (!isMapping(stated.parameters)) throw differs(`${place}.parameters`);
}

function checkStated(manifest, { heading }) {
  const { plan, window, amends, files, statistics } = manifest;
  const { every } = plan.window ?? {};
  const start = every === undefined ? null : periodStart(window, every);
  if (plan.window === null ? window !== "all" : start === null || label(start, every) !== window) {
    throw corrupt("window: the plan has no such window");
  }
  if (amends !== null && plan.window === null) throw corrupt("amends: the plan has no windows, so that none is amended");
  if (amends?.release_id === manifest.release_id) throw corrupt("amends: no release replaces itself");
  const isPublic = statistics.some(({ design }) => design === "minimal");
  if ((manifest.n !== null) !== isPublic) throw corrupt("n: it is stated exactly where the plan makes it public");
  const { variables, ...order } = manifest.declared_order;
  if (Object.keys(order).length !== 2 || !Array.isArray(variables)) throw differs("declared_order");
  if (files.length !== statistics.length) throw differs("files");
  files.forEach((file, i) => {
    const statistic = statistics[i];
    const place = `files.${i}`;
    const isFile = isMapping(file) && Object.keys(file).length === 5 && isCount(file.size) && isText(HEX64)(file.sha256);
    if (!isFile) throw corrupt(`${place}: it is not what the format states there`);
    same(file.statistic, statistic.name, `${place}.statistic`);
    same(file.path, `${statistic.name}.parquet`, `${place}.path`);
    same(file.rows, (statistic.cells ?? heading.cells) * valuesOfCell(statistic), `${place}.rows`);
    const [least, greatest] = fileSizes(statistic, groupsOf(statistic.groups ?? manifest.groups));
    if (file.size < least || file.size > greatest) throw corrupt(`${place}.size: no file of this plan has that size`);
  });
}

/** Refuse files that are not those of the manifest; nothing of them is parsed before its hash is right. */
export function checkFiles(manifest, files, wanted) {
  for (const file of manifest.files) {
    if (!wanted.has(file.statistic)) continue;
    const data = files.get(file.path);
    const name = shown(file.path);
    if (!(data instanceof Uint8Array)) throw new ReleaseError("file", `the file ${name} is missing`);
    if (data.length !== file.size) throw new ReleaseError("file", `the file ${name} has another size than the manifest states`);
    if (sha256(data) !== file.sha256) {
      throw new ReleaseError("file", `the file ${name} is not the one of the manifest: its SHA-256 differs`);
    }
  }
}

function same(found, expected, place) {
  if (found === undefined || encode(found) !== encode(expected)) throw differs(place);
}

function isText(pattern) {
  return (value) => typeof value === "string" && pattern.test(value);
}

function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

function isAmendment(value) {
  const { number, release_id: id, manifest_sha256: hash } = value;
  return Object.keys(value).length === 3 && number >= 1 && number <= MOST_AMENDMENTS && HEX16.test(id) && HEX64.test(hash);
}

function isSignature(value) {
  const { algorithm, key_id: id, value: text } = value;
  return Object.keys(value).length === 3 && algorithm === "ed25519" && HEX16.test(id) && decodeBase64(text)?.length === 64;
}

function differs(place) {
  return corrupt(`${place}: it contradicts the plan that was charged, or the format`);
}

function corrupt(rule) {
  return new ReleaseError("manifest", `the manifest is corrupt: ${rule}`);
}
