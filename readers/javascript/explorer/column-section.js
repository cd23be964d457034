// A histogram's column: its density and its distribution function with bands, and any quantile of it by a slider.

import { DEFAULT_WALK } from "../src/histogram/prior.js";
import { drawColumn } from "./column-picture.js";
import { element, replace, svg } from "./dom.js";
import { choice, keyField, numberField, slider, textField, tick } from "./fields.js";
import { pythonText } from "./lines.js";
import { brief, written } from "./numbers.js";
import { latest, percent, sameElsewhere } from "./parts.js";
import { share } from "./scales.js";
import { COLUMNS, columnFields, columnFromHash, remember, withPart } from "./state.js";

const QUIET = 700;
const OF = [
  { value: "law", text: "the law behind records" },
  { value: "rows", text: "the counted records" },
];

/**
 * The part of the explorer for the histograms of a release.
 *
 * @param {Object} page - from `readPage`
 * @param {Object} reader - from `reading`
 */
export function columnSection(page, reader) {
  const kinds = OF.map(({ value }) => value);
  const fromAddress = () => columnFromHash(location.hash, page, kinds);
  const asked = fromAddress();
  const statistic = choice("Column", page.columns.map(({ name }) => ({ value: name, text: page.words.statistic(name) })), (name) => choose(name));
  const cell = element("div", { class: "cell" });
  const of = choice("Asked of", OF, (value) => change({ of: value }));
  const level = slider({ name: "Quantile", hint: "The value below which this share of records lies.", scale: share(0.001) }, (value) => change({ level: Number(value.toPrecision(3)) }, true));
  const least = numberField("Share of records of at least", { step: "any" }, (value) => change({ least: value }, true));
  const mass = numberField("Probability of intervals, in %", { low: 0.1, high: 99.9, step: "any" }, (value) =>
    change({ mass: Number((value / 100).toPrecision(12)) }, true),
  );
  const prior = textField("Steps of the walk over bins", (text) => change({ prior: text }), `A prior, as BinWalk(0.1, 0.4); empty for ${DEFAULT_WALK}: how much neighbouring bins differ, in logarithms.`);
  const whole = tick("Show all bins", (isOn) => change({ whole: isOn }, true));
  const form = element(
    "form",
    { class: "explorer-form", "aria-label": "Which column", submit: (event) => event.preventDefault() },
    element("fieldset", {}, element("legend", {}, "Column"), page.columns.length > 1 ? statistic.node : null, cell, of.node),
    element("fieldset", {}, element("legend", {}, "Asked"), level.node, least.node),
    element("fieldset", {}, element("legend", {}, "Prior"), prior.node),
    element("fieldset", {}, element("legend", {}, "Shown as"), mass.node, whole.node),
  );
  const headline = element("p", { class: "explorer-answer" });
  const density = svg("svg", { class: "explorer-picture figure", role: "img" });
  const cumulated = svg("svg", { class: "explorer-picture figure", role: "img" });
  const figure = element("figure", { class: "frame" }, density, cumulated);
  const numbers = element("div", { class: "explorer-tables" });
  const after = element("div", { class: "explorer-lines" });
  const answered = element("div", { class: "explorer-answers" }, headline, figure, numbers, after);
  const complaint = element("div", { role: "status" });
  const voice = element("p", { class: "visually-hidden", role: "status" });
  const ask = latest(answered, complaint);
  let column = null;
  let bands = null;
  let quiet = null;
  if (typeof ResizeObserver === "function") new ResizeObserver(() => column !== null && show()).observe(figure);
  begin(asked);
  addEventListener("hashchange", () => {
    const wanted = fromAddress();
    const fieldsOf = (question) => JSON.stringify(columnFields(question, kinds[0]));
    if (fieldsOf(wanted) !== fieldsOf(asked)) begin(wanted);
  });

  function begin(question) {
    const { groups } = page.columns.find((one) => one.name === question.name);
    replace(cell, groups.map((group) => {
      const field = keyField(group, (key) => change({ where: { ...asked.where, [group.column]: key } }));
      field.show(question.where[group.column]);
      return field.node;
    }));
    column = null;
    change(question, false, false);
  }

  /** Another column: its first cell, and a share that its own quantile places. */
  function choose(name) {
    const { groups } = page.columns.find((one) => one.name === name);
    begin({ ...asked, name, where: Object.fromEntries(groups.map((group) => [group.column, group.key(0)])), least: null });
    remember(withPart(location.hash, COLUMNS, columnFields(asked, kinds[0])));
  }

  /** What is drawn already answers where only another number is asked of it. */
  function change(patch, isOfTheSame = false, isRemembered = true) {
    Object.assign(asked, patch);
    if (isRemembered) remember(withPart(location.hash, COLUMNS, columnFields(asked, kinds[0])));
    statistic.show(asked.name);
    of.show(asked.of);
    level.show(asked.level);
    least.show(asked.least ?? "");
    mass.show(Number((asked.mass * 100).toPrecision(12)));
    whole.show(asked.whole);
    prior.show(asked.prior);
    if (isOfTheSame && column !== null) {
      show();
      return;
    }
    const options = { where: asked.where, of: asked.of, ...(asked.prior ? { prior: asked.prior } : {}) };
    ask((pause) => reader.column(asked.name, options, pause), (found) => {
      asked.least ??= Number(found.quantile(0.9, asked.mass).upper);
      column = found;
      bands = null;
      least.show(asked.least);
      show();
    });
  }

  function show() {
    const within = asked.mass;
    if (bands?.mass !== within) bands = { mass: within, density: column.density(within), cumulated: column.distributionFunction(within) };
    const quantile = column.quantile(asked.level, within);
    const tail = column.tailShare(asked.least, within);
    const { unit } = page.columns.find((one) => one.name === asked.name);
    const name = page.words.statistic(asked.name) + (unit ? ` (${unit})` : "");
    replace(headline, sentence(name, quantile));
    const range = asked.whole ? [column.bins.lower[0], column.bins.upper.at(-1)] : middleOf(column, quantile);
    const width = Math.max(280, Math.round(figure.clientWidth || 640) - 2);
    const shared = { bins: column.bins, range, width, axis: name, quantile, level: asked.level };
    drawColumn(density, { ...shared, bands: bands.density, isDensity: true, title: `Density of ${name}, with a band of ${percent(within)}` });
    drawColumn(cumulated, { ...shared, bands: bands.cumulated, isDensity: false, title: `Distribution function of ${name}, with a band of ${percent(within)}` });
    replace(numbers, tableOf([
      [`${brief(asked.level, 4)} quantile`, quantile],
      [`share of ${brief(asked.least, 6)} or more`, tail],
      ["median", column.median(within)],
      ["upper quartile less lower", column.interquantileRange(0.25, 0.75, within)],
      ["mean, within the bounds", column.mean(within)],
    ], within));
    replace(
      after,
      element("p", { class: "hint" }, notesOf(quantile, column)),
      sameElsewhere(...linesOf(page, asked)),
    );
    clearTimeout(quiet);
    quiet = setTimeout(() => (voice.textContent = headline.textContent), QUIET);
  }

  function sentence(name, { lower, upper, isRefused }) {
    const subject = `the ${percent(asked.level)} quantile of ${name}`;
    if (isRefused) return [`${subject[0].toUpperCase()}${subject.slice(1)} is not known within half of its range: between ${written(lower, 5)} and ${written(upper, 5)}.`];
    if (lower === upper) return [`With ${percent(asked.mass)} probability, ${subject} is `, element("strong", {}, brief(lower, 6)), "."];
    return [
      `With ${percent(asked.mass)} probability or more, ${subject} lies between `,
      element("strong", {}, brief(lower, 6)),
      " and ",
      element("strong", {}, brief(upper, 6)),
      ".",
    ];
  }

  return { title: "Explore the columns", lead: LEAD, node: element("div", { class: "explorer-body" }, form, element("div", { class: "explorer-right" }, complaint, answered, voice)) };
}

const LEAD =
  "One noisy count for each bin, and every quantile from them: bands hold what density and distribution function can be. " +
  "Move the slider and ask.";

/** Where nearly all of the column is, the asked quantile in it. */
function middleOf(column, quantile) {
  const [low, high] = [column.quantile(0.004).lower, column.quantile(0.985).upper];
  return [Math.min(low, quantile.lower), Math.max(high, quantile.upper)];
}

function notesOf({ isRefused }, column) {
  const rows = column.of === "rows" ? "Of the records that were counted: no sampling error is in it." : "Of the law that records come from.";
  const refused = isRefused ? " An answer whose interval spans half of what it can be is refused." : "";
  return `${rows}${refused} From ${column.shares.length.toLocaleString("en")} draws, the same at every call: ends of intervals are edges of bins, and may differ by a bin from Python's, which are of other draws.`;
}

function tableOf(rows, mass) {
  const head = ["", "median", "lower", "upper"];
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers" },
    element(
      "table",
      {},
      element("caption", {}, `Intervals of ${percent(mass)}`),
      element("thead", {}, element("tr", {}, head.map((name) => (name ? element("th", { scope: "col" }, name) : element("td"))))),
      element("tbody", {}, rows.map(([name, { median, lower, upper }]) =>
        element("tr", {}, element("th", { scope: "row" }, name), [median, lower, upper].map((value) => element("td", {}, written(value, 4)))))),
    ),
  );
}

function linesOf(page, { name, where, of, level, least, mass, prior }) {
  const places = Object.entries(where);
  const words = ["suffice", "quantiles", page.uri, name, ...places.flatMap(([column, key]) => ["--where", `${column}=${key}`])];
  words.push("--at", String(level), "--at-least", String(least), "--mass", String(mass));
  if (prior) words.push("--prior", prior);
  if (of === "rows") words.push("--of-rows");
  const terms = [pythonText(name)];
  if (prior) terms.push(`prior=${pythonText(prior)}`);
  if (places.length > 0) terms.push(`where={${places.map(([column, key]) => `${pythonText(column)}: ${pythonText(key)}`).join(", ")}}`);
  const python = [
    "import suffice",
    "",
    `release = suffice.open_release(${pythonText(page.uri)})`,
    `column = release.posterior(${terms.join(", ")}).column(${of === "rows" ? 'of="rows"' : ""})`,
    `print(column.quantile(${level}, ${mass}))`,
    `print(column.tail_share(${least}, ${mass}))`,
  ].join("\n");
  return [words, python];
}
