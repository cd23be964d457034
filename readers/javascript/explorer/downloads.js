// What is shown, as files that say where they come from.

import { element } from "./dom.js";
import { commandLine, pythonLines } from "./lines.js";
import { whereOf } from "./state.js";

/** A button that hands over a file made when it is pressed. */
export function offer(name, file, type, make) {
  const press = () => {
    const address = URL.createObjectURL(new Blob([make()], { type }));
    const link = element("a", { href: address, download: file.replaceAll(/[^A-Za-z0-9._-]/g, "_") });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return element("button", { type: "button", click: press }, name);
}

/** What is shown as JSON. */
export function asJson(page, answer) {
  return `${JSON.stringify({ source: sourceOf(page, answer), ...numbersOf(page, answer), densities: densitiesOf(answer) }, null, 2)}\n`;
}

/** The numbers that are shown as CSV, with the source in a column of every row. */
export function asCsv(page, answer) {
  const { rows } = numbersOf(page, answer);
  const source = sourceOf(page, answer);
  const said = {
    release: source.release,
    release_id: source.release_id,
    statistic: source.statistic,
    prior: source.prior,
    n_prior: source.n_prior,
    mass: source.mass,
  };
  const groups = page.groups.map(({ column }) => column);
  const heads = [...groups, "parameter", "category", "method", "mean", "sd", "lower", "upper", ...Object.keys(said)];
  const lines = rows.map((row) => [
    ...groups.map((column) => row.cell[column]),
    ...[row.parameter, row.category, row.method, row.mean, row.sd, row.lower, row.upper],
    ...Object.values(said),
  ]);
  return [heads, ...lines].map((line) => line.map(csvField).join(",")).join("\r\n") + "\r\n";
}

function sourceOf(page, { statistic, prior, nPrior, posterior, other, question, sides, entry }) {
  return {
    release: page.label,
    release_id: page.releaseId,
    uri: page.uri,
    ...page.loss,
    cost: "0",
    statistic: statistic.name,
    family: statistic.family,
    methods: [...new Set(sides.map(({ kind }) => methodOf(kind)))],
    prior,
    n_prior: nPrior,
    mass: question.mass,
    interval: posterior.defaultInterval,
    conflicts: [posterior, other].flatMap((one) => one?.conflict?.lines ?? []),
    computed_by: "the explorer of the release's page, by quadrature",
    python: pythonLines(page, question, entry.parameter),
    command: commandLine(page, question),
  };
}

function numbersOf(page, { entry, question, sides, contrast }) {
  const rows = sides.map(({ kind, law, interval }) => ({
    cell: whereOf(page, kind === "versus" ? question.versus : question.cell),
    parameter: entry.parameter,
    category: entry.category,
    method: methodOf(kind),
    mean: law.mean,
    sd: law.sd,
    lower: interval[0],
    upper: interval[1],
  }));
  return contrast ? { rows, comparison: contrast } : { rows };
}

function densitiesOf({ curves: { points, curves }, question }) {
  const named = (kind) =>
    kind === "noise-aware" && question.versus !== null ? "first" : kind === "versus" ? "second" : kind;
  return { value: points, ...Object.fromEntries(curves.map(({ kind, densities }) => [named(kind), [...densities]])) };
}

function methodOf(kind) {
  return kind === "plug-in" ? "plug-in" : "noise-aware";
}

// A spreadsheet runs text that begins like a formula: an apostrophe keeps it text, as in the files of Python.
const RUN = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function csvField(value) {
  if (value === null || value === undefined) return "";
  const given = String(value);
  const text = typeof value === "string" && RUN.test(given) && !NUMBER.test(given) ? `'${given}` : given;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
