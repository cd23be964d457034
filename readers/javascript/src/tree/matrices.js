/** Small symmetric matrices: lists of rows. */

/** Sweeps of rotations, of which three are enough for nine digits of matrices as small as these. */
const SWEEPS = 30;

export function identity(d, factor = 1) {
  return Array.from({ length: d }, (_, i) => Array.from({ length: d }, (_, j) => (i === j ? factor : 0)));
}

/** A matrix times a vector. */
export function times(matrix, vector) {
  return matrix.map((row) => row.reduce((sum, entry, k) => sum + entry * vector[k], 0));
}

/** A point, moved by the steps of a matrix's columns. */
export function moved(from, matrix, steps) {
  return times(matrix, steps).map((step, i) => from[i] + step);
}

/** A matrix times its own transpose. */
export function outer(matrix) {
  return matrix.map((row) => times(matrix, row));
}

/** The lower factor of a symmetric matrix. */
export function cholesky(matrix) {
  const factor = identity(matrix.length, 0);
  matrix.forEach((row, i) => {
    for (let j = 0; j <= i; j += 1) {
      let rest = row[j];
      for (let k = 0; k < j; k += 1) rest -= factor[i][k] * factor[j][k];
      factor[i][j] = i === j ? Math.sqrt(rest) : rest / factor[j][j];
    }
  });
  return factor;
}

/** The determinant of a lower factor. */
export function volume(factor) {
  return factor.reduce((product, row, i) => product * row[i], 1);
}

/** Eigenvalues, and eigenvectors in columns, by Jacobi's rotations. */
export function eigen(symmetric) {
  const d = symmetric.length;
  const a = symmetric.map((row) => [...row]);
  const vectors = identity(d);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (let p = 0; p < d; p += 1) {
      for (let q = p + 1; q < d; q += 1) {
        if (a[p][q] === 0) continue;
        const angle = 0.5 * Math.atan2(2 * a[p][q], a[p][p] - a[q][q]);
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        for (let k = 0; k < d; k += 1) [a[k][p], a[k][q]] = [c * a[k][p] + s * a[k][q], c * a[k][q] - s * a[k][p]];
        for (let k = 0; k < d; k += 1) [a[p][k], a[q][k]] = [c * a[p][k] + s * a[q][k], c * a[q][k] - s * a[p][k]];
        for (const row of vectors) [row[p], row[q]] = [c * row[p] + s * row[q], c * row[q] - s * row[p]];
        [a[p][q], a[q][p]] = [0, 0];
      }
    }
  }
  return { values: a.map((row, i) => row[i]), vectors };
}
