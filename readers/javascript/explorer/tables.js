// The tables behind the picture.

import { axisName, shortName } from "./answers.js";
import { element } from "./dom.js";
import { beside, brief, written } from "./numbers.js";
import { aloneInterval } from "./pool.js";

const ROWS = 25;
/** Of the number behind a cell, which shows those that its uncertainty allows. */
const DIGITS = 6;

/** One column a posterior: mean, standard deviation, interval. */
export function lawTable(page, answer) {
  const { sides } = answer;
  const { mass } = answer.question;
  const [low, high] =
    answer.posterior.defaultInterval === "central"
      ? shares(mass)
      : ["lower", "upper"].map((end) => `${end} end of ${brief(100 * mass, 4)} %, highest density`);
  const columns = sides.map(({ kind, law, interval }) => ({
    kind,
    name: shortName(page, answer, kind),
    values: [law.mean, law.sd, ...interval],
  }));
  return columnTable(
    `Posteriors of ${answer.entry.isNamed ? "" : "the "}${axisName(answer)}`,
    columns,
    ["mean", "standard deviation", low, high],
    (value, [, sd]) => beside(value, sd),
  );
}

/** A cell together with the others, beside itself alone: intervals of one kind. */
export function pooledTable({ entry, sides }, pooled) {
  const ends = pooled.kind === "central" ? shares(pooled.share) : ["lower", "upper"].map((end) => `${end} end of ${pooled.mass}, ${pooled.kind}`);
  const rows = ["mean", "standard deviation", ...ends];
  const { law } = sides[0];
  const columns = [
    { kind: "together", name: "Together", values: [pooled.mean, pooled.sd, ...pooled.interval] },
    { kind: "alone", name: "Alone", values: [law.mean, law.sd, ...aloneInterval(law, pooled)] },
  ];
  const caption = `Together with the other cells, and alone: ${entry.isNamed ? "" : "the "}${axisName({ entry })}`;
  return columnTable(caption, columns, rows, (value, [, sd]) => beside(value, sd));
}

/** Difference and ratio of two cells. */
export function comparisonTable(page, answer, digits) {
  const { question, contrast } = answer;
  if (question.versus === null || !contrast) return null;
  const { difference, ratio, greater } = contrast;
  const columns = [
    {
      kind: "difference",
      name: "first minus second",
      values: [difference.mean, difference.sd, ...ends(difference), greater],
    },
    ratio === null ? null : { kind: "ratio", name: "first over second", values: [null, null, ...ends(ratio), greater] },
  ];
  const [low, high] = shares(question.mass);
  const rows = ["mean", "standard deviation", "median", low, high, "probability that the first is greater"];
  return columnTable(
    "Comparison",
    columns.filter((column) => column !== null),
    rows,
    (value) => written(value, digits),
  );
}

function ends({ median, lower, upper }) {
  return [median, lower, upper];
}

function columnTable(caption, columns, rows, write) {
  const body = rows.map((name, at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      columns.map(({ kind, values }) => {
        const whole = { "data-kind": kind, "data-number": written(values[at], DIGITS) };
        return element("td", whole, write(values[at], values));
      }),
    ),
  );
  return table(caption, ["", ...columns.map(({ name }) => name)], body);
}

/** Densities at even steps of the axis. */
export function densityTable({ points, curves }, name) {
  const step = Math.floor((points.length - 1) / ROWS);
  const rows = points.flatMap((point, index) =>
    index % step === 0
      ? [
          row(
            brief(point, 4),
            curves.map(({ densities }) => densities[index]),
            4,
          ),
        ]
      : [],
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
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heads.map((head) => (head === "" ? element("td") : element("th", { scope: "col" }, head))),
        ),
      ),
      element("tbody", {}, rows),
    ),
  );
}

function row(name, values, digits) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, name),
    values.map((value) => element("td", {}, written(value, digits))),
  );
}
