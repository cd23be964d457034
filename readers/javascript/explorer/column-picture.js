// A density, or a distribution function, bin by bin: a band, a line of medians, and where a quantile lies.

import { replace, svg } from "./dom.js";
import { ticks } from "./numbers.js";

const MARGIN = { top: 24, right: 14, bottom: 44, left: 46 };

/**
 * Draw one of the two.
 *
 * @param {SVGElement} node - what is there is replaced
 * @param {{bins: Object, bands: {median: number, lower: number, upper: number}[], range: number[], width: number,
 *   axis: string, quantile: {lower: number, upper: number}, level: number, isDensity: boolean, title: string}} picture
 */
export function drawColumn(node, { bins, bands, range, width, axis, quantile, level, isDensity, title }) {
  const height = width < 480 ? 160 : 220;
  const bottom = height - MARGIN.bottom;
  const [low, high] = range;
  const x = (value) => MARGIN.left + ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (width - MARGIN.left - MARGIN.right);
  const shown = Array.from(bands, (band, bin) => ({ ...band, begin: bins.lower[bin], end: bins.upper[bin], isAtom: bins.isAtom[bin] }))
    .filter(({ begin, end }) => end >= low && begin <= high);
  const most = isDensity ? topOf(shown) : 1;
  const y = (value) => bottom - Math.min(value / most, 1.02) * (bottom - MARGIN.top);
  const bodies = shown.filter(({ isAtom }) => !isAtom);
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  replace(
    node,
    svg("title", {}, title),
    axisOf({ range, x, y, bottom, width, most, axis, isDensity }),
    bodies.map(({ begin, end, lower, upper }) => svg("rect", { class: "band", x: x(begin), width: Math.max(x(end) - x(begin), 0.5), y: y(upper), height: Math.max(y(lower) - y(upper), 1) })),
    svg("path", { class: "line noise-aware", d: steps(bodies, x, y) }),
    isDensity ? shown.filter(({ isAtom }) => isAtom).map((atom) => atomOf(atom, x, bottom)) : null,
    isDensity ? null : svg("line", { class: "level", x1: x(low), x2: x(quantile.upper), y1: y(level), y2: y(level) }),
    isDensity ? null : [quantile.lower, quantile.upper].map((end) => svg("line", { class: "level", x1: x(end), x2: x(end), y1: y(level), y2: bottom })),
    svg("line", { class: "half noise-aware", x1: x(quantile.lower), x2: Math.max(x(quantile.upper), x(quantile.lower) + 2), y1: bottom - 2, y2: bottom - 2 }),
  );
}

/** The highest that a band reaches, but for what stands far above all else. */
function topOf(shown) {
  const bodies = shown.filter(({ isAtom }) => !isAtom);
  const uppers = bodies.map(({ upper }) => upper);
  return Math.max(...uppers, 1e-300);
}

/** A single value has a share and no width: a stem with its share as text. */
function atomOf({ begin, median }, x, bottom) {
  return [
    svg("line", { class: "atom", x1: x(begin), x2: x(begin), y1: MARGIN.top, y2: bottom }),
    svg("text", { class: "tick", x: x(begin) + 6, y: MARGIN.top + 9 }, `${(100 * median).toFixed(1)}\u00a0%`),
  ];
}

function steps(bodies, x, y) {
  return bodies.map(({ begin, end, median }, i) => `${i === 0 ? "M" : "L"}${x(begin).toFixed(2)},${y(median).toFixed(2)}L${x(end).toFixed(2)},${y(median).toFixed(2)}`).join("");
}

function axisOf({ range, x, y, bottom, width, most, axis, isDensity }) {
  const across = ticks(...range, width < 480 ? 4 : 7);
  const up = ticks(0, most, 3);
  return svg(
    "g",
    { "aria-hidden": "true" },
    up.values.map((value) => [
      svg("line", { class: "grid", x1: x(range[0]), x2: x(range[1]), y1: y(value), y2: y(value) }),
      svg("text", { class: "tick end", x: x(range[0]) - 6, y: y(value) + 4 }, up.write(value)),
    ]),
    svg("line", { class: "base", x1: x(range[0]), x2: x(range[1]), y1: bottom, y2: bottom }),
    across.values.map((value) => svg("text", { class: "tick middle", x: x(value), y: bottom + 18 }, across.write(value))),
    svg("text", { class: "axis", x: MARGIN.left, y: 12 }, isDensity ? "density" : "share up to"),
    svg("text", { class: "axis end", x: width - MARGIN.right, y: bottom + 36 }, axis),
  );
}
