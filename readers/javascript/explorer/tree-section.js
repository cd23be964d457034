// A tree that folds open: every node with its interval, what was released of it, and where that contradicts itself.

import { DEFAULT_POPULATION } from "../src/tree/populations.js";
import { element, replace, svg } from "./dom.js";
import { choice, keyField, numberField } from "./fields.js";
import { pythonText } from "./lines.js";
import { brief, whole } from "./numbers.js";
import { latest, percent, sameElsewhere } from "./parts.js";
import { TREES, remember, treeFields, treeFromHash, withPart } from "./state.js";

/** Children that are shown of a node at once. */
const MOST_SHOWN = 60;
const WIDTH = 240;
const HEIGHT = 26;

const POPULATIONS = [
  { value: "contaminated", text: "rates of one population, some outliers" },
  { value: "zero-inflated", text: "rates, some leaves are empty" },
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
  const fromAddress = () => treeFromHash(location.hash, page, POPULATIONS.map(({ value }) => value));
  const asked = fromAddress();
  const tree = choice("Tree", page.trees.map(({ name }) => ({ value: name, text: page.words.statistic(name) })), (name) => choose(name));
  const beside = element("div", { class: "cell" });
  const component = choice("Counted", [], (name) => change({ component: name }));
  const population = choice(
    "Leaves are drawn from",
    POPULATIONS,
    (name) => change({ population: name }),
    "A prior of the leaves, whose mean and spread, and share of empty ones, are integrated over.",
  );
  const mass = numberField("Probability of intervals, in %", { low: 0.1, high: 99.9, step: "any" }, (of) =>
    change({ mass: Number((of / 100).toPrecision(12)) }),
  );
  const which = element("fieldset", {}, element("legend", {}, "Tree"), page.trees.length > 1 ? tree.node : null, beside, component.node);
  const form = element(
    "form",
    { class: "explorer-form", "aria-label": "Which tree", submit: (event) => event.preventDefault() },
    which,
    element("fieldset", {}, element("legend", {}, "Shown as"), population.node, mass.node),
  );
  const headline = element("p", { class: "explorer-answer", role: "status" });
  const contradictions = element("p", {});
  const bounds = element("p", {});
  const list = element("div", { class: "explorer-tree" });
  const after = element("div", { class: "explorer-lines" });
  const elsewhere = element("div", { class: "explorer-lines" });
  const answered = element("div", { class: "explorer-answers" }, headline, contradictions, bounds, list, after);
  const complaint = element("div", { role: "status" });
  const ask = latest(answered, complaint);
  const opened = new Set();
  const fieldsNow = () => treeFields({ ...asked, opened }, DEFAULT_POPULATION);
  const keep = () => remember(withPart(location.hash, TREES, fieldsNow()));
  begin(asked);
  addEventListener("hashchange", () => {
    const wanted = fromAddress();
    if (JSON.stringify(treeFields(wanted, DEFAULT_POPULATION)) !== JSON.stringify(fieldsNow())) begin(wanted);
  });

  function begin({ opened: wanted, ...question }) {
    const { groups, components } = page.trees.find((one) => one.name === question.name);
    opened.clear();
    for (const node of wanted) opened.add(node);
    replace(beside, groups.map((group) => {
      const field = keyField(group, (key) => change({ where: { ...asked.where, [group.column]: key } }));
      field.show(question.where[group.column]);
      return field.node;
    }));
    component.fill(components.map((value) => ({ value, text: page.words.value(question.name, value) })));
    component.node.hidden = components.length < 2;
    // One tree, of no groups and of one kind of count: there is nothing to choose.
    which.hidden = page.trees.length < 2 && groups.length === 0 && components.length < 2;
    change(question, false);
  }

  /** Another tree: its first key of every group, and nothing folded open. */
  function choose(name) {
    begin({ ...treeFromHash("", { trees: page.trees.filter((one) => one.name === name) }, [asked.population]), mass: asked.mass });
    keep();
  }

  function change(patch, isRemembered = true) {
    Object.assign(asked, patch);
    if (isRemembered) keep();
    tree.show(asked.name);
    component.show(asked.component);
    population.show(asked.population);
    mass.show(Number((asked.mass * 100).toPrecision(12)));
    // Also where this reader refuses: Python may work it out.
    replace(elsewhere, sameElsewhere(...linesOf(page, asked)));
    const { name, where, population: of } = asked;
    ask((pause) => reader.tree(name, { where, population: of }, pause), show);
  }

  function show(found) {
    const { component: name, mass: within } = asked;
    const nodes = nodesOf(page, found, name, within);
    const [root] = nodes[0];
    forgetUnknown(opened, nodes);
    const [least, most] = [element("strong", {}, root.number(root.lower)), element("strong", {}, root.number(root.upper))];
    replace(headline, `With ${percent(within)} probability, ${page.words.statistic(asked.name)} `, ...saidOf(found, least, most));
    replace(contradictions, contradictionsOf(nodes, found.unit));
    replace(bounds, found.unit.notes.join(" "));
    bounds.hidden = !found.unit.isTotal;
    replace(list, legend(), element("p", { class: "hint" }, SCALES), branch([root], nodes, { opened, keep }));
    replace(
      after,
      element("p", { class: "hint" }, `Leaves: ${found.population}.`), // not what the form has, while that is worked out
      found.notes.slice(found.unit.notes.length).map((note) => element("p", { class: "hint" }, note)),
      element("p", { class: "hint" }, found.unit.isTotal ? HOW_TOTALS : HOW_COUNTS),
    );
  }

  /** What the root has: a total in the column's unit, or records, of a category where there are several. */
  function saidOf({ unit, components }, least, most) {
    const { unit: named } = page.trees.find((one) => one.name === asked.name);
    if (unit.isTotal) return ["has a total of ", least, " to ", most, named ? ` ${named}.` : "."];
    return ["has ", least, " to ", most, components.length > 1 ? ` records of ${page.words.value(asked.name, asked.component)}.` : " records."];
  }

  return { title: "Explore the trees", lead: LEAD, node: element("div", { class: "explorer-body" }, form, element("div", { class: "explorer-right" }, complaint, answered, elsewhere)) };
}

const LEAD =
  "Counts and totals that were released level by level contradict each other. Open a node to see those below it: what was " +
  "released, and what it can have been, given all of the tree.";

const HOW_COUNTS =
  "All counts are inferred together, each tree of a category by itself: whole numbers, never negative, that add up in every " +
  "draw. Ends of intervals are those of Python and of the command line.";

const HOW_TOTALS =
  "All totals are inferred together: never negative, and they add up in every draw. What lies above the bound is missing from " +
  "all of them alike. Ends of intervals are those of Python and of the command line.";

/** A count, or a total, as people read it: without places that its noise does not have. */
function numberOf(value, step) {
  return step >= 1 || Math.abs(value) >= 100 ? whole(Math.round(value)) : brief(value, 4);
}

/** All nodes of one component, level by level, each with its numbers and its children. */
function nodesOf(page, tree, component, mass) {
  const { levels, keys, parents } = tree;
  const nodes = keys.map((of, level) =>
    of.map((key, node) => ({
      level,
      name: levels[level],
      key,
      label: page.words.key(levels[level], key),
      number: (value) => numberOf(value, tree.unit.size),
      children: [],
      ...tree.summary(component, level, node, mass),
      ...tree.released(component, level, node),
    })),
  );
  parents.forEach((of, level) => of.forEach((parent, node) => nodes[level][parent].children.push(nodes[level + 1][node])));
  return nodes;
}

function idOf({ level, key }) {
  return `${level} ${key}`;
}

/** Nodes that stand open, without those that an address named and that the tree lacks. */
function forgetUnknown(opened, nodes) {
  const known = new Set(nodes.slice(0, -1).flat().map(idOf));
  for (const id of opened) if (!known.has(id)) opened.delete(id);
}

function nameOf({ level, name, label }) {
  return level === 0 ? name : label;
}

/** How often the released numbers contradict each other, in words. */
function contradictionsOf(nodes, { isTotal, steps }) {
  const inner = nodes.slice(0, -1).flat();
  const all = nodes.flat();
  const apart = inner.filter(({ released, below }) => released !== below).length;
  const negative = all.filter(({ released }) => released < 0).length;
  const as = steps > 1 ? "As released, but for rounding," : "As released,";
  const said = [`${as} ${apart} of ${inner.length} ${isTotal ? "totals" : "counts"} above the leaves ${apart === 1 ? "differs" : "differ"} from the sum of those right below.`];
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
function branch(siblings, nodes, folds) {
  const list = element("ul", { class: "branch" });
  const shown = siblings.slice(0, MOST_SHOWN);
  const ofLeaves = rangeOf(siblings, 0);
  const add = (some) => list.append(...some.map((node) => row(node, node.below === null ? ofLeaves : rangeOf([node]), nodes, folds)));
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

function row(node, range, nodes, folds) {
  const { opened, keep } = folds;
  const id = idOf(node);
  const item = element("li", {});
  const isInner = node.children.length > 0;
  const inside = element("div", { class: "children" });
  const toggle = isInner
    ? element("button", { type: "button", class: "fold", "aria-expanded": "false", click: () => toggled(toggle.getAttribute("aria-expanded") !== "true") }, nameOf(node))
    : element("span", { class: "leaf" }, nameOf(node));
  const differs = node.below !== null && node.below !== node.released;
  const { number } = node;
  const [lower, upper] = [number(node.lower), number(node.upper)];
  const said = [element("span", {}, `released ${number(node.released)}${node.below === null ? "" : ","}`)];
  if (node.below !== null) said.push(" ", element("span", {}, `below it ${number(node.below)}`));
  item.append(
    element(
      "div",
      { class: "node" },
      element("div", { class: "name" }, toggle),
      picture(node, range),
      element("div", { class: "numbers" },
        element("strong", {}, lower === upper ? lower : `${lower} to ${upper}`),
        element("span", { class: differs || node.released < 0 ? "said contradicts" : "said" }, ...said)),
    ),
    inside,
  );
  const fold = (isOpen) => {
    toggle.setAttribute("aria-expanded", String(isOpen));
    // The root is open as a page opens.
    if (isOpen && node.level > 0) opened.add(id);
    else opened.delete(id);
    replace(inside, isOpen ? branch(node.children, nodes, folds) : null);
  };
  const toggled = (isOpen) => {
    fold(isOpen);
    keep();
  };
  if (isInner && (opened.has(id) || node.level === 0)) fold(true);
  return item;
}

/** The interval of a node on the scale of its siblings, with what was released. */
function picture(node, [low, high]) {
  const { lower, upper, mean, released, below, number } = node;
  const x = (value) => 8 + ((value - low) / (high - low)) * (WIDTH - 16);
  const middle = HEIGHT / 2;
  return svg(
    "svg",
    { class: "explorer-node", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${nameOf(node)}: ${number(lower)} to ${number(upper)}, released ${number(released)}` },
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
