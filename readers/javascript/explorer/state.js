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
    mass: mass > 0 && mass < 1 ? mass : base.mass,
    shown: fields.get("show") ?? "",
    whole: fields.get("whole") === "yes",
    together: fields.get("together") === "yes",
  };
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
