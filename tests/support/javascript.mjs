// Answers questions about releases: one JSON document on standard input, one on standard output.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { decode } from "../../readers/javascript/src/canonical_json.js";
import { checkManifest } from "../../readers/javascript/src/manifest.js";
import { ReleaseError, readPublication, readRelease } from "../../readers/javascript/src/index.js";

const plain = (number) => (Number.isFinite(number) ? number : String(number));

function judge(manifest) {
  try {
    const content = decode(new Uint8Array(Buffer.from(manifest, "base64")));
    if (content === null) return { code: "manifest", message: "not canonical" };
    checkManifest(content);
    return { code: null };
  } catch (error) {
    if (!(error instanceof ReleaseError)) return { code: "crash", message: String(error) };
    return { code: error.code, message: error.message };
  }
}

/** A folder's manifest and its other files. */
function filesOf(directory) {
  const { "manifest.json": manifest, ...files } = Object.fromEntries(
    readdirSync(directory).map((name) => [name, new Uint8Array(readFileSync(join(directory, name)))]),
  );
  return [manifest, files];
}

// JSON has no place for these numbers.
const listed = (values) =>
  Array.from(values, (value) => (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value));

/** What a published likelihood says of cells under priors. */
function ofLikelihood(publication, { name, questions }) {
  const likelihood = publication.likelihood(name);
  const answers = questions.map(({ where, prior, values, mass }) => {
    const cell = likelihood.cell(where);
    const logs = values.map((value) => plain(likelihood.logProb(cell, value)));
    try {
      const posterior = likelihood.posterior(where, prior);
      return { logs, mean: posterior.mean(), sd: posterior.sd(), interval: posterior.interval(mass, undefined, "central") };
    } catch (error) {
      if (!(error instanceof ReleaseError)) throw error;
      return { logs, code: error.code, message: error.message };
    }
  });
  return { cells: likelihood.cells, answers };
}

async function published(directory, { likelihood, pooled, ...options } = {}) {
  const found = await readPublication(...filesOf(directory), options);
  if (likelihood) return ofLikelihood(found, likelihood);
  if (pooled) return found.pooled();
  const summaries = found.names.map((name) => {
    const rows = found.summaries(name);
    return [name, Object.fromEntries(Object.keys(rows[0] ?? {}).map((column) => [column, listed(rows.map((row) => row[column]))]))];
  });
  const drawn = found.tables("draws").map(({ of }) => of);
  const draws = [...new Set(drawn)].map((name) => [
    name,
    Object.fromEntries(
      Object.entries(found.draws(name)).map(([column, values]) => [column, { kind: values.constructor.name, values: listed(values) }]),
    ),
  ]);
  return {
    signature: found.signatureStatus,
    publicationId: found.publicationId,
    sizes: Object.fromEntries((options?.names ?? found.files.map(({ name }) => name)).map((name) => [name, found.read(name).length])),
    summaries: Object.fromEntries(summaries),
    draws: Object.fromEntries(draws),
  };
}

async function answer({ directory, publication, options, manifests, publicKeys, questions = [] }) {
  if (manifests) return manifests.map(judge);
  try {
    if (publication) return await published(publication, options);
    const release = await readRelease(...filesOf(directory), { publicKeys });
    return { signature: release.signatureStatus, answers: questions.map((question) => ask(release, question)) };
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function ask(release, { statistic, table, options, shares = [], at = [], below = [] }) {
  try {
    if (table) return release.table(statistic, table.where);
    const started = performance.now();
    const posterior = release.posterior(statistic, options);
    const found = posterior.parameters.map((parameter) => ({
      parameter,
      mean: plain(posterior.mean(parameter)),
      sd: plain(posterior.sd(parameter)),
      quantiles: shares.map((share) => plain(posterior.quantile(share, parameter))),
      below: below.map((value) => posterior.probabilityBelow(value, parameter)),
      densities: [...posterior.density(parameter, at)],
      priorDensities: [...posterior.priorDensity(parameter, at)],
    }));
    const { prior, nPrior, method, warnings } = posterior;
    return { prior, nPrior, method, warnings, found, milliseconds: performance.now() - started };
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    return { code: error.code, message: error.message };
  }
}

const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const one of asked) answers.push(await answer(one));
process.stdout.write(JSON.stringify(answers));
