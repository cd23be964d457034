// What was released of one cell, where no posterior can be shown.

import { element } from "./dom.js";
import { written } from "./numbers.js";

const MOST_ROWS = 200;

/** A table of unbiased estimates and the standard deviations of their noise. */
export function releasedTable(rows) {
  const shown = rows.slice(0, MOST_ROWS);
  const columns = Object.keys(shown[0] ?? {});
  const caption = shown.length < rows.length ? `What was released: the first ${MOST_ROWS} of ${rows.length} rows` : "What was released";
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, columns.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, shown.map((row) => element("tr", {}, columns.map((name) => element("td", {}, text(row[name])))))),
    ),
  );
}

function text(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? written(value, 6) : String(value);
}
