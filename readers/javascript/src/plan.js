/** What follows from a canonical plan, computed again: the price, the cells, and each statistic's block. */

import { besideSums, BLOCKS, checkEntry, squaredSensitivity } from "./blocks.js";
import { encode } from "./canonical_json.js";
import { asksForCone, CONE_NOISE, coneFields } from "./cone_noise.js";
import { group } from "./domains.js";
import { shown } from "./errors.js";
import { add, compare, divide, format, multiply, nextDown, nextUp, numberRoot, ofNumber, rational, toNumber } from "./exact.js";
import { ONE_SUM } from "./families.js";
import { integer, isMapping, number, onlyKeys, refused } from "./plan_values.js";
import { quantileFields, sampleFields } from "./samples.js";

const ZERO = rational(0n);
const NOISE_REACH = rational(64n);
const LARGEST_SCALE = 2 ** 55;
const MOST_CELLS = 1e7;
const MOST_COMPONENTS = 65536;

/** The heading of a release and the fields of its statistics, as its manifest has to state them. */
export function derive(plan, order) {
  const { privacy } = plan;
  onlyKeys(plan, ["dataset", "derived", "format_version", "groups", "max_total_rows", "name", "privacy", "statistics", "window"], ["hierarchies", "where"], "plan");
  checkCondition(plan.where, "where");
  const measure = isMapping(privacy) && Object.hasOwn(privacy, "rho") ? "rho" : "epsilon";
  onlyKeys(privacy, [measure, "neighboring", "unit"], [], "privacy");
  if (!isMapping(plan.derived) || !Object.values(plan.derived).every(isMapping)) throw refused("derived", "it is no mapping");
  if (plan.window !== null) {
    onlyKeys(plan.window, ["column", "every", "time_zone"], ["files_by_window"], "window");
    const { files_by_window: files } = plan.window;
    if (files !== undefined && typeof files !== "string") throw refused("window", "files_by_window is no text");
  }
  const unit = privacy.unit === "row" ? null : privacy.unit;
  if (unit !== null) {
    onlyKeys(unit, ["column", "max_rows", "nulls"], ["max_rows_per_cell", "type"], "privacy.unit");
    if (typeof unit.column !== "string" || !["drop", "own_unit"].includes(unit.nulls)) throw refused("privacy.unit", "it is no unit");
  }
  const maxRows = unit ? Number(integer(unit.max_rows, "privacy.unit.max_rows")) : 1;
  if (!(maxRows >= 1)) throw refused("privacy.unit", "max_rows is no count");
  const isBounded = unit?.max_rows_per_cell !== undefined;
  const maxInCell = isBounded ? Number(integer(unit.max_rows_per_cell, "privacy.unit.max_rows_per_cell")) : maxRows;
  if (isBounded && !(maxInCell >= 1 && maxInCell < maxRows)) throw refused("privacy.unit", "max_rows_per_cell is no count below max_rows");
  const replaces = privacy.neighboring === "replace_one";
  if (!replaces && privacy.neighboring !== "add_or_remove_one") throw refused("privacy", "neighboring is no relation");
  const loss = number(privacy[measure], `privacy.${measure}`);
  if (compare(loss, ZERO) <= 0) throw refused(`privacy.${measure}`, "it is not above 0");
  const heading = cellsOf(plan.groups, order.groups, "groups");
  const entries = ordered(plan.statistics, order.statistics, "statistics");
  checkVariables(plan.statistics, order.variables);
  checkHierarchies(plan.hierarchies, plan.statistics);
  const shares = entries.reduce((sum, [name, entry]) => add(sum, share(name, entry)), ZERO);
  const mayBeMinimal = replaces && unit === null && plan.window === null && plan.where === undefined;
  const shared = {
    replaces, unit, maxInCell, isFiltered: plan.where !== undefined,
    maxTotalRows: integer(plan.max_total_rows, "max_total_rows"),
  };
  const statistics = entries.map(([name, entry]) => {
    const amount = divide(multiply(loss, share(name, entry)), shares);
    const stated = statedCells(name, entry, plan.groups, order.variables);
    const { cells, groups } = stated ?? heading;
    const hasGroups = groups.length > 0;
    const rows = Math.min(maxRows, maxInCell * cells);
    const price = { measure, amount };
    return { name, entry, price, stated, terms: { ...shared, rows, cells, hasGroups, mayBeMinimal: mayBeMinimal && !hasGroups } };
  });
  return {
    heading: {
      name: plan.name,
      dataset: plan.dataset,
      [measure]: format(loss),
      neighboring: privacy.neighboring,
      unit: unit ? `column:${unit.column}` : "row",
      ...(unit ? { max_rows: maxRows, unit_nulls: unit.nulls } : {}),
      ...(isBounded ? { max_rows_per_cell: maxInCell } : {}),
      max_total_rows: Number(plan.max_total_rows),
      ...heading,
    },
    statistics,
  };
}

/** The number of cells that groups make, and the groups as a manifest states them. */
function cellsOf(mapping, names, place) {
  const groups = ordered(mapping, names, place).map(([column, domain]) => group(column, domain));
  const cells = groups.reduce((product, { size }) => product * size, 1);
  if (cells > MOST_CELLS) throw refused(place, "there are too many cells");
  return { cells, groups: groups.map(({ stated }) => stated) };
}

/** The same of groups that a statistic states; null where they are the plan's, which it then does not state. */
function statedCells(name, { groups }, ofPlan, variables) {
  if (groups === undefined) return null;
  const place = `statistics.${shown(name)}.groups`;
  if (!isMapping(groups) || encode(groups) === encode(ofPlan)) throw refused(place, "they are none of its own");
  const order = variables.find(([of, key]) => of === name && key === "groups");
  return cellsOf(groups, order?.[2], place);
}

/**
 * The fields of a statistic that follow from the plan: all of them in families that this reader knows, else
 * the price and the noise, which follow from the sensitivity that is stated.
 */
export function statisticFields({ name, entry, price, stated: cells, terms: shared }, stated) {
  const isFiltered = shared.isFiltered || entry.where !== undefined;
  const terms = { ...shared, isFiltered, mayBeMinimal: shared.mayBeMinimal && !isFiltered };
  const make = Object.hasOwn(BLOCKS, entry.family) ? BLOCKS[entry.family] : null;
  if (make !== null) checkEntry(entry, terms, `statistics.${shown(name)}`);
  const isKnown = isComputedAgain(entry);
  const place = `statistics.${shown(name)}`;
  const isOnCone = asksForCone(entry, place);
  const ofNoise = isOnCone ? CONE_NOISE : "discrete_laplace";
  const mechanism = entry.sample === undefined ? ofNoise : "exponential";
  const fields = { name, family: entry.family, [price.measure]: format(price.amount), mechanism, ...cells };
  if (isOnCone) return Object.assign(fields, coneFields(entry, price, terms, place));
  if (entry.sample !== undefined && entry.family === "histogram") {
    return Object.assign(fields, {
      columns: [entry.column],
      rows_of: sentence(entry, terms),
      design: "partition_of_unity",
      ...quantileFields(entry, price, terms, stated, place),
    });
  }
  if (entry.sample !== undefined) {
    if (!isKnown || !Object.hasOwn(ONE_SUM, entry.family)) throw refused(place, "no sample is of this family");
    const block = make(entry, terms.mayBeMinimal, stated, place);
    return Object.assign(fields, {
      columns: [entry.column],
      rows_of: sentence(entry, terms),
      design: block.minimalL1 === undefined ? "partition_of_unity" : "minimal",
      parameter: ONE_SUM[entry.family].parameter,
      ...sampleFields(entry.sample, price, stated, place),
      parameters: block.parameters,
    });
  }
  let l1 = integer(stated.l1_sensitivity, `${place}.l1_sensitivity`);
  if (isKnown) {
    const sums = make(entry, terms.mayBeMinimal, stated, place);
    const isCounted = entry.count_clipped !== undefined;
    const block = isCounted ? besideSums(sums, entry.count_clipped, `${place}.count_clipped`) : sums;
    const ofPrivateN = isCounted ? "bounded" : "partition_of_unity";
    if (block.components.length > MOST_COMPONENTS) throw refused(place, "it has too many components");
    const ofRecord = block.recordL1;
    const rows = entry.rows_of === "units" ? 1 : terms.rows;
    l1 = block.minimalL1 ?? ofRecord * (terms.replaces ? 2n : 1n) * BigInt(rows);
    const squared = squaredSensitivity(block, { ...terms, rows });
    if (price.measure === "rho" && integer(stated.l2_squared, `${place}.l2_squared`) !== squared) {
      throw refused(`${place}.l2_squared`, "it is not what the plan's bounds make it");
    }
    const noise = noiseFields(l1, price, stated, place);
    const reach = add(rational(block.largest * terms.maxTotalRows), multiply(NOISE_REACH, number(noise.scale, `${place}.scale`)));
    Object.assign(fields, noise, {
      columns: [entry.column],
      rows_of: sentence(entry, terms),
      design: block.minimalL1 === undefined ? ofPrivateN : "minimal",
      components: block.components,
      l1_sensitivity: String(l1),
      partition_total: block.minimalL1 === undefined && !isCounted ? String(ofRecord) : null,
      value_type: compare(reach, rational(2n ** 63n)) < 0 ? "int64" : "decimal128(38, 0)",
      quantities: block.quantities.map((one) => quantity(one, block.components)),
      ...(block.weight ? { moment_weight: format(block.weight) } : {}),
      ...(isCounted ? { count_clipped: block.counted } : {}),
      parameters: block.parameters,
    });
    return fields;
  }
  if (l1 < 1n) throw refused(`${place}.l1_sensitivity`, "it is below 1");
  return Object.assign(fields, noiseFields(l1, price, stated, place));
}

/**
 * The scale of the noise: the least one by the L1 sensitivity, or of rho by the square of the L2 sensitivity. Of
 * families that this reader does not know both are taken as stated.
 */
function noiseFields(l1, { measure, amount }, stated, place) {
  if (measure === "epsilon") return { scale: leastScale(l1, amount).text };
  const squared = integer(stated.l2_squared, `${place}.l2_squared`);
  if (squared < 1n || squared > l1 * l1) throw refused(`${place}.l2_squared`, "it is below 1, or above the square of the L1 sensitivity");
  // A shift by 1 may lose so much that its square, times the squared sensitivity, is at most 2 rho.
  const shift = ofNumber(numberRoot(divide(multiply(rational(2n), amount), rational(squared))));
  return { l2_squared: String(squared), scale: leastScale(1n, shift).text };
}

/** Whether every field of a statistic is computed again; of others the map to quantities is taken as stated. */
export function isComputedAgain({ family, within_unit: within }) {
  return Object.hasOwn(BLOCKS, family) && within === undefined;
}

/** The least float64 noise scale whose privacy loss, rounded up, is at most epsilon. */
export function leastScale(l1, epsilon) {
  let down = toNumber(epsilon);
  if (compare(ofNumber(down), epsilon) > 0) down = nextDown(down);
  const exact = divide(rational(l1), ofNumber(down));
  let scale = toNumber(exact);
  if (compare(ofNumber(scale), exact) < 0) scale = nextUp(scale);
  if (!(scale > 0 && scale <= LARGEST_SCALE)) throw refused("statistics", "a noise scale is above 2^55");
  return { scale, text: format(ofNumber(scale)) };
}

function share(name, entry) {
  const found = number(entry?.share, `statistics.${shown(name)}.share`);
  if (compare(found, rational(1n, 1000000n)) < 0 || compare(found, rational(1000000n)) > 0) {
    throw refused(`statistics.${shown(name)}.share`, "it is no share");
  }
  return found;
}

function sentence(entry, terms) {
  const ofUnits = unitSentence(entry, terms);
  return terms.isFiltered ? `${ofUnits ?? "of rows"}, where the spec's condition holds` : ofUnits;
}

/** A condition of rows: a column's name or a mapping, of which a reader needs no more. */
function checkCondition(condition, place) {
  if (condition !== undefined && typeof condition !== "string" && !isMapping(condition)) throw refused(place, "it is no condition");
}

function unitSentence(entry, { unit, rows, maxInCell, hasGroups }) {
  if (unit === null) return null;
  if (entry.rows_of !== "units") {
    const inCell = maxInCell < rows ? `, at most ${maxInCell} in a cell` : "";
    return `of rows kept: at most ${rows} of each unit${inCell}`;
  }
  if (entry.family === "normal") {
    const where = hasGroups ? " in one cell" : "";
    return `of units: the mean of each unit's rows${where}; the variance is that of these means`;
  }
  return `of units: one row of each unit, chosen by hash${hasGroups ? ", in its cell" : ""}`;
}

function quantity({ name, category = null, coefficients, ofPublicN = ZERO }, components) {
  const stated = coefficients
    .map((weight, i) => [components[i], weight])
    .filter(([, weight]) => weight.n !== 0n)
    .map(([component, weight]) => [component, format(weight)]);
  return { name, category, coefficients: Object.fromEntries(stated), public_n_coefficient: format(ofPublicN) };
}

function ordered(mapping, names, place) {
  const keys = Object.keys(mapping ?? {});
  if (!Array.isArray(names) || names.length !== keys.length || !names.every((name) => Object.hasOwn(mapping, name)) || new Set(names).size !== names.length) {
    throw refused(`declared_order.${place}`, "its names are not those of the plan");
  }
  return names.map((name) => [name, mapping[name]]);
}

/** The order of the names of mappings by variables or columns; families of one column have groups alone. */
/** Trees: every level is a statistic, of one family. Whether their keys nest, the reader in Python computes. */
function checkHierarchies(hierarchies, statistics) {
  if (hierarchies === undefined) return;
  if (!isMapping(hierarchies) || Object.keys(hierarchies).length === 0) throw refused("hierarchies", "it is no mapping of trees");
  for (const [name, levels] of Object.entries(hierarchies)) {
    const entries = Array.isArray(levels) ? levels.map((level) => (Object.hasOwn(statistics, `${name}.${level}`) ? statistics[`${name}.${level}`] : null)) : [];
    const isTree = entries.length >= 2 && new Set(levels).size === levels.length
      && entries.every((entry) => entry !== null && entry.family === entries[0].family);
    if (!isTree) throw refused(`hierarchies.${shown(name)}`, "its levels are not statistics of one family");
  }
}

function checkVariables(statistics, variables) {
  if (!Array.isArray(variables)) throw refused("declared_order.variables", "it is no list");
  const seen = new Set();
  for (const [name, key, names, ...more] of variables) {
    const entry = Object.hasOwn(statistics, name) ? statistics[name] : null;
    const hasNone = entry !== null && Object.hasOwn(BLOCKS, entry.family) && key !== "groups";
    const isKnown = entry === null || hasNone || !Object.hasOwn(entry, key);
    if (isKnown || more.length || seen.has(`${name} ${key}`)) throw refused("declared_order.variables", "its names are not those of the plan");
    seen.add(`${name} ${key}`);
    ordered(entry[key], names, "variables");
  }
}
