// What was released of one cell, as a table.

import { element } from "./dom.js";
import { written } from "./numbers.js";

const MOST_ROWS = 200;

/** A table of unbiased estimates and the standard deviations of their noise. */
export function releasedTable(rows) {
  const shown = rows.slice(0, MOST_ROWS);
  const caption =
    shown.length < rows.length
      ? `What was released: the first ${MOST_ROWS} of ${rows.length} numbers`
      : "What was released";
  const heads = ["", "estimate", "standard deviation of its noise"];
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
          heads.map((name) => (name ? element("th", { scope: "col" }, name) : element("td"))),
        ),
      ),
      element("tbody", {}, shown.map(row)),
    ),
  );
}

function row({ quantity, category, component, labels, estimate, noiseSd }) {
  const of = [category, component, ...labels.map(([variable, key]) => `${variable}=${key}`)].filter(
    (part) => part !== null && part !== "",
  );
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, of.length === 0 ? quantity : `${quantity} of ${of.join(", ")}`),
    element("td", {}, written(estimate, 6)),
    element("td", {}, written(noiseSd, 4)),
  );
}
