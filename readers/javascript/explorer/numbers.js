// How numbers are written, and where the ticks of an axis stand. Never by locale: what is read here is typed
// elsewhere.

/**
 * Write a number with so many significant digits; an exponent only where it would be very long.
 *
 * @param {number|null|undefined} value - what does not exist is a dash
 * @param {number} [digits]
 * @returns {string}
 */
export function written(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-5) return value.toExponential(digits - 1);
  const rounded = Number(value.toPrecision(digits));
  const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(rounded)));
  return decimals <= 0 ? value.toFixed(0) : rounded.toFixed(Math.min(decimals, 20));
}

/** Write a whole number, its thousands apart. */
export function whole(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Write a number to as many digits as show two of its standard deviation. */
export function beside(value, sd) {
  const decimals = 1 - Math.floor(Math.log10(sd));
  const isPlain = Number.isFinite(value) && Number.isFinite(decimals) && decimals <= 7 && Math.abs(value) < 1e9;
  return isPlain ? value.toFixed(Math.max(0, decimals)) : written(value);
}

/** Write a number shortly: without zeros at its end. */
export function brief(value, digits = 4) {
  const text = written(value, digits);
  return /^-?\d+\.\d*$/.test(text) ? text.replace(/\.?0+$/, "") : text;
}

/** Round to so many significant digits. */
export function rounded(value, digits = 4) {
  return value === 0 ? 0 : Number(value.toPrecision(digits));
}

/**
 * Round numbers between two ends, at most about `most` of them.
 *
 * @returns {{values: number[], write: function(number): string}}
 */
export function ticks(low, high, most = 6) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= rough * 0.999);
  const values = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
    values.push(index * step);
  }
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const write = (value) => {
    if (value === 0) return "0";
    return largest >= 1e7 || decimals > 7 ? brief(value, 6) : value.toFixed(decimals);
  };
  return { values, write };
}
