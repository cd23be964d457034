// Cells that were published together: a switch between each alone and together, and what stands behind it.

import { element, freshId, replace } from "./dom.js";
import { brief } from "./numbers.js";
import { inWords } from "./state.js";

const CHOICES = [
  { isTogether: false, text: "Each alone" },
  { isTogether: true, text: "Together" },
];

/**
 * One cell, answered together with the others.
 * @typedef {{mean: number, sd: number, interval: number[], ownShare: number|null, others: number, share: number,
 *   mass: string, kind: string, overWindows: boolean, isIdentified: boolean, link: string, uri: string}} Pooled
 */

/** What was published of each cell together with the others, by statistic; read when it is first asked for. */
export function poolsOf(pools) {
  const read = new Map();
  return (statistic, cell, entry) => {
    const pool = Object.hasOwn(pools, statistic) ? pools[statistic] : null;
    if (pool === null) return null;
    if (!read.has(statistic)) read.set(statistic, new Map(pool.rows.map(({ of, numbers }) => [JSON.stringify(of), numbers])));
    const numbers = read.get(statistic).get(JSON.stringify([...cell, entry]));
    if (numbers === undefined) return null;
    const [mean, sd, low, high, ownShare] = numbers;
    const { others, mass: share, kind, over_windows: overWindows, is_identified: isIdentified, link, uri } = pool;
    const mass = `${brief(100 * share, 4)} %`;
    return { mean, sd, interval: [low, high], ownShare, others, overWindows, share, mass, kind, isIdentified, link, uri };
  };
}

/** The published answer of the cell that is asked for; null where there is none, or cells are compared. */
export function pooledOf(page, { question, statistic, entry }) {
  return question.versus === null ? page.pooled(statistic.name, question.cell, entry.key) : null;
}

/**
 * The switch.
 *
 * @param {function(Object)} ask - called with what of the question has changed
 */
export function poolSwitch(ask) {
  const name = freshId("together");
  const inputs = CHOICES.map(({ isTogether }) =>
    element("input", { type: "radio", name, value: String(isTogether), change: () => ask({ together: isTogether }) }),
  );
  const choices = CHOICES.map(({ text }, at) => element("label", {}, inputs[at], element("span", {}, text)));
  const hint = element("p", { class: "hint" });
  const legend = element("legend", { class: "visually-hidden" }, "How cells are answered");
  const node = element("div", { class: "explorer-pool", hidden: true }, element("fieldset", { class: "switch" }, legend, choices), hint);
  return {
    node,
    show(pooled, isTogether) {
      node.hidden = pooled === null;
      inputs.forEach((input, at) => (input.checked = CHOICES[at].isTogether === isTogether));
      if (pooled !== null) replace(hint, isTogether ? TOGETHER : ALONE);
    },
  };
}

const ALONE =
  "This cell by itself. Together, cells borrow from each other: one that says little leans on what all have in common. It " +
  "costs no privacy.";
const TOGETHER =
  "This cell with all others, as it was published: one that says little leans on what all have in common. A prior that " +
  "you state moves each alone, and not this.";

/** The sentence of a cell together with the others. */
export function pooledSentence(page, { question, entry }, pooled) {
  const [low, high] = pooled.interval.map((end) => brief(end, 4));
  const ends = ["between ", element("strong", {}, low), " and ", element("strong", {}, high)];
  const cell = inWords(page, question.cell);
  if (entry.isNamed) {
    const unit = entry.unit ? ` ${entry.unit}` : "";
    return [`${entry.title}; ${cell}, together with the other cells: `, ...ends, `${unit}, with ${pooled.mass} probability.`];
  }
  return [`Together with the other cells: with ${pooled.mass} probability, the ${entry.title} for ${cell} lies `, ...ends, "."];
}

/** What a reader has to know of it: how much is the cell's own, what it is alone, and where it is from. */
export function pooledNotes({ sides }, pooled) {
  const [low, high] = aloneInterval(sides[0].law, pooled).map((end) => brief(end, 4));
  const own = pooled.ownShare === null ? "" : `${Math.round(100 * pooled.ownShare)} % of this answer is the cell's own, and the rest what it has in common with ${pooled.others} others${pooled.overWindows ? ", also of other windows" : ""}. `;
  return [
    pooled.isIdentified ? null : element("div", { class: "banner" }, element("p", {}, UNIDENTIFIED)),
    element(
      "p",
      { class: "hint" },
      `${own}Alone it lies between ${low} and ${high}. `,
      element("a", { href: pooled.link }, "All cells together, and how they were worked out"),
      `. Intervals: ${pooled.kind}.`,
    ),
  ];
}

/** The interval of a cell alone, of the kind and the mass of the one together. */
export function aloneInterval(law, { kind, share }) {
  return kind === "central" ? [(1 - share) / 2, (1 + share) / 2].map((at) => law.quantile(at)) : law.interval(share);
}

const UNIDENTIFIED =
  "The cells do not tell how much they have in common: an assumption decides how much they borrow. Look at each alone first.";
