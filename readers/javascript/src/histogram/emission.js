/**
 * The chance of a noisy count given the mean of the Poisson count below the noise, in closed form, as in Python: both
 * sides of the released value y are a sum of another Poisson law. With r = 1 / b the noise has the chance
 * tanh(r / 2) e^(-r |y - k|), and
 *
 *   A(m) = tanh(r / 2) [ e^(-r y + m (e^r - 1)) P(Poisson(m e^r) <= y) + e^(r y + m (e^-r - 1)) P(Poisson(m e^-r) > y) ].
 */

import { logPoisson } from "../special.js";

const LAST = 1e-17;

/** The log chance of a released value, whole and maybe negative, given a mean above 0. */
export function logEmission(mean, y, rate) {
  const constant = Math.log(Math.tanh(rate / 2));
  const above = constant + rate * y + logAbove(mean, -rate, y);
  if (y < 0) return above;
  const below = constant - rate * y + logBelow(mean, rate, y);
  const high = Math.max(above, below);
  return high + Math.log1p(Math.exp(-Math.abs(above - below)));
}

/** The log chance where there are no records. */
export function logEmissionOfNone(y, rate) {
  return Math.log(Math.tanh(rate / 2)) - rate * Math.abs(y);
}

/** Log of the sum over k <= n of Poisson(k | m) e^(slope k). */
function logBelow(mean, slope, n) {
  const rate = mean * Math.exp(slope);
  // The largest term is at the end: a sum of ratios that fall.
  if (n < rate) return logPoisson(n, mean) + slope * n + Math.log(sumDown(n, rate));
  return mean * Math.expm1(slope) + Math.log1p(-Math.exp(logPoisson(n + 1, rate)) * sumUp(n + 1, rate));
}

/** The same over k > n. */
function logAbove(mean, slope, y) {
  const n = Math.max(y, -1);
  const rate = mean * Math.exp(slope);
  if (n + 1 > rate) return logPoisson(n + 1, mean) + slope * (n + 1) + Math.log(sumUp(n + 1, rate));
  const rest = n < 0 ? 0 : Math.exp(logPoisson(n, rate)) * sumDown(n, rate);
  return mean * Math.expm1(slope) + Math.log1p(-rest);
}

/** 1 + n / rate + n (n - 1) / rate^2 + ...: the terms up to n of a Poisson law, in units of the last. */
function sumDown(n, rate) {
  let [term, total] = [1, 1];
  for (let i = n; i > 0 && term > LAST * total; i -= 1) {
    term *= i / rate;
    total += term;
  }
  return total;
}

/** The same of the terms from n on, in units of the first. */
function sumUp(n, rate) {
  let [term, total] = [1, 1];
  for (let i = n + 1; term > LAST * total; i += 1) {
    term *= rate / i;
    total += term;
  }
  return total;
}

/**
 * Draw the count below the noise given its mean: from its largest term outward, by ratios of neighbours.
 *
 * @param {number} uniform From 0 to 1, below 1.
 */
export function countGiven(mean, y, rate, uniform) {
  if (!(mean > 0)) return 0;
  // Terms rise by m e^r / k up to y, and by m e^-r / k beyond.
  const [up, down] = [mean * Math.exp(rate), mean * Math.exp(-rate)];
  const ratio = (k) => (k <= y ? up : down) / k;
  let mode = Math.floor(down);
  if (mode < y) mode = Math.min(Math.floor(up), Math.max(Math.floor(y), 0));
  const above = [];
  const below = [];
  let total = 1;
  for (let k = mode + 1, term = 1; ; k += 1) {
    term *= ratio(k);
    if (!(term > LAST * total)) break;
    above.push(term);
    total += term;
  }
  for (let k = mode, term = 1; k > 0; k -= 1) {
    term /= ratio(k);
    if (!(term > LAST * total)) break;
    below.push(term);
    total += term;
  }
  let left = uniform * total - 1;
  if (left < 0) return mode;
  for (let i = 0; i < above.length; i += 1) {
    left -= above[i];
    if (left < 0) return mode + 1 + i;
  }
  for (let i = 0; i < below.length; i += 1) {
    left -= below[i];
    if (left < 0) return mode - 1 - i;
  }
  return mode;
}
