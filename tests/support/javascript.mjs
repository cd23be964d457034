// Answers questions about releases: one JSON document on standard input, one on standard output.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ReleaseError, readRelease } from "../../readers/javascript/src/index.js";

const plain = (number) => (Number.isFinite(number) ? number : String(number));

async function answer({ directory, publicKeys, questions = [] }) {
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

function ask(release, { statistic, table, options, shares = [], at = [] }) {
  try {
    if (table) return release.table(statistic, table.where);
    const started = performance.now();
    const posterior = release.posterior(statistic, options);
    const found = posterior.parameters.map((parameter) => ({
      parameter,
      mean: plain(posterior.mean(parameter)),
      sd: plain(posterior.sd(parameter)),
      quantiles: shares.map((share) => plain(posterior.quantile(share, parameter))),
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
