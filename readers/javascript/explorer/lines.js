// The lines of Python and of the command line that give the numbers shown. Keys are other people's text:
// everything is quoted for the language that it goes into.

/** Return text as a literal of Python, in ASCII. */
export function pythonText(text) {
  let written = "";
  for (const character of text) {
    const code = character.codePointAt(0);
    if (character === "\\" || character === '"') written += `\\${character}`;
    else if (code >= 32 && code < 127) written += character;
    else if (code < 0x100) written += `\\x${code.toString(16).padStart(2, "0")}`;
    else if (code < 0x10000) written += `\\u${code.toString(16).padStart(4, "0")}`;
    else written += `\\U${code.toString(16).padStart(8, "0")}`;
  }
  return `"${written}"`;
}

/** Return where a release is opened from a page at an address: by that on the web, as the page says elsewhere. */
export function placeOf(uri, address) {
  const isRead = /^https:|^http:\/\/(localhost|127\.0\.0\.1)(:|\/)/.test(address);
  return isRead && uri.startsWith("./") ? new URL(".", address).href.replace(/\/$/, "") : uri;
}

/** Return text as one word of a POSIX shell. */
export function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Return what gives the same in Python.
 *
 * @param {Object} page
 * @param {import("./state.js").Question} question
 * @param {string} name - which parameter is shown
 */
export function pythonLines(page, question, name) {
  const terms = [pythonText(question.statistic)];
  if (question.prior) terms.push(`prior=${pythonText(question.prior)}`);
  if (question.nPrior) terms.push(`n_prior=${pythonText(question.nPrior)}`);
  const posterior = (keys) => `release.posterior(${[...terms, ...whereTerm(page, keys)].join(", ")})`;
  const parameter = pythonText(name);
  const lines = ["import suffice", "", `release = suffice.open_release(${pythonText(page.uri)})`];
  if (question.versus === null) {
    lines.push(`posterior = ${posterior(question.cell)}`);
    lines.push(`print(posterior.mean(${parameter}), posterior.sd(${parameter}))`);
    lines.push(`print(posterior.credible_interval(${parameter}, ${question.mass}))`);
    return lines.join("\n");
  }
  // Only what both cells share narrows the posterior; the comparison names the rest.
  const alike = page.groups.map((_, index) => question.cell[index] === question.versus[index]);
  const sides = [question.cell, question.versus].map((keys) => pythonMapping(page, keys, (index) => !alike[index]));
  if (alike.includes(true)) terms.push(`where=${pythonMapping(page, question.cell, (index) => alike[index])}`);
  lines.push(`posterior = release.posterior(${terms.join(", ")})`);
  lines.push(`difference = posterior.difference(${parameter}, ${sides.join(", ")})`);
  lines.push("print(difference.mean, difference.sd)");
  lines.push(`print(difference.credible_interval(${question.mass}, interval="central"), difference.probability())`);
  return lines.join("\n");
}

/**
 * Return what reads cells together, as they were published.
 *
 * @param {import("./state.js").Question} question
 * @param {import("./pool.js").Pooled} pooled
 */
export function pooledLines(question, pooled) {
  return [
    "import suffice",
    "",
    `publication = suffice.open_publication(${pythonText(pooled.uri)})`,
    `print(publication.pooled(${pythonText(question.statistic)}))`,
  ].join("\n");
}

/** Return what gives the same on the command line. */
export function commandLine(page, question) {
  return commandWords(page, question).join(" ");
}

/** The same by words, each quoted. */
export function commandWords(page, question) {
  const words = ["suffice", "posterior", page.uri, question.statistic];
  page.groups.forEach(({ column }, index) => {
    words.push("--where", `${column}=${question.cell[index]}`);
    const other = question.versus?.[index] ?? question.cell[index];
    if (other !== question.cell[index]) words.push("--versus", `${column}=${other}`);
  });
  if (question.prior) words.push("--prior", question.prior);
  if (question.nPrior) words.push("--n-prior", question.nPrior);
  words.push("--mass", String(question.mass));
  if (question.versus !== null) words.push("--interval", "central");
  return words.map(shellWord);
}

function whereTerm(page, keys) {
  return page.groups.length === 0 ? [] : [`where=${pythonMapping(page, keys, () => true)}`];
}

function pythonMapping(page, keys, isNamed) {
  const pairs = page.groups
    .map(({ column }, index) => (isNamed(index) ? `${pythonText(column)}: ${pythonText(keys[index])}` : null))
    .filter((pair) => pair !== null);
  return `{${pairs.join(", ")}}`;
}
