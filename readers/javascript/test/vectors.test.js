// Every test vector of the format: what is valid is read to the digits that it states, what is hostile refused.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ReleaseError, readRelease } from "../src/index.js";

const ROOT = fileURLToPath(new URL("../../../tests/vectors/", import.meta.url));
const KEY = readFileSync(`${ROOT}test-key.pem.pub`, "utf8");

const json = (path) => JSON.parse(readFileSync(ROOT + path, "utf8"));

async function read(path, options) {
  const files = {};
  for (const name of existsSync(ROOT + path) ? readdirSync(ROOT + path) : []) {
    files[name] = new Uint8Array(readFileSync(`${ROOT}${path}/${name}`));
  }
  const { "manifest.json": manifest, ...others } = files;
  return readRelease(manifest, others, options);
}

/** Expected numbers by parameter as this reader names it: one for each entry where there are several. */
function* numbersOf(parameters, categories) {
  for (const [name, numbers] of Object.entries(parameters)) {
    if (!Array.isArray(numbers)) yield [name, numbers];
    else for (const [i, category] of categories.entries()) yield [`${name}[${category}]`, numbers[i]];
  }
}

for (const { name, signed } of json("index.json").valid) {
  test(`reads ${name}`, async (t) => {
    const expected = json(`valid/${name}/expected.json`);
    const release = await read(`valid/${name}/release`, signed ? { publicKeys: [KEY] } : {});
    assert.equal(release.releaseId, expected.release_id);
    assert.deepEqual(release.about, expected.about);
    assert.equal(release.signatureStatus, signed ? "checked" : "unsigned");
    for (const [statistic, { rows }] of Object.entries(expected.tables)) {
      const found = release.table(statistic);
      assert.equal(found.length, rows.length);
      found.forEach((row, i) => {
        assert.equal(row.quantity, rows[i].quantity);
        for (const [own, stated] of [[row.estimate, rows[i].estimate], [row.noiseSd, rows[i].noise_sd]]) {
          assert.ok(Math.abs(own - stated) <= 1e-12 * Math.abs(stated), `${statistic} ${i}: ${own} ${stated}`);
        }
        for (const [column, key] of Object.entries(row.cell)) assert.equal(String(key), String(rows[i][column]));
      });
    }
    for (const [statistic, rows] of Object.entries(expected.samples)) {
      const found = release.samples(statistic);
      assert.equal(found.length, rows.length);
      found.forEach((row, i) => {
        assert.equal(row.parameter, rows[i].parameter);
        assert.equal(row.draw, rows[i].draw);
        // Of a drawn quantile there are the edges of a bin, of a posterior sample a value.
        const columns = "value" in rows[i] ? ["value"] : ["lower", "upper"];
        for (const column of columns) {
          assert.ok(Math.abs(row[column] - rows[i][column]) <= 1e-12 * Math.abs(rows[i][column]), `${row[column]} ${rows[i][column]}`);
        }
        for (const [column, key] of Object.entries(row.cell)) assert.equal(String(key), String(rows[i][column]));
      });
      assert.throws(() => release.table(statistic), { code: "statistic" });
      assert.throws(() => release.posterior(statistic, { where: release.cells(statistic)[0] }), { code: "statistic" });
    }
    for (const posterior of expected.posteriors) await t.test(`${posterior.statistic} ${JSON.stringify(posterior.arguments)}`, (own) => {
      compare(release, posterior, own);
    });
  });
}

function compare(release, { statistic, arguments: given, prior, n_prior: nPrior, levels, tolerance, cells, ...stated }, t) {
  const own = release.statistics.find(({ name }) => name === statistic);
  if (!own.hasPosterior) {
    assert.throws(() => release.posterior(statistic, { where: release.cells(statistic)[0] }), { code: "statistic" });
    t.skip(`this reader has no posterior of ${own.family}`);
    return;
  }
  cells.forEach(({ parameters, ...cell }, i) => {
    const { n_prior: ofN, ...options } = { ...given, where: { ...(cell.cell ?? release.cells(statistic)[i]) } };
    const ask = () => release.posterior(statistic, ofN === undefined ? options : { ...options, nPrior: ofN });
    const isClipped = Array.isArray(stated.clipping_modelled) ? stated.clipping_modelled[i] : stated.clipping_modelled;
    const found = ask();
    assert.equal(found.clipping === "modelled", isClipped);
    assert.equal(found.prior, prior);
    if (nPrior !== null) assert.equal(found.nPrior, nPrior);
    const categories = release.manifest.statistics.find(({ name }) => name === statistic).parameters.categories;
    for (const [parameter, numbers] of numbersOf(parameters, categories)) {
      const off = (value, other, which) => {
        const most = tolerance.relative === undefined ? tolerance.sds * numbers.sd : tolerance.relative * Math.abs(other);
        assert.ok(Math.abs(value - other) <= most, `${which} of ${parameter} in cell ${i}: ${value}, not ${other}`);
      };
      if (numbers.mean !== null) off(found.mean(parameter), numbers.mean, "mean");
      if (numbers.sd !== null) off(found.sd(parameter), numbers.sd, "sd");
      // Of a rate that is spread over scales other readers may lose a part of a far tail; this one does not.
      if (prior.startsWith("SpreadGamma(") && numbers.sd !== null && !isClipped) {
        assert.ok(Math.abs(found.sd(parameter) / numbers.sd - 1) < 1e-6, `${found.sd(parameter)}, not ${numbers.sd}`);
      }
      levels.forEach((level, k) => {
        if (typeof numbers.quantiles?.[k] === "number") off(found.quantile(level, parameter), numbers.quantiles[k], `quantile ${level}`);
      });
    }
  });
}

/** What follows from a plan and is taken as stated here: how far a record moves a sample's scores. */
const NOT_COMPUTED = new Set(["sample-range"]);

for (const { name, check, refused_by: by } of json("hostile.json").hostile) {
  test(`refuses ${name}`, async () => {
    const demands = by === "signature" || NOT_COMPUTED.has(name);
    await assert.rejects(read(`hostile/${name}`, demands ? { publicKeys: [KEY] } : {}), (error) => {
      assert.ok(error instanceof ReleaseError, String(error));
      assert.ok(error.message.length <= 500);
      assert.equal(error.code === "withdrawn", check === "withdrawal", error.code);
      return true;
    });
  });
}

test("reads what was withdrawn where it is asked for, and says why", async () => {
  const release = await read("hostile/withdrawn", { withdrawn: true });
  assert.equal(release.withdrawal.reason, json("hostile/withdrawn/withdrawn.json").reason);
  assert.ok(release.table("cancelled").length > 0);
});

for (const document of ["conflicts.json", "conflicts-of-sums.json"]) {
  const { release, relative_tolerance: tolerance, cases, together } = json(document);

  test(`judges conflicts as Python does: ${document}`, async () => {
    const opened = await read(release);
    for (const { statistic, prior, where, quantities, tails, is_said: isSaid } of cases) {
      const { conflict } = opened.posterior(statistic, { prior, where, clipping: "ignored" });
      const about = `${statistic} ${prior} ${JSON.stringify(where)}`;
      assert.deepEqual(conflict.quantities, quantities, about);
      assert.deepEqual(conflict.isSaid, isSaid, about);
      assert.equal(conflict.lines.length > 0, isSaid.includes(true), about);
      tails.forEach((tail, i) => {
        if (tail === null) assert.ok(conflict.tails[i] > 0.0099, about);
        else assert.ok(Math.abs(conflict.tails[i] / tail - 1) <= tolerance, `${about}: ${conflict.tails[i]} ${tail}`);
      });
    }
    assert.ok(cases.some((one) => one.is_said.includes(true)));
  });

  test(`judges all cells together as Python does: ${document}`, async () => {
    const opened = await read(release);
    for (const { statistic, prior, alternative, log_bayes_factor: nats, is_against_all: isAgainst } of together) {
      const found = opened.conflict(statistic, { prior });
      const about = `${statistic} ${prior} ${JSON.stringify(found)}`;
      assert.equal(found.alternative, alternative, about);
      assert.ok(Math.abs(found.logBayesFactor - nats) <= 0.01, about);
      assert.equal(found.isAgainst, isAgainst, about);
      assert.equal(found.lines.length, Number(isAgainst), about);
      assert.deepEqual(await opened.conflictInSlices(statistic, { prior }), found);
    }
    assert.ok(together.some((one) => one.is_against_all));
  });
}
