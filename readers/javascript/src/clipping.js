/** Where counts were clipped: how far that would move a parameter, told from its posterior and the bounds. */

import { logBinomial, logPoisson } from "./special.js";

/** Posterior standard deviations of expected shift up to which clipping may be left out. */
export const NEGLIGIBLE = 0.01;

const LONGEST = 1e6;

/** What clipping at a bound takes from the mean of Poisson counts of a rate: the rate moves by as much. */
export function poissonShift(rate, upper) {
  return excess(rate, upper, (x) => logPoisson(x, rate), (x) => rate / (x + 1));
}

/** How far clipping moves a probability of success, of failures before r successes. */
export function failuresShift(probability, upper, successes) {
  const failure = 1 - probability;
  const mean = (successes * failure) / probability;
  const log = (x) =>
    x === 0
      ? successes * Math.log(probability)
      : logBinomial(x, successes + x, failure, probability) - Math.log1p(x / successes);
  const lost = excess(mean, upper, log, (x) => ((x + successes) / (x + 1)) * failure);
  return successes / (successes + mean - lost) - probability;
}

/** E(X - C)^+ of counts of a mean, by their log probabilities and the ratios of neighbouring ones. */
function excess(mean, upper, log, ratio) {
  const isLow = mean < upper;
  let x = isLow ? upper + 1 : upper - 1;
  let probability = Math.exp(log(x));
  let sum = 0;
  for (let steps = 0; steps < LONGEST && x >= 0; steps += 1) {
    const term = Math.abs(x - upper) * probability;
    sum += term;
    if (term < 1e-14 * sum || (term === 0 && steps > 100)) break;
    if (isLow) probability *= ratio(x);
    else if (x > 0) probability /= ratio(x - 1);
    x += isLow ? 1 : -1;
  }
  return isLow ? sum : mean - upper + sum;
}
