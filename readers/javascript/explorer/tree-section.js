// A tree that folds open: every node with its interval, what was released of it, and where that contradicts itself.

import { DEFAULT_POPULATION } from "../src/tree/populations.js";
import { element, replace, svg } from "./dom.js";
import { choice, keyField, numberField } from "./fields.js";
import { pythonText } from "./lines.js";
import { whole } from "./numbers.js";
import { latest, percent, sameElsewhere } from "./parts.js";

/** Children that are shown of a node at once. */
const MOST_SHOWN = 60;
const WIDTH = 240;
const HEIGHT = 26;

const POPULATIONS = [
  { value: "contaminated", text: "rates of one population, some outliers" },
  { value: "negative-binomial", text: "rates of one population" },
  { value: "reciprocal", text: "weights 1 / (n + 1)" },
];

/**
 * The part of the explorer for the trees of a release.
 *
 * @param {Object} page - from `readPage`
 * @param {Object} reader - from `reading`
 */
export function treeSection(page, reader) {
  const asked = { name: page.trees[0].name, where: {}, component: null, population: DEFAULT_POPULATION, mass: 0.95 };
  const tree = choice("Tree", page.trees.map(({ name }) => ({ value: name, text: page.words.statistic(name) })), (name) => begin(name));
  const beside = element("div", { class: "cell" });
  const component = choice("Counted", [], (name) => change({ component: name }));
  const population = choice(
    "Counts of leaves are drawn from",
    POPULATIONS,
    (name) => change({ population: name }),
    "A prior of the leaves, whose mean and spread are integrated over.",
  );
  const mass = numberField("Probability of intervals, in %", { low: 0.1, high: 99.9, step: "any" }, (of) =>
    change({ mass: Number((of / 100).toPrecision(12)) }),
  );
  const form = element(
    "form",
    { class: "explorer-form", "aria-label": "Which tree", submit: (event) => event.preventDefault() },
    element("fieldset", {}, element("legend", {}, "Tree"), page.trees.length > 1 ? tree.node : null, beside, component.node),
    element("fieldset", {}, element("legend", {}, "Shown as"), population.node, mass.node),
  );
  const headline = element("p", { class: "explorer-answer", role: "status" });
  const contradictions = element("p", {});
  const list = element("div", { class: "explorer-tree" });
  const after = element("div", { class: "explorer-lines" });
  const answered = element("div", { class: "explorer-answers" }, headline, contradictions, list, after);
  const complaint = element("div", { role: "status" });
  const ask = latest(answered, complaint);
  const opened = new Set();
  begin(asked.name);

  function begin(name) {
    const { groups, components } = page.trees.find((one) => one.name === name);
    opened.clear();
    const where = Object.fromEntries(groups.map((group) => [group.column, group.key(0)]));
    replace(beside, groups.map((group) => {
      const field = keyField(group, (key) => change({ where: { ...asked.where, [group.column]: key } }));
      field.show(group.key(0));
      return field.node;
    }));
    component.fill(components.map((value) => ({ value, text: page.words.value(name, value) })));
    component.node.hidden = components.length < 2;
    const last = components.includes("true") ? "true" : components[0];
    change({ name, where, component: last });
  }

  function change(patch) {
    Object.assign(asked, patch);
    tree.show(asked.name);
    component.show(asked.component);
    population.show(asked.population);
    mass.show(Number((asked.mass * 100).toPrecision(12)));
    const { name, where, population: of } = asked;
    ask((pause) => reader.tree(name, { where, population: of }, pause), show);
  }

  function show(found) {
    const { component: name, mass: within } = asked;
    const nodes = nodesOf(page, found, name, within);
    const [root] = nodes[0];
    replace(
      headline,
      `With ${percent(within)} probability, ${page.words.statistic(asked.name)} has `,
      element("strong", {}, whole(root.lower)),
      " to ",
      element("strong", {}, whole(root.upper)),
      found.components.length > 1 ? ` records of ${page.words.value(asked.name, name)}.` : " records.",
    );
    replace(contradictions, contradictionsOf(nodes));
    replace(list, legend(), element("p", { class: "hint" }, SCALES), branch([root], nodes, opened));
    replace(
      after,
      found.notes.map((note) => element("p", { class: "hint" }, note)),
      element("p", { class: "hint" }, "All counts are inferred together, each tree of a category by itself: whole numbers, never negative, that add up in every draw. Ends of intervals are those of Python and of the command line."),
      sameElsewhere(...linesOf(page, asked)),
    );
  }

  return { title: "Explore the trees", lead: LEAD, node: element("div", { class: "explorer-body" }, form, element("div", { class: "explorer-right" }, complaint, answered)) };
}

const LEAD =
  "Counts that were released level by level contradict each other. Open a node to see those below it: what was released, " +
  "and what it can have been, given all of the tree.";

/** All nodes of one component, level by level, each with its numbers and its children. */
function nodesOf(page, tree, component, mass) {
  const { levels, keys, parents } = tree;
  const nodes = keys.map((of, level) =>
    of.map((key, node) => ({
      level,
      name: levels[level],
      key,
      label: page.words.key(levels[level], key),
      children: [],
      ...tree.posteriors[component].summary(level, node, mass),
      ...tree.released(component, level, node),
    })),
  );
  parents.forEach((of, level) => of.forEach((parent, node) => nodes[level][parent].children.push(nodes[level + 1][node])));
  return nodes;
}

function nameOf({ level, name, label }) {
  return level === 0 ? name : label;
}

/** How often the released counts contradict each other, in words. */
function contradictionsOf(nodes) {
  const inner = nodes.slice(0, -1).flat();
  const all = nodes.flat();
  const apart = inner.filter(({ released, below }) => released !== below).length;
  const negative = all.filter(({ released }) => released < 0).length;
  const said = [`As released, ${apart} of ${inner.length} counts above the leaves ${apart === 1 ? "differs" : "differ"} from the sum of those right below.`];
  if (negative > 0) said.push(` ${negative} of ${all.length} ${negative === 1 ? "lies" : "lie"} below 0.`);
  said.push(" The intervals contradict nothing.");
  return said.join("");
}

function legend() {
  const sample = (of) => svg("svg", { class: "sample", viewBox: "0 0 32 12", width: 32, height: 12, "aria-hidden": "true", focusable: "false" }, of);
  return element(
    "ul",
    { class: "legend" },
    element("li", {}, sample([svg("line", { class: "interval", x1: 2, x2: 30, y1: 6, y2: 6 }), svg("line", { class: "mean", x1: 16, x2: 16, y1: 1, y2: 11 })]), "interval and mean"),
    element("li", {}, sample(svg("path", { class: "released", d: diamond(16, 6) })), "released"),
    element("li", {}, sample(svg("circle", { class: "below", cx: 16, cy: 6, r: 4 })), "released right below, added up"),
    element("li", {}, sample(svg("line", { class: "zero", x1: 16, x2: 16, y1: 0, y2: 12 })), "zero, where it is in view"),
  );
}

const SCALES =
  "Above the leaves each row has a scale of its own, so that contradictions show; the leaves of a node share one. Compare nodes by their numbers.";

function diamond(x, y) {
  return `M${x},${y - 5}L${x + 5},${y}L${x},${y + 5}L${x - 5},${y}Z`;
}

/** Siblings as a list: leaves on one scale, other nodes each on its own. */
function branch(siblings, nodes, opened) {
  const list = element("ul", { class: "branch" });
  const shown = siblings.slice(0, MOST_SHOWN);
  const ofLeaves = rangeOf(siblings, 0);
  const add = (some) => list.append(...some.map((node) => row(node, node.below === null ? ofLeaves : rangeOf([node]), nodes, opened)));
  add(shown);
  if (siblings.length > shown.length) {
    const more = element("button", { type: "button" }, `Show ${siblings.length - shown.length} more`);
    const place = element("li", { class: "more" }, more);
    more.addEventListener("click", () => {
      place.remove();
      add(siblings.slice(MOST_SHOWN));
    });
    list.append(place);
  }
  return list;
}

/** The scale of leaves from 0 on, or of a node of many records about what is known and was released of it. */
function rangeOf(nodes, ...others) {
  const values = nodes.flatMap(({ lower, upper, released, below }) => [lower, upper, released, below ?? released]).concat(others);
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  return [low, Math.max(high, low + 1)];
}

function row(node, range, nodes, opened) {
  const id = `${node.level} ${node.key}`;
  const item = element("li", {});
  const isInner = node.children.length > 0;
  const inside = element("div", { class: "children" });
  const toggle = isInner
    ? element("button", { type: "button", class: "fold", "aria-expanded": "false", click: () => fold(!opened.has(id)) }, nameOf(node))
    : element("span", { class: "leaf" }, nameOf(node));
  const differs = node.below !== null && node.below !== node.released;
  const said = [`released ${whole(node.released)}`, node.below === null ? null : `below it ${whole(node.below)}`];
  item.append(
    element(
      "div",
      { class: "node" },
      element("div", { class: "name" }, toggle),
      picture(node, range),
      element("div", { class: "numbers" },
        element("strong", {}, node.lower === node.upper ? whole(node.lower) : `${whole(node.lower)} to ${whole(node.upper)}`),
        element("span", { class: differs || node.released < 0 ? "said contradicts" : "said" }, said.filter(Boolean).join(", "))),
    ),
    inside,
  );
  const fold = (isOpen) => {
    toggle.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) opened.add(id);
    else opened.delete(id);
    replace(inside, isOpen ? branch(node.children, nodes, opened) : null);
  };
  if (isInner && (opened.has(id) || node.level === 0)) fold(true);
  return item;
}

/** The interval of a node on the scale of its siblings, with what was released. */
function picture({ lower, upper, mean, released, below, label }, [low, high]) {
  const x = (value) => 8 + ((value - low) / (high - low)) * (WIDTH - 16);
  const middle = HEIGHT / 2;
  return svg(
    "svg",
    { class: "explorer-node", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${label}: ${lower} to ${upper}, released ${released}` },
    low <= 0 ? svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: HEIGHT }) : null,
    svg("line", { class: "interval", x1: x(lower) - 1, x2: x(upper) + 1, y1: middle, y2: middle }),
    svg("line", { class: "mean", x1: x(mean), x2: x(mean), y1: middle - 6, y2: middle + 6 }),
    below === null ? null : svg("circle", { class: "below", cx: x(below), cy: middle, r: 4 }),
    svg("path", { class: "released", d: diamond(x(released), middle) }),
  );
}

function linesOf(page, { name, where, population, mass }) {
  const places = Object.entries(where);
  const words = ["suffice", "tree", page.uri, name, ...places.flatMap(([column, key]) => ["--where", `${column}=${key}`])];
  if (population !== DEFAULT_POPULATION) words.push("--population", population);
  words.push("--mass", String(mass));
  const mapping = places.length === 0 ? "" : `, {${places.map(([column, key]) => `${pythonText(column)}: ${pythonText(key)}`).join(", ")}}`;
  const law = population === DEFAULT_POPULATION ? "" : `, population=${pythonText(population)}`;
  const python = [
    "import suffice",
    "",
    `release = suffice.open_release(${pythonText(page.uri)})`,
    `tree = release.tree(${pythonText(name)}${mapping}${law})`,
    `print(tree.table(${mass}))`,
    `print(tree.least_squares(${mass}))`,
  ].join("\n");
  return [words, python];
}
