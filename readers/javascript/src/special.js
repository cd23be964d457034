/** Special functions, accurate where counts are large: no two large log gammas are ever subtracted. */

const HALF_LOG_TWO_PI = 0.918938533204672741780329736406;
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** Log of the gamma function, of a number above 0. */
export function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  if (x > 15) return (x - 0.5) * Math.log(x) - x + HALF_LOG_TWO_PI + stirlingSeries(x);
  let sum = LANCZOS[0];
  for (let i = 1; i < 9; i += 1) sum += LANCZOS[i] / (x - 1 + i);
  const t = x + 6.5;
  return HALF_LOG_TWO_PI + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

function stirlingSeries(x) {
  const y = 1 / (x * x);
  return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - (y * 691) / 360360))))) / x;
}

/** log x! less Stirling's formula for it, of x > 0. */
export function stirlingError(x) {
  if (x > 15) return stirlingSeries(x);
  return logGamma(x + 1) - (x + 0.5) * Math.log(x) + x - HALF_LOG_TWO_PI;
}

/** x log(x / m) + m - x: half the deviance of x from m, accurate where both are close. */
export function deviance(x, m) {
  const difference = x - m;
  if (Math.abs(difference) < 0.1 * (x + m)) {
    const v = difference / (x + m);
    const square = v * v;
    let power = 2 * x * v * square;
    let sum = difference * v;
    for (let odd = 3; odd < 2000; odd += 2) {
      const next = sum + power / odd;
      if (next === sum) return next;
      sum = next;
      power *= square;
    }
  }
  return x * Math.log(x / m) + m - x;
}

/** Log of m^x e^-m / Gamma(x + 1), of x >= 0 and m > 0: a Poisson probability where x is whole. */
export function logPoisson(x, m) {
  if (x === 0) return -m;
  return -stirlingError(x) - deviance(x, m) - 0.5 * Math.log(x) - HALF_LOG_TWO_PI;
}

/** Log of the binomial probability of x among n; p and q = 1 - p are given both, x need not be whole. */
export function logBinomial(x, n, p, q) {
  const rest = n - x;
  if (x <= 0) return x < 0 ? -Infinity : p < 0.1 ? n * Math.log1p(-p) : n * Math.log(q);
  if (rest <= 0) return rest < 0 ? -Infinity : q < 0.1 ? n * Math.log1p(-q) : n * Math.log(p);
  return (
    stirlingError(n) -
    stirlingError(x) -
    stirlingError(rest) -
    deviance(x, n * p) -
    deviance(rest, n * q) +
    0.5 * Math.log(n / (x * rest)) -
    HALF_LOG_TWO_PI
  );
}

/** Log of the beta function. */
export function logBeta(a, b) {
  const small = Math.min(a, b);
  const large = Math.max(a, b);
  if (large < 15) return logGamma(a) + logGamma(b) - logGamma(a + b);
  // Gamma(large) / Gamma(large + small), by Stirling's differences.
  const ratio =
    stirlingSeries(large) -
    stirlingSeries(large + small) -
    (large - 0.5) * Math.log1p(small / large) -
    small * Math.log(large + small) +
    small;
  return logGamma(small) + ratio;
}

/** 1 + 1/2 + ... + 1/n, n >= 0. */
export function harmonic(n) {
  if (n < 64) {
    let sum = 0;
    for (let i = 1; i <= n; i += 1) sum += 1 / i;
    return sum;
  }
  const y = 1 / (n * n);
  return Math.log(n) + 0.577215664901532860607 + 1 / (2 * n) - y * (1 / 12 - y * (1 / 120 - y / 252));
}
