// Answers questions about releases: one JSON document on standard input, one on standard output.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { decode } from "../../readers/javascript/src/canonical_json.js";
import { checkManifest } from "../../readers/javascript/src/manifest.js";
import { ReleaseError, readRelease } from "../../readers/javascript/src/index.js";

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

async function answer({ directory, manifests, publicKeys, questions = [] }) {
  if (manifests) return manifests.map(judge);
  const files = {};
  let manifest;
  for (const name of readdirSync(directory)) {
    const bytes = new Uint8Array(readFileSync(join(directory, name)));
    if (name === "manifest.json") manifest = bytes;
    else files[name] = bytes;
  }
  try {
    const release = await readRelease(manifest, files, { publicKeys });
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
