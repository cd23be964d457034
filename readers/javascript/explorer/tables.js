// The tables behind the picture.

import { axisName, chance, shortName } from "./answers.js";
import { element } from "./dom.js";
import { brief, written } from "./numbers.js";

const ROWS = 25;

/** One row a posterior: mean, standard deviation, interval. */
export function lawTable(page, answer, digits) {
  const [low, high] = shares(answer.question.mass);
  const rows = answer.sides.map(({ kind, law, interval }) =>
    row(shortName(page, answer, kind), [law.mean, law.sd, ...interval], digits, kind),
  );
  return table(`Posteriors of the ${axisName(answer)}`, ["", "mean", "standard deviation", low, high], rows);
}

/** Difference and ratio of two cells. */
export function comparisonTable(page, answer, digits) {
  const { question, contrast } = answer;
  if (question.versus === null || !contrast) return null;
  const [low, high] = shares(question.mass);
  const { difference, ratio } = contrast;
  const ends = (of) => [of.median, of.lower, of.upper];
  return [
    table(
      "First minus second, and first over second",
      ["", "mean", "standard deviation", "median", low, high],
      [
        row("difference", [difference.mean, difference.sd, ...ends(difference)], digits, "difference"),
        ratio === null ? null : row("ratio", [null, null, ...ends(ratio)], digits, "ratio"),
      ],
    ),
    element("p", { class: "hint" }, `Probability that the first is greater: ${chance(contrast.greater)}.`),
  ];
}

/** Densities at even steps of the axis. */
export function densityTable({ points, curves }, name) {
  const step = Math.floor((points.length - 1) / ROWS);
  const rows = points.flatMap((point, index) =>
    index % step === 0 ? [row(brief(point, 5), curves.map(({ densities }) => densities[index]), 4)] : [],
  );
  return table("Densities", ["value", ...curves.map(({ kind }) => name(kind))], rows);
}

function shares(mass) {
  return [(1 - mass) / 2, (1 + mass) / 2].map((share) => `${brief(share * 100, 5)} %`);
}

function table(caption, heads, rows) {
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, heads.map((head) => (head === "" ? element("td") : element("th", { scope: "col" }, head))))),
      element("tbody", {}, rows),
    ),
  );
}

function row(name, values, digits, kind = null) {
  return element(
    "tr",
    { "data-kind": kind },
    element("th", { scope: "row" }, name),
    values.map((value) => element("td", {}, written(value, digits))),
  );
}
