// Densities as a picture. Lines differ by dashes and width as well as by colour; classes carry the colours, so
// that the page's style decides them, in light, in dark and in print.

import { svg, replace } from "./dom.js";
import { ticks } from "./numbers.js";

/** A curve may leave the picture upwards: the noise-aware posterior is never made flat by what is narrower. */
const [HIGHEST, BEYOND] = [1.8, 3];
const MARGIN = { top: 26, right: 14, bottom: 46, left: 14 };

/**
 * Draw curves over one axis.
 *
 * @param {SVGElement} node - what is there is replaced
 * @param {{points: number[], range: number[], axis: string, title: string, description: string, width: number,
 *   curves: {kind: string, densities: number[], interval: number[]|null, mean: number|null}[],
 *   pooled?: {interval: number[], mean: number}|null}} picture - `pooled` is the cell together with the others
 */
export function draw(node, { points, range, axis, title, description, width, curves, pooled = null }) {
  const height = width < 480 ? 250 : 330;
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const bottom = MARGIN.top + inner.height;
  const x = (value) => MARGIN.left + ((value - range[0]) / (range[1] - range[0])) * inner.width;
  const top = highest(curves);
  const y = (density) => bottom - Math.min(density / top, BEYOND) * inner.height * 0.94;
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  replace(
    node,
    svg("title", {}, title),
    svg("desc", {}, description),
    axisOf(range, x, bottom, axis, width),
    svg("text", { class: "axis-name", x: MARGIN.left, y: 12, "aria-hidden": "true" }, "density"),
    pooled === null ? null : band(pooled, range, x, MARGIN.top, bottom),
    curves.map((curve) => shade(curve, points, x, y, bottom)),
    curves.map((curve) => svg("path", { class: `curve curve-${curve.kind}`, d: line(points, curve.densities, x, y) })),
    curves.filter(({ interval }) => interval !== null).map((curve, row) => bar(curve, range, x, bottom - 5 - row * 9)),
  );
}

function highest(curves) {
  const of = (some) => Math.max(0, ...some.flatMap(({ densities }) => [...densities].filter(Number.isFinite)));
  const aware = of(curves.filter(({ interval }) => interval !== null));
  const posterior = of(curves.filter(({ kind }) => kind !== "prior"));
  return aware > 0 ? Math.min(posterior, HIGHEST * aware) : posterior || of(curves) || 1;
}

function axisOf(range, x, bottom, name, width) {
  const { values, write } = ticks(...range, width < 480 ? 4 : 7);
  return svg(
    "g",
    { class: "axis", "aria-hidden": "true" },
    svg("line", { x1: x(range[0]), x2: x(range[1]), y1: bottom, y2: bottom }),
    values.map((value) => [
      svg("line", { class: "tick", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: x(value), y: bottom + 20, "text-anchor": anchor(x(value), width) }, write(value)),
    ]),
    svg("text", { class: "axis-name", x: width / 2, y: bottom + 40, "text-anchor": "middle" }, name),
  );
}

function anchor(position, width) {
  if (position < 30) return "start";
  return position > width - 30 ? "end" : "middle";
}

function shade({ kind, densities, interval }, points, x, y, bottom) {
  if (interval === null) return null;
  const inside = points.flatMap((point, index) =>
    point >= interval[0] && point <= interval[1] ? [[point, densities[index]]] : [],
  );
  if (inside.length < 2) return null;
  const ends = [inside[0], inside.at(-1)].map(([point]) => x(point).toFixed(2));
  const top = inside.map(([point, density]) => `${x(point).toFixed(2)},${y(density).toFixed(2)}`);
  return svg("path", {
    class: `shade shade-${kind}`,
    d: `M${ends[0]},${bottom}L${top.join("L")}L${ends[1]},${bottom}Z`,
  });
}

/** An interval over the whole height, with a line at its mean. */
function band({ interval, mean }, range, x, top, bottom) {
  const [low, high] = interval.map((end) => x(Math.min(Math.max(end, range[0]), range[1])));
  const middle = x(Math.min(Math.max(mean, range[0]), range[1]));
  return svg(
    "g",
    { class: "band", "aria-hidden": "true" },
    svg("rect", { x: low, y: top, width: Math.max(high - low, 1), height: bottom - top }),
    svg("line", { x1: middle, x2: middle, y1: top, y2: bottom }),
  );
}

/** The interval as a bar on the axis, with a tick at the mean, which hides nothing of it. */
function bar({ kind, interval, mean }, range, x, at) {
  const [low, high] = interval.map((end) => x(Math.min(Math.max(end, range[0]), range[1])));
  return svg(
    "g",
    { class: `bar bar-${kind}`, "aria-hidden": "true" },
    svg("line", { x1: low, x2: high, y1: at, y2: at }),
    mean !== null && mean >= range[0] && mean <= range[1] ? svg("line", { x1: x(mean), x2: x(mean), y1: at - 5, y2: at + 5 }) : null,
  );
}

function line(points, densities, x, y) {
  let path = "";
  let isDrawing = false;
  points.forEach((point, index) => {
    if (!Number.isFinite(densities[index])) {
      isDrawing = false;
      return;
    }
    path += `${isDrawing ? "L" : "M"}${x(point).toFixed(2)},${y(densities[index]).toFixed(2)}`;
    isDrawing = true;
  });
  return path;
}

/** A short piece of a curve's line, for the key of the picture. */
export function sample(kind) {
  return svg(
    "svg",
    { class: "sample", viewBox: "0 0 32 10", width: 32, height: 10, "aria-hidden": "true", focusable: "false" },
    kind === "together"
      ? svg("g", { class: "band" }, svg("rect", { x: 4, y: 0, width: 24, height: 10 }), svg("line", { x1: 16, x2: 16, y1: 0, y2: 10 }))
      : svg("path", { class: `curve curve-${kind}`, d: "M1,5L31,5" }),
  );
}
