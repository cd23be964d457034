/**
 * Laws of the counts of leaves: Poisson behind gamma rates of mean m and coefficient of variation s, which is negative
 * binomial with the shape a = 1 / s^2; 5 % of them outliers of the law m / ((n + m)(n + m + 1)), or none; or weights
 * 1 / (n + 1). Public hyperpriors: log m is logistic about log 30 with scale 3, s half-normal with standard deviation
 * 2. A point is [log m, log s].
 */

import { ReleaseError, shown } from "../errors.js";
import { logGamma } from "../special.js";

export const DEFAULT_POPULATION = "contaminated";
const OUTLIERS = 0.05;
const [MIDDLE, SCALE, SPREAD] = [Math.log(30), 3, 2];
/** Below it a negative binomial law is Poisson in all digits of what it is used for. */
const LEAST_SPREAD = 1e-3;

const POPULATIONS = {
  contaminated: { hasHyperparameters: true, logWeights: (low, width, point, size) => contaminated(low, width, point, size) },
  "negative-binomial": { hasHyperparameters: true, logWeights: (low, width, point, size) => negativeBinomial(low, width, point, size) },
  reciprocal: { hasHyperparameters: false, logWeights: (low, width) => Float64Array.from({ length: width }, (_, i) => -Math.log1p(low + i)) },
};

/** The population of a name: `logWeights(low, width, point, size)` from a count on. */
export function namedPopulation(name) {
  const names = Object.keys(POPULATIONS).join(", ");
  if (name === "flat") {
    throw new ReleaseError("prior", `a flat prior on leaves puts nearly all weight on large sums, and is not offered: take one of ${names}`);
  }
  if (!Object.hasOwn(POPULATIONS, name)) throw new ReleaseError("prior", `there is no population of leaves ${shown(name)}: take one of ${names}`);
  return { name, ...POPULATIONS[name] };
}

/** The log density of a point. */
export function logHyperprior([logMean, logSpread]) {
  if (logSpread > 100) return -Infinity;
  const z = Math.abs(logMean - MIDDLE) / SCALE;
  const logistic = -z - 2 * Math.log1p(Math.exp(-z)) - Math.log(SCALE);
  const halfNormal = 0.5 * Math.log(2 / Math.PI) - Math.log(SPREAD) - 0.5 * (Math.exp(logSpread) / SPREAD) ** 2;
  return logistic + halfNormal + logSpread;
}

function negativeBinomial(low, width, [logMean, logSpread], size) {
  const mean = Math.exp(logMean) * size;
  const a = Math.max(Math.exp(logSpread), LEAST_SPREAD) ** -2;
  const found = new Float64Array(width);
  // The ratio of one count's weight to that of the one before is (n - 1 + a) / n times m / (m + a).
  const fall = Math.log1p(a / mean);
  let log = -a * Math.log1p(mean / a);
  if (low > 0) log += logGamma(low + a) - logGamma(a) - logGamma(low + 1) - low * fall;
  for (let i = 0; i < width; i += 1) {
    found[i] = log;
    log += Math.log((low + i + a) / (low + i + 1)) - fall;
  }
  return found;
}

function contaminated(low, width, point, size) {
  const found = negativeBinomial(low, width, point, size);
  const mean = Math.exp(point[0]) * size;
  const [ofUsual, ofOutliers] = [Math.log1p(-OUTLIERS), Math.log(OUTLIERS * mean)];
  for (let i = 0; i < width; i += 1) {
    const outlying = ofOutliers - Math.log((low + i + mean) * (low + i + mean + 1));
    const usual = ofUsual + found[i];
    found[i] = Math.max(usual, outlying) + Math.log1p(Math.exp(-Math.abs(usual - outlying)));
  }
  return found;
}
