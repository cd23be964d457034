/** Publications: posteriors that were computed once, and stand beside the releases for everyone. */

import { decodeBase64, encodeText, sha256 } from "./bytes.js";
import { decode, encode } from "./canonical_json.js";
import { ReleaseError, shown } from "./errors.js";
import { PublishedLikelihood } from "./published_likelihood.js";
import { readTable } from "./published_table.js";
import { PUBLICATION, checkSignature } from "./signature.js";

const LARGEST_MANIFEST = 4 * 2 ** 20;
const LARGEST_FILE = 2 ** 30;
const MOST_FILES = 10_000;
const MOST_RELEASES = 1000;

const isMapping = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (pattern) => (value) => typeof value === "string" && pattern.test(value);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isMapOf = (key, entry) => (value) => isMapping(value) && Object.entries(value).every(([k, v]) => key(k) && entry(v));
const hasOnly = (value, fields) =>
  isMapping(value) &&
  Object.keys(value).length === Object.keys(fields).length &&
  Object.entries(fields).every(([field, fits]) => Object.hasOwn(value, field) && fits(value[field]));

const isHex16 = isText(/^[0-9a-f]{16}$/);
const isHex64 = isText(/^[0-9a-f]{64}$/);
const isVersion = isText(/^[A-Za-z0-9.+!_-]{1,64}$/);
const isName = isText(/^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,99}$/);
const isLine = isText(/^[^\u0000-\u001f\u007f\u2028\u2029]{1,300}$/u);
const isDiagnostic = isText(/^[^]{0,300}$/u);

const SIGNATURE = {
  algorithm: (value) => value === "ed25519",
  key_id: isHex16,
  value: (value) => decodeBase64(value)?.length === 64,
};
const FILE = {
  name: isName,
  path: (value) => typeof value === "string",
  role: isText(/^(summaries|draws|card|part|likelihood)$/),
  format: isText(/^[a-z0-9]{1,16}$/),
  size: (value) => isCount(value) && value > 0 && value <= LARGEST_FILE,
  sha256: isHex64,
  rows: (value) => value === null || isCount(value),
};
const RESTS_ON = { release_id: isHex16, manifest_sha256: isHex64, label: isLine };
const isDecimal = isText(/^[0-9]{1,20}(\.[0-9]{1,20})?$/);
const MANIFEST = {
  format_version: (value) => value === 1,
  publication_id: isText(/^[0-9a-f]{32}$/),
  request: isRequest,
  title: isLine,
  created: isText(/^\d{4}-\d{2}-\d{2}T\d{2}Z$/),
  epsilon: isMapOf(isHex16, isDecimal),
  cost: (value) => value === "0",
  diagnostics: isMapOf(isDiagnostic, isMapOf(isDiagnostic, isDiagnostic)),
  files: (value) => Array.isArray(value) && value.length > 0 && value.length <= MOST_FILES && value.every((file) => hasOnly(file, FILE)),
  versions: isMapOf(isVersion, isVersion),
  checksum: isHex64,
  signature: (value) => value === null || hasOnly(value, SIGNATURE),
};

function isRequest(value) {
  if (!isMapping(value) || !isCount(value.algorithm) || value.algorithm < 1) return false;
  const { kind, releases } = value;
  const isList = Array.isArray(releases) && releases.length > 0 && releases.length <= MOST_RELEASES;
  return isText(/^[a-z][a-z0-9_]{0,39}$/)(kind) && isList && releases.every((release) => hasOnly(release, RESTS_ON));
}

/**
 * Read a publication, and check all that can be checked of it.
 *
 * @param {Uint8Array} manifestBytes
 * @param {Record<string, Uint8Array> | Map<string, Uint8Array>} files By their path in the publication's folder.
 * @param {{publicKeys?: string[], publicationId?: string, names?: string[]}} [options] Public keys of publications, in
 *   PEM or base64 of 32 bytes, one of which must have signed; the id that was asked for, as the folder is called; the
 *   names of the files that are read and checked, by default all.
 * @returns {Promise<Publication>}
 * @throws {ReleaseError}
 */
export async function readPublication(manifestBytes, files, { publicKeys, publicationId, names } = {}) {
  if (!(manifestBytes instanceof Uint8Array) || manifestBytes.length > LARGEST_MANIFEST) {
    throw corrupt(`it has more than ${LARGEST_MANIFEST} bytes, or is none`);
  }
  const manifest = decode(manifestBytes);
  if (manifest === null) throw corrupt("it is not in canonical form");
  checkManifest(manifest);
  if (publicationId !== undefined && publicationId !== manifest.publication_id) {
    throw corrupt("publication_id: it is another publication than the one asked for");
  }
  const status = await checkSignature(manifest, publicKeys, PUBLICATION);
  const given = files instanceof Map ? files : new Map(Object.entries(files));
  const wanted = new Set(names ?? manifest.files.map(({ name }) => name));
  for (const name of wanted) {
    if (!manifest.files.some((file) => file.name === name)) throw new ReleaseError("usage", `the publication has no file ${shown(name)}`);
  }
  const read = new Map();
  for (const file of manifest.files) if (wanted.has(file.name)) read.set(file.name, checked(file, given.get(file.path)));
  return new Publication(manifest, read, status);
}

function checkManifest(manifest) {
  if (!isMapping(manifest) || manifest.format_version !== 1) throw corrupt("it is of another format than 1, which this reader reads");
  if (manifest.checksum !== sha256(encodeText(encode({ ...manifest, checksum: null, signature: null })))) {
    throw corrupt("its checksum does not fit");
  }
  for (const [field, fits] of Object.entries(MANIFEST)) {
    if (!Object.hasOwn(manifest, field) || !fits(manifest[field])) throw corrupt(`${field}: it is not what the format states there`);
  }
  for (const field of Object.keys(manifest)) {
    if (!Object.hasOwn(MANIFEST, field) && field !== "rho") throw corrupt(`${shown(field)}: the format has no such field`);
  }
  const { request, files, epsilon, rho = {} } = manifest;
  if (Object.hasOwn(manifest, "rho") && !(isMapOf(isHex16, isDecimal)(rho) && Object.keys(rho).length > 0)) {
    throw corrupt("rho: it is not what the format states there");
  }
  if (manifest.publication_id !== sha256(encodeText(encode(request))).slice(0, 32)) {
    throw corrupt("publication_id: it is not the hash of its request");
  }
  if (files.some((file) => file.path !== `${file.sha256.slice(0, 32)}-${file.name}`)) {
    throw corrupt("files: a path is not the beginning of the SHA-256, a dash and the name");
  }
  if (new Set(files.map(({ name }) => name)).size < files.length) throw corrupt("files: two have one name");
  const releases = new Set(request.releases.map(({ release_id: id }) => id));
  const paid = [...Object.keys(epsilon), ...Object.keys(rho)];
  if (releases.size !== paid.length || new Set(paid).size < paid.length || !paid.every((id) => releases.has(id))) {
    throw corrupt("epsilon: it or rho is not stated for each release that the request names");
  }
}

function checked(file, data) {
  const name = shown(file.path);
  if (!(data instanceof Uint8Array)) throw new ReleaseError("file", `the file ${name} is missing`);
  if (data.length !== file.size) throw new ReleaseError("file", `the file ${name} has another size than the manifest states`);
  if (sha256(data) !== file.sha256) {
    throw new ReleaseError("file", `the file ${name} is not the one of the manifest: its SHA-256 differs`);
  }
  return data;
}

/** A checked publication; made by `readPublication`. */
export class Publication {
  constructor(manifest, read, signatureStatus) {
    this.manifest = manifest;
    this.signatureStatus = signatureStatus;
    this.data = read;
  }

  get publicationId() {
    return this.manifest.publication_id;
  }

  get title() {
    return this.manifest.title;
  }

  /** What was asked for: releases, statistics, priors, method, seed. */
  get request() {
    return this.manifest.request;
  }

  /** The files, in the manifest's order. */
  get files() {
    return this.manifest.files;
  }

  /** What summaries and draws are of: statistics, or a model of one. */
  get names() {
    return [...new Set(this.tables("summaries").map(({ of }) => of))];
  }

  /** The bytes of a file, by its name: of a card, or of another format. */
  read(name) {
    if (!this.files.some((file) => file.name === name)) throw new ReleaseError("usage", `the publication has no file ${shown(name)}`);
    if (!this.data.has(name)) throw new ReleaseError("usage", `${shown(name)} was not read: name it in names`);
    return this.data.get(name);
  }

  /**
   * Summaries: one object for each cell, parameter and entry of it, with its keys and numbers.
   *
   * @param {string} [name] As in `names`; may be left out where there is one.
   */
  summaries(name) {
    const { rows, columns } = this.table("summaries", name);
    return Array.from({ length: rows }, (_, i) => {
      const row = Object.create(null);
      for (const [column, values] of Object.entries(columns)) row[column] = values[i];
      return row;
    });
  }

  /**
   * Draws: an object of columns, of texts and of `Float64Array`; row i of every column is one draw of one parameter.
   *
   * @param {string} [name] As in `names`; may be left out where there is one.
   */
  draws(name) {
    return this.table("draws", name).columns;
  }

  /**
   * Pooled cells: what each is together and alone, the populations that they come from, and covariates.
   *
   * @param {string} [name] The statistic; may be left out where there is one.
   * @returns {{cells: object[], populations: object[], coefficients: object[]}}
   */
  pooled(name) {
    const pools = this.names.filter((of) => of.endsWith("-pools")).map((of) => of.slice(0, -"-pools".length));
    const wanted = name ?? pools[0];
    if (!pools.includes(wanted)) throw new ReleaseError("statistic", `${shown(String(name ?? "this"))}: no pooled cells were published of it`);
    if (name === undefined && pools.length > 1) throw new ReleaseError("statistic", `say of which statistic: ${pools.map(shown).join(", ")}`);
    const numbers = (row, before) => {
      const of = ["mean", "sd", "lower", "upper"].map((number) => [number, row[`${before}${number}`]]);
      return Object.fromEntries(of);
    };
    const isKey = (column) => !/^(parameter|own_share|outside|(alone_)?(mean|sd|lower|upper))$/.test(column);
    const cells = this.summaries(wanted).map((row) => ({
      keys: Object.fromEntries(Object.entries(row).filter(([column]) => isKey(column))),
      parameter: row.parameter,
      ...numbers(row, ""),
      alone: numbers(row, "alone_"),
      ownShare: row.own_share,
      outside: row.outside,
    }));
    const coefficients = this.names.includes(`${wanted}-coefficients`) ? this.summaries(`${wanted}-coefficients`) : [];
    return { cells, populations: this.summaries(`${wanted}-pools`), coefficients };
  }

  /**
   * The likelihood of one parameter, to which any prior is put.
   *
   * @param {string} [name] The statistic; may be left out where there is one.
   */
  likelihood(name) {
    return new PublishedLikelihood(this.table("likelihood", name));
  }

  /** Parquet files that hold summaries or draws, in order, and what they are of. */
  tables(what) {
    const found = [];
    for (const file of this.files) {
      if (file.format !== "parquet") continue;
      const stem = file.name.replace(/\.parquet$/, "");
      const part = file.role === "part" ? new RegExp(`^(.+)-${what}-(\\d{5,})$`).exec(stem) : null;
      if (part) found.push({ of: part[1], number: Number(part[2]), file });
      else if (file.role === what) found.push({ of: stem.endsWith(`-${what}`) ? stem.slice(0, -what.length - 1) : stem, number: 0, file });
    }
    return found.sort((first, second) => first.number - second.number);
  }

  table(what, name) {
    const all = this.tables(what);
    const known = [...new Set(all.map(({ of }) => of))];
    const choice = known.slice(0, 8).map(shown).join(", ");
    if (known.length === 0) throw new ReleaseError("usage", `the publication has no ${what} as Parquet: read(name) gives its other files`);
    if (name === undefined && known.length > 1) throw new ReleaseError("statistic", `say of what ${what} are wanted: there are ${choice}`);
    const wanted = name ?? known[0];
    if (!known.includes(wanted)) throw new ReleaseError("statistic", `there are no ${what} of ${shown(wanted)}: there are ${choice}`);
    return joined(all.filter(({ of }) => of === wanted).map(({ file }) => this.parsed(file)));
  }

  parsed(file) {
    const refuse = (rule) => {
      throw new ReleaseError("file", `the file ${shown(file.name)} is corrupt: ${rule}`);
    };
    const found = readTable(this.read(file.name), refuse);
    if (found.rows !== file.rows) refuse("it has other rows than the manifest states");
    return found;
  }
}

/** Tables one below the other. */
function joined(tables) {
  const columns = Object.create(null);
  for (const name of tables[0].columns.keys()) {
    const parts = tables.map((table) => table.columns.get(name));
    if (tables.some((table) => table.columns.size !== tables[0].columns.size) || parts.includes(undefined)) {
      throw new ReleaseError("file", "the publication is corrupt: its parts have different columns");
    }
    columns[name] = parts.length === 1 ? parts[0] : stacked(parts);
  }
  return { rows: tables.reduce((sum, { rows }) => sum + rows, 0), columns };
}

function stacked(parts) {
  const whole = new (parts.every((part) => part instanceof Float64Array) ? Float64Array : Array)(
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let at = 0;
  for (const part of parts) for (let i = 0; i < part.length; i += 1, at += 1) whole[at] = part[i];
  return whole;
}

function corrupt(rule) {
  return new ReleaseError("manifest", `the manifest of the publication is corrupt: ${rule}`);
}
