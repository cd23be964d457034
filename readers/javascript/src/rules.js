/** Rules that integrate, or sum over integers, by a few values; and what they say of their own accuracy. */

/**
 * Orthonormal polynomials 0..m-1 at y in -1..1: Legendre's, or Gram's over n equally spaced points there
 * (y = 2 (i + 1/2) / n - 1), which are orthonormal for the mean over these points.
 */
function polynomials(m, n, y) {
  const values = new Float64Array(m + 1);
  values[0] = 1;
  let before = 0;
  for (let k = 0; k < m; k += 1) {
    const next = root(k + 1, n);
    values[k + 1] = (y * values[k] - before * (k ? values[k - 1] : 0)) / next;
    before = next;
  }
  return values;
}

function root(k, n) {
  const finite = n === Infinity ? 1 : 1 - (k * k) / (n * n);
  return Math.sqrt((k * k * finite) / (4 * k * k - 1));
}

const gaussRules = new Map();

/** The rule of m nodes of Gauss and Legendre on -1..1, and its polynomials at the nodes. */
export function gauss(m) {
  if (!gaussRules.has(m)) {
    const nodes = new Float64Array(m);
    for (let i = 0; i < m; i += 1) {
      let y = -Math.cos((Math.PI * (i + 0.75)) / (m + 0.5));
      for (let step = 0; step < 50; step += 1) {
        let [p, q] = [1, y];
        for (let k = 2; k <= m; k += 1) [p, q] = [q, ((2 * k - 1) * y * q - (k - 1) * p) / k];
        const change = (q * (y * y - 1)) / (m * (y * q - p));
        y -= change;
        if (Math.abs(change) < 1e-16) break;
      }
      nodes[i] = y;
    }
    const table = Array.from(nodes, (y) => polynomials(m, Infinity, y).subarray(0, m));
    const weights = Float64Array.from(table, (row) => 1 / row.reduce((sum, value) => sum + value * value, 0));
    gaussRules.set(m, { nodes, weights, table });
  }
  return gaussRules.get(m);
}

const gramRules = new Map();

/** Gauss's rule of m nodes for means over n >= 2 m points y = 2 (i + 1/2) / n - 1; nodes lie between points. */
export function gram(m, n) {
  if (n > 1e6) return gauss(m);
  const key = m * 2 ** 21 + n;
  if (gramRules.has(key)) return gramRules.get(key);
  const nodes = Float64Array.from(gauss(m).nodes);
  const weights = new Float64Array(m);
  for (let i = 0; i < m; i += 1) {
    let y = nodes[i];
    for (let step = 0; step < 60; step += 1) {
      const { value, slope } = lastPolynomial(m, n, y);
      let others = 0; // roots that were found repel
      for (let j = 0; j < i; j += 1) others += 1 / (y - nodes[j]);
      const change = value / (slope - value * others);
      y -= change;
      if (Math.abs(change) < 1e-15) break;
    }
    nodes[i] = y;
  }
  nodes.sort();
  for (let i = 0; i < m; i += 1) {
    const row = polynomials(m, n, nodes[i]);
    let squares = 0;
    for (let k = 0; k < m; k += 1) squares += row[k] * row[k];
    weights[i] = 1 / squares;
  }
  if (gramRules.size > 20000) gramRules.clear();
  gramRules.set(key, { nodes, weights });
  return gramRules.get(key);
}

function lastPolynomial(m, n, y) {
  let [before, value, beforeSlope, slope, last] = [0, 1, 0, 0, 0];
  for (let k = 0; k < m; k += 1) {
    const next = root(k + 1, n);
    const following = (y * value - last * before) / next;
    const followingSlope = (value + y * slope - last * beforeSlope) / next;
    [before, value, beforeSlope, slope, last] = [value, following, slope, followingSlope, next];
  }
  return { value, slope };
}

const sumRules = new Map();

/**
 * A rule for sums over n consecutive integers 0..n-1 by m of them: the integers nearest to Gauss's nodes.
 * `tails` are two rows that give the sizes of the last two terms of a function's expansion.
 */
export function sumRule(m, n) {
  const key = m * 2 ** 40 + n;
  if (n < 2 ** 40 && sumRules.has(key)) return sumRules.get(key);
  const { nodes: ideal } = gauss(m);
  const nodes = Float64Array.from(ideal, (y) => Math.round((n * (y + 1) - 1) / 2));
  for (let i = 1; i < m; i += 1) if (nodes[i] <= nodes[i - 1]) nodes[i] = nodes[i - 1] + 1;
  for (let i = m - 1, last = n - 1; i >= 0; i -= 1, last -= 1) if (nodes[i] > last) nodes[i] = last;
  const matrix = Array.from(nodes, (node) => polynomials(m, n, (2 * node + 1) / n - 1).subarray(0, m));
  // f = matrix c, so c = matrix^-1 f; its first row is the rule, its last two tell of what is left out.
  const solve = (unit) => transposedSolve(matrix, unit);
  const rule = { nodes, weights: solve(0), tails: [solve(m - 1), solve(m - 2)] };
  if (n < 2 ** 40) {
    if (sumRules.size > 4096) sumRules.clear();
    sumRules.set(key, rule);
  }
  return rule;
}

/** x with x^T f = component `unit` of matrix^-1 f: solves matrix^T x = e. */
function transposedSolve(matrix, unit) {
  const m = matrix.length;
  const a = Array.from({ length: m }, (_, i) => Float64Array.from({ length: m + 1 }, (__, j) =>
    j < m ? matrix[j][i] : Number(i === unit)));
  for (let column = 0; column < m; column += 1) {
    let pivot = column;
    for (let row = column + 1; row < m; row += 1) {
      if (Math.abs(a[row][column]) > Math.abs(a[pivot][column])) pivot = row;
    }
    [a[column], a[pivot]] = [a[pivot], a[column]];
    for (let row = column + 1; row < m; row += 1) {
      const factor = a[row][column] / a[column][column];
      for (let j = column; j <= m; j += 1) a[row][j] -= factor * a[column][j];
    }
  }
  const x = new Float64Array(m);
  for (let row = m - 1; row >= 0; row -= 1) {
    let sum = a[row][m];
    for (let j = row + 1; j < m; j += 1) sum -= a[row][j] * x[j];
    x[row] = sum / a[row][row];
  }
  return x;
}

/** Coefficients of orthonormal Legendre polynomials of a function known at Gauss's nodes. */
export function legendre(values) {
  const { weights, table } = gauss(values.length);
  const found = new Float64Array(values.length);
  for (let i = 0; i < values.length; i += 1) {
    const weighted = values[i] * weights[i];
    for (let k = 0; k < values.length; k += 1) found[k] += weighted * table[i][k];
  }
  return found;
}

/** The value of a Legendre expansion at y in -1..1. */
export function expansionAt(coefficients, y) {
  const values = polynomials(coefficients.length, Infinity, y);
  let sum = 0;
  for (let k = 0; k < coefficients.length; k += 1) sum += coefficients[k] * values[k];
  return sum;
}

/** The integral of a Legendre expansion from -1 to y, over 2: a share of the whole range's mean. */
export function expansionIntegral(coefficients, y) {
  const m = coefficients.length;
  const values = polynomials(m + 1, Infinity, y);
  // P_k = p_k / sqrt(2k + 1), and the integral of P_k is (P_k+1 - P_k-1) / (2k + 1).
  const plain = (k) => values[k] / Math.sqrt(2 * k + 1);
  let sum = (coefficients[0] * (y + 1)) / 2;
  for (let k = 1; k < m; k += 1) {
    sum += (coefficients[k] * (plain(k + 1) - plain(k - 1))) / (2 * Math.sqrt(2 * k + 1));
  }
  return sum;
}
