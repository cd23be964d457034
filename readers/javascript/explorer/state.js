// What is asked, as one plain object, and the same in the address of the page.

import { hasPosterior } from "../src/release.js";

/**
 * @typedef {Object} Question
 * @property {string} statistic
 * @property {string[]} cell - a key for every group column, in declared order
 * @property {string[]|null} versus - those of another cell to compare with
 * @property {string} prior - text; empty for the family's default
 * @property {string} nPrior - text; empty for the default
 * @property {number} mass - of intervals, between 0 and 1
 * @property {string} shown - which parameter, or entry of one; empty for the first
 * @property {boolean} whole - whether the picture reaches over the whole prior
 * @property {boolean} together - whether the cell is shown together with the others, where that was published
 */

export const MARK = "#explorer&";
export const MASS = 0.95;
/** What intervals may hold, as a form asks for it. */
export const [LEAST_MASS, MOST_MASS] = [0.001, 0.999];
/** The parts beside parameters; in an address their fields begin with their names. */
export const [TREES, COLUMNS] = ["tree", "column"];
/** The field that says which part was asked last. */
const PART = "part";
/** Nodes of a tree that an address keeps open. */
const MOST_OPEN = 40;

/** The question that a page opens with: of the first statistic that there is an answer for. */
export function firstQuestion(page) {
  const answered = page.statistics.find((statistic) => {
    const table = page.likelihoods[statistic.name];
    return table === undefined ? hasPosterior(statistic) : table.reason === undefined;
  });
  return {
    statistic: (answered ?? page.statistics[0]).name,
    cell: page.groups.map((group) => group.key(0)),
    versus: null,
    prior: "",
    nPrior: "",
    mass: MASS,
    shown: "",
    whole: false,
    together: false,
  };
}

/** Write a question as the hash of an address. */
export function toHash(question) {
  const fields = new URLSearchParams();
  fields.set("statistic", question.statistic);
  for (const key of question.cell) fields.append("cell", key);
  for (const key of question.versus ?? []) fields.append("versus", key);
  if (question.prior) fields.set("prior", question.prior);
  if (question.nPrior) fields.set("n-prior", question.nPrior);
  if (question.mass !== MASS) fields.set("mass", String(question.mass));
  if (question.shown) fields.set("show", question.shown);
  if (question.whole) fields.set("whole", "yes");
  if (question.together) fields.set("together", "yes");
  return MARK + fields.toString();
}

/** Read a question from a hash; what it does not say, or says wrongly, is as in `base`. */
export function fromHash(hash, page, base) {
  if (!hash.startsWith(MARK)) return base;
  const fields = new URLSearchParams(hash.slice(MARK.length));
  const statistic = fields.get("statistic");
  const cell = cellOf(fields.getAll("cell"), page);
  const versus = cellOf(fields.getAll("versus"), page);
  const mass = Number(fields.get("mass"));
  return {
    ...base,
    statistic: page.statistics.some(({ name }) => name === statistic) ? statistic : base.statistic,
    cell: cell ?? base.cell,
    versus: page.groups.length > 0 ? versus : null,
    prior: (fields.get("prior") ?? "").slice(0, 2000),
    nPrior: (fields.get("n-prior") ?? "").slice(0, 200),
    mass: isMass(mass) ? mass : base.mass,
    shown: fields.get("show") ?? "",
    whole: fields.get("whole") === "yes",
    together: fields.get("together") === "yes",
  };
}

/** The question of a tree that a hash holds; what it does not say, or says wrongly, is as a page opens. */
export function treeFromHash(hash, page, populations) {
  const fields = fieldsOf(hash, TREES);
  const tree = page.trees.find(({ name }) => name === fields.get("name")) ?? page.trees[0];
  const { components } = tree;
  const first = components.includes("true") ? "true" : components[0];
  return {
    name: tree.name,
    where: placeFrom(fields, tree.groups),
    component: oneOf(components, fields.get("counted"), first),
    population: oneOf(populations, fields.get("leaves"), populations[0]),
    mass: massOr(fields.get("mass"), MASS),
    opened: fields.getAll("open").slice(0, MOST_OPEN),
  };
}

/** The fields of a tree's question. */
export function treeFields({ name, where, component, population, mass, opened }, usual) {
  return [
    ["name", name],
    ...Object.values(where).map((key) => ["key", key]),
    ["counted", component],
    ...(population === usual ? [] : [["leaves", population]]),
    ...(mass === MASS ? [] : [["mass", String(mass)]]),
    ...[...opened].slice(0, MOST_OPEN).map((node) => ["open", node]),
  ];
}

/** The question of a column that a hash holds, likewise; `least` is null where it does not say it. */
export function columnFromHash(hash, page, kinds) {
  const fields = fieldsOf(hash, COLUMNS);
  const column = page.columns.find(({ name }) => name === fields.get("name")) ?? page.columns[0];
  const least = fields.get("least");
  return {
    name: column.name,
    where: placeFrom(fields, column.groups),
    of: oneOf(kinds, fields.get("of"), kinds[0]),
    level: shareOr(fields.get("level"), 0.5),
    least: least !== null && least.trim() !== "" && Number.isFinite(Number(least)) ? Number(least) : null,
    mass: massOr(fields.get("mass"), MASS),
    prior: (fields.get("prior") ?? "").slice(0, 2000),
    whole: fields.get("whole") === "yes",
  };
}

/** The fields of a column's question. */
export function columnFields({ name, where, of, level, least, mass, prior, whole }, usual) {
  return [
    ["name", name],
    ...Object.values(where).map((key) => ["key", key]),
    ...(of === usual ? [] : [["of", of]]),
    ["level", String(level)],
    ...(least === null ? [] : [["least", String(least)]]),
    ...(mass === MASS ? [] : [["mass", String(mass)]]),
    ...(prior ? [["prior", prior]] : []),
    ...(whole ? [["whole", "yes"]] : []),
  ];
}

/** Which part an address asked last; null where none, or that of parameters. */
export function partOf(hash) {
  return hash.startsWith(MARK) ? oneOf([TREES, COLUMNS], new URLSearchParams(hash.slice(MARK.length)).get(PART), null) : null;
}

/** The fields of one part of a hash, by the names that they have in it. */
function fieldsOf(hash, part) {
  const fields = hash.startsWith(MARK) ? [...new URLSearchParams(hash.slice(MARK.length))] : [];
  const ofPart = fields.filter(([name]) => name.startsWith(`${part}.`));
  return new URLSearchParams(ofPart.map(([name, value]) => [name.slice(part.length + 1), value]));
}

/** A hash with other fields of one part, the last that was asked; those of the other parts stay. */
export function withPart(hash, part, fields) {
  const others = new URLSearchParams(hash.startsWith(MARK) ? hash.slice(MARK.length) : "");
  const kept = [...others].filter(([name]) => name !== PART && !name.startsWith(`${part}.`));
  const named = fields.map(([name, value]) => [`${part}.${name}`, value]);
  return MARK + new URLSearchParams([...kept, ...named, [PART, part]]).toString();
}

/** A hash with another question about parameters; those of the other parts stay. */
export function withQuestion(hash, question) {
  const others = [TREES, COLUMNS].flatMap((part) => [...fieldsOf(hash, part)].map(([name, value]) => [`${part}.${name}`, value]));
  const asked = toHash(question);
  return others.length === 0 ? asked : `${asked}&${new URLSearchParams(others)}`;
}

/** Keep a hash in the address, where the browser allows it. */
export function remember(hash) {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // An address that cannot be changed loses nothing but a link to this question.
  }
}

/** A key for every group, by column: as stated where all are the groups' own, or each group's first. */
function placeFrom(fields, groups) {
  const keys = fields.getAll("key");
  const areKeys = keys.length === groups.length && groups.every((group, index) => group.has(keys[index]));
  return Object.fromEntries(groups.map((group, index) => [group.column, areKeys ? keys[index] : group.key(0)]));
}

function oneOf(values, value, otherwise) {
  return values.includes(value) ? value : otherwise;
}

function shareOr(text, otherwise) {
  const share = Number(text);
  return share > 0 && share < 1 ? share : otherwise;
}

/** Whether a form takes the mass: with more, 100 % would be said. */
function isMass(mass) {
  return mass >= LEAST_MASS && mass <= MOST_MASS;
}

function massOr(text, otherwise) {
  const mass = Number(text);
  return isMass(mass) ? mass : otherwise;
}

/** The keys of a cell by group column. */
export function whereOf(page, keys) {
  return Object.fromEntries(page.groups.map(({ column }, index) => [column, keys[index]]));
}

/** A cell in words, as `Kennedy, January`, or as `origin=JFK, month=1`. */
export function inWords(page, keys) {
  return page.groups.map(({ column }, index) => page.words.cell(column, keys[index]) ?? `${column}=${keys[index]}`).join(", ");
}

function cellOf(keys, page) {
  if (keys.length !== page.groups.length || keys.length === 0) return null;
  return page.groups.every((group, index) => group.has(keys[index])) ? keys : null;
}
