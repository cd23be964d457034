// The prior of the number of records, where that is private.

import { element } from "./dom.js";
import { choice, numberField } from "./fields.js";

const KINDS = [
  { value: "default", text: "nothing" },
  { value: "between", text: "a range" },
  { value: "known", text: "the number" },
];

/**
 * @param {number} mostRows - the release's largest number of rows
 * @param {function(string)} change - called with the text of a prior of N, empty for the default
 * @returns {{node: HTMLElement, show: function(string)}}
 */
export function countControl(mostRows, change) {
  let asked = { kind: "default", low: 0, high: 1000, known: 100 };
  const set = (patch) => {
    asked = { ...asked, ...patch };
    change(written(asked));
    reveal();
  };
  const limits = { low: 0, high: Math.min(mostRows, 1e15), step: 1 };
  const kind = choice("What you know of it beforehand", KINDS, (value) => set({ kind: value }));
  const low = numberField("At least", limits, (value) => set({ low: value, high: Math.max(value, asked.high) }));
  const high = numberField("At most", limits, (value) => set({ high: value, low: Math.min(value, asked.low) }));
  const known = numberField("Number of records", limits, (value) => set({ known: value }));

  function reveal() {
    kind.show(asked.kind);
    [low, high].forEach(({ node }) => (node.hidden = asked.kind !== "between"));
    known.node.hidden = asked.kind !== "known";
    low.show(asked.low);
    high.show(asked.high);
    known.show(asked.known);
  }

  return {
    node: element(
      "fieldset",
      {},
      element("legend", {}, "Number of records"),
      kind.node,
      low.node,
      high.node,
      known.node,
    ),
    show(text) {
      if (text !== written(asked)) asked = { ...asked, ...read(text) };
      reveal();
    },
  };
}

function written({ kind, low, high, known }) {
  if (kind === "between") return `Uniform(${low}, ${high})`;
  return kind === "known" ? String(known) : "";
}

/** Read the text of a prior of N; what this form cannot show is the default. */
export function read(text) {
  const between = /^\s*Uniform\(\s*(?:lower\s*=\s*)?(\d{1,16})\s*,\s*(?:upper\s*=\s*)?(\d{1,16})\s*\)\s*$/.exec(text);
  if (between !== null) return { kind: "between", low: Number(between[1]), high: Number(between[2]) };
  return /^\s*\d{1,16}\s*$/.test(text) ? { kind: "known", known: Number(text) } : { kind: "default" };
}
