/**
 * Laws of the counts of leaves: Poisson behind gamma rates of mean m and coefficient of variation s, which is negative
 * binomial with the shape a = 1 / s^2; 5 % of them outliers of the law m / ((n + m)(n + m + 1)), or none; beside, a share e
 * of leaves that are empty whatever their rate, or none; or weights 1 / (n + 1). Public hyperpriors: log m is logistic
 * about log 30 with scale 3, s half-normal with standard deviation 2, e even on (0, 1). A point is [log m, log s], with
 * the logit of e where there is one.
 */

import { ReleaseError, shown } from "../errors.js";
import { logGamma } from "../special.js";

export const DEFAULT_POPULATION = "contaminated";
export const ZERO_INFLATED = "zero-inflated";
export const RECIPROCAL = "reciprocal";
const OUTLIERS = 0.05;
const [MIDDLE, SCALE, SPREAD] = [Math.log(30), 3, 2];
/** Below it a negative binomial law is Poisson in all digits of what it is used for. */
const LEAST_SPREAD = 1e-3;

/** By name: how many hyperparameters there are, and log weights of counts from `low` on. */
const POPULATIONS = {
  contaminated: { dimensions: 2, logWeights: contaminated },
  [ZERO_INFLATED]: { dimensions: 3, logWeights: zeroInflated },
  "negative-binomial": { dimensions: 2, logWeights: negativeBinomial },
  [RECIPROCAL]: { dimensions: 0, logWeights: (low, width) => Float64Array.from({ length: width }, (_, i) => -Math.log1p(low + i)) },
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
export function logHyperprior([logMean, logSpread, logit]) {
  if (logSpread > 100) return -Infinity;
  const z = Math.abs(logMean - MIDDLE) / SCALE;
  const logistic = -z - 2 * Math.log1p(Math.exp(-z)) - Math.log(SCALE);
  const halfNormal = 0.5 * Math.log(2 / Math.PI) - Math.log(SPREAD) - 0.5 * (Math.exp(logSpread) / SPREAD) ** 2;
  // An even share has a logistic logit.
  const ofShare = logit === undefined ? 0 : logShare(logit) + logShare(-logit);
  return logistic + halfNormal + logSpread + ofShare;
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

function zeroInflated(low, width, point, size) {
  const found = contaminated(low, width, point, size);
  const [ofEmpty, ofOthers] = [logShare(point[2]), logShare(-point[2])];
  for (let i = 0; i < width; i += 1) found[i] += ofOthers;
  if (low === 0) found[0] = Math.max(ofEmpty, found[0]) + Math.log1p(Math.exp(-Math.abs(ofEmpty - found[0])));
  return found;
}

/** The logarithm of a share, given its logit. */
function logShare(logit) {
  return logit > 0 ? -Math.log1p(Math.exp(-logit)) : logit - Math.log1p(Math.exp(logit));
}
