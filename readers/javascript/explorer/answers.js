// What is shown: one sentence, a picture, the numbers behind it, the lines that give the same, and files.

import { aroundPosteriors, aroundPrior, inside, pointsOf, reaching, settled } from "./axis.js";
import { NOISE_AWARE, PLUG_IN } from "./answering.js";
import { element, replace, svg } from "./dom.js";
import { asCsv, asJson, offer } from "./downloads.js";
import { commandLine, commandWords, pooledLines, pythonLines } from "./lines.js";
import { brief } from "./numbers.js";
import { draw, sample } from "./picture.js";
import { aloneInterval, pooledNotes, pooledOf, pooledSentence, poolSwitch } from "./pool.js";
import { releasedTable } from "./released.js";
import { inWords } from "./state.js";
import { comparisonTable, densityTable, lawTable, pooledTable } from "./tables.js";

const DIGITS = 6;
const FLAT = 0.015;
/** The curve of a cell by itself, beside what it is together with the others. */
const ALONE = "alone";

/** The part of the explorer that answers. */
export function answers(page, ask) {
  const conflict = element("div", { class: "explorer-conflict", role: "status" });
  const ofAll = element("div", { class: "explorer-conflict", role: "status" });
  const pool = poolSwitch(ask);
  const ofPool = element("div", { class: "explorer-pool-notes" });
  const headline = element("p", { class: "explorer-answer" });
  const picture = svg("svg", { class: "explorer-picture", role: "img" });
  const keys = element("ul", { class: "legend" });
  const figure = element("figure", { class: "frame" }, keys, picture);
  const notes = element("div", { class: "explorer-notes" });
  const numbers = element("div", { class: "explorer-tables" });
  const behind = element("details", {}, element("summary", {}, "Numbers behind the picture"));
  const lines = element("div", { class: "explorer-lines" });
  const files = element("p", { class: "explorer-files" });
  const node = element("div", { class: "explorer-answers" }, conflict, ofAll, pool.node, headline, ofPool, figure, numbers, notes, behind, lines, files);
  // A picture of nothing has no name yet.
  node.hidden = true;
  let shown = null;
  let range = null;
  let about = "";
  let judged = "";

  behind.addEventListener("toggle", () => shown && fillBehind());
  if (typeof ResizeObserver === "function") new ResizeObserver(() => shown && paint()).observe(figure);

  function show(answer) {
    const isPart = answer.sides[0].kind === PLUG_IN;
    // Curves of the same subject stay, dimmed, until the new ones are there.
    if (isPart && shown !== null && subjectOf(shown) === subjectOf(answer)) return;
    shown = answer;
    node.classList.toggle("is-working", isPart);
    replace(conflict, conflictsOf(page, answer));
    if (priorOf(answer) !== judged) replace(ofAll);
    judged = priorOf(answer);
    answer.pooled = answer.question.together && !isPart ? pooledOf(page, answer) : null;
    pool.show(pooledOf(page, answer), answer.question.together);
    replace(headline, ...sentence(page, answer));
    replace(ofPool, answer.pooled && pooledNotes(answer, answer.pooled));
    paint();
    replace(numbers, answer.pooled ? pooledTable(answer, answer.pooled) : lawTable(page, answer), comparisonTable(page, answer, DIGITS));
    replace(notes, notesOf(answer));
    fillBehind();
    const { parameter } = answer.entry;
    if (answer.pooled) {
      replace(lines, copied("The same in Python", pooledLines(answer.question, answer.pooled)));
      replace(files, element("a", { href: answer.pooled.link }, "Download all cells together"));
      return;
    }
    replace(
      lines,
      copied("The same in Python", pythonLines(page, answer.question, parameter)),
      copied("The same on the command line", commandLine(page, answer.question), commandCode(page, answer.question)),
      element("p", { class: "hint" }, agreementOf(page, answer)),
    );
    replace(
      files,
      "Download what is shown: ",
      offer("CSV", `${page.name}-${answer.statistic.name}.csv`, "text/csv", () => asCsv(page, answer)),
      offer("JSON", `${page.name}-${answer.statistic.name}.json`, "application/json", () => asJson(page, answer)),
    );
  }

  function paint() {
    const { question, entry, sides, priorDensity } = shown;
    const laws = sides.map(({ law }) => law);
    const { pooled } = shown;
    const narrow = question.whole ? aroundPrior(priorDensity, laws, entry.support) : aroundPosteriors(laws, entry.support);
    const wanted = pooled ? reaching(narrow, pooled.interval, entry.support) : narrow;
    const subject = subjectOf(shown);
    range = settled(subject === about && !question.whole ? range : null, wanted);
    about = subject;
    const points = pointsOf(range);
    const places = inside(points, entry.support);
    const alone = () => ({
      kind: ALONE,
      densities: laws[0].density(places),
      interval: aloneInterval(laws[0], pooled),
      mean: laws[0].mean,
    });
    const curves = pooled ? [alone()] : [
      { kind: "prior", densities: priorDensity(places), interval: null, mean: null },
      ...sides.map(({ kind, law, interval }) => ({
        kind,
        densities: law.density(places),
        interval: kind === PLUG_IN ? null : interval,
        mean: law.mean,
      })),
    ];
    shown.curves = { points, curves };
    draw(picture, {
      points,
      range,
      axis: axisName(shown),
      title: `Densities of ${axisName(shown)}`,
      description: `${spoken(page, shown)} The table after the picture has the numbers.`,
      width: Math.max(280, Math.round(figure.clientWidth || 640)),
      // The prior below, what is asked for on top.
      curves: [...curves].sort((left, right) => layer(left) - layer(right)),
      pooled,
    });
    replace(
      keys,
      pooled && element("li", {}, sample("together"), `Together: ${pooled.mass} interval, and the mean`),
      curves.map(({ kind }) =>
        element(
          "li",
          {},
          sample(kind),
          nameOf(page, shown, kind),
          kind === "prior" && isFlat(curves) ? ", too flat to be seen here" : null,
        ),
      ),
    );
  }

  function fillBehind() {
    const [summary] = behind.children;
    replace(behind, summary, behind.open ? fillings() : null);
  }

  function fillings() {
    return [densityTable(shown.curves, (kind) => nameOf(page, shown, kind)), releasedTable(shown.released)];
  }

  /** What all cells together say of the prior; null while that is worked out. */
  function together(found) {
    if (found === null) {
      replace(ofAll, shown.posterior.parameters.length === 1 ? element("p", { class: "hint" }, JUDGING) : null);
      return;
    }
    // As in Python: a cell that contradicts the prior by itself says enough.
    const isSaid = conflictsOf(page, shown).length > 0;
    replace(ofAll, isSaid ? null : found.lines.map((line) => banner(line)));
  }

  return {
    node,
    show,
    together,
    working: () => node.classList.add("is-working"),
    hide: (isHidden) => (node.hidden = isHidden),
    spoken: () => spoken(page, shown),
  };
}

function subjectOf({ statistic, question, entry }) {
  return JSON.stringify([statistic.name, question.cell, question.versus, entry.key, question.whole, question.together]);
}

const CLIPPED =
  "Of the records as the public bounds leave them: a value beyond a bound counts as that bound.";

const MODELLED =
  "Counts beyond the public bound were clipped to it before anything was summed. This posterior takes that into account, " +
  "as Python's does.";

const MERGED =
  "Python and the command line agree with these means to a ten-thousandth of the standard deviation; the ends of their " +
  "intervals hold the stated probability to about a thousandth, which in a long tail may be a fiftieth of the standard " +
  "deviation.";

const CATEGORIES =
  "Python and the command line agree with these means to a ten-thousandth of the standard deviation. Their interval ends " +
  "of categories are from 4,000 draws, and differ a little at every call: an end that should leave out 2.5 % leaves out " +
  "between 2.0 and 3.0 %, nineteen times of twenty. The ends shown here are of the law itself.";

const JUDGING = "Whether all cells together contradict this prior is being worked out.";

const UNJUDGED =
  "Whether the prior and what was released contradict each other is not judged here where clipping is modelled; Python does.";

const TABLED =
  "This page carries a table of the likelihood, which Python worked out. Python and the command line agree with these " +
  "means to 0.006 of the standard deviation, and with the ends of their intervals to 0.03 of it.";

const DRAWN =
  "Here a difference is worked out by quadrature, as its mean and standard deviation are in Python and on the command " +
  "line. Their interval and probability are of draws, and agree up to sampling.";

/** How the lines of code agree with what is shown. */
function agreementOf(page, { statistic, question }) {
  if (question.versus !== null) return DRAWN;
  if (page.likelihoods[statistic.name]) return TABLED;
  return statistic.family === "categorical" ? CATEGORIES : MERGED;
}

/** What a curve is called. */
export function nameOf(page, { question }, kind) {
  if (kind === "prior") return "Prior";
  if (kind === ALONE) return "Alone: noise-aware posterior";
  if (kind === PLUG_IN) return "Plug-in posterior, which takes the noise for data";
  if (question.versus === null) return "Noise-aware posterior";
  return inWords(page, kind === NOISE_AWARE ? question.cell : question.versus);
}

/** The same in a narrow column. */
export function shortName(page, answer, kind) {
  if (kind === PLUG_IN) return "Plug-in";
  return answer.question.versus === null && kind === NOISE_AWARE ? "Noise-aware" : nameOf(page, answer, kind);
}

/** The name of the number that the axis is of. */
export function axisName({ entry }) {
  return entry.title + (entry.unit ? ` (${entry.unit})` : "");
}

function sentence(page, answer) {
  const { question, entry, sides, contrast } = answer;
  if (answer.pooled) return pooledSentence(page, answer, answer.pooled);
  const percent = brief(question.mass * 100, 4);
  const [low, high] = sides[0].interval.map((end) => brief(end, 4));
  if (sides[0].kind === PLUG_IN) return ["Summing over everything that the noise may hide…"];
  if (question.versus === null) {
    const cell = inWords(page, question.cell);
    if (entry.isNamed) {
      return [
        `${[entry.title, cell].filter(Boolean).join("; ")}: between `,
        element("strong", {}, low),
        " and ",
        element("strong", {}, high),
        `${entry.unit ? ` ${entry.unit}` : ""}, with ${percent} % probability.`,
      ];
    }
    const of = cell === "" ? "" : ` for ${cell}`;
    return [
      `With ${percent} % probability, the ${entry.title}${of} lies between `,
      element("strong", {}, low),
      " and ",
      element("strong", {}, high),
      ".",
    ];
  }
  const names = [question.cell, question.versus].map((keys) => inWords(page, keys));
  if (contrast === undefined) return ["Comparing…"];
  const subject = entry.isNamed ? entry.title : `The ${entry.title}`;
  if (contrast === null) return [`${subject} of ${names[0]} and ${names[1]} cannot be compared here.`];
  return [
    `${subject} is greater for ${names[0]} than for ${names[1]} with probability `,
    element("strong", {}, chance(contrast.greater)),
    ".",
  ];
}

/** What a reader has to know before the sentence: that a prior and what was released disagree. */
function conflictsOf(page, { question, sides, posterior, other }) {
  if (sides[0].kind === PLUG_IN) return [];
  const judged = [
    [question.cell, posterior],
    [question.versus, other],
  ];
  return judged.flatMap(([keys, one]) =>
    (one?.conflict?.lines ?? []).map((line) => {
      const of = question.versus === null ? "" : `${inWords(page, keys)}: `;
      return banner(line, of);
    }),
  );
}

function banner(line, of = "") {
  return element("div", { class: "banner" }, element("p", {}, `${of}${line[0].toUpperCase()}${line.slice(1)}.`));
}

const priorOf = ({ statistic, question }) => JSON.stringify([statistic.name, question.prior, question.nPrior]);

/** A probability in words that never say certain. */
export function chance(probability) {
  if (probability < 0.0001) return "below 0.0001";
  return probability > 0.9999 ? "above 0.9999" : brief(probability, 4);
}

function spoken(page, answer) {
  const text = sentence(page, answer).map((part) => (typeof part === "string" ? part : part.textContent));
  return text.join("");
}

/** Whether the prior lies on the axis of the picture. */
function isFlat([prior, ...others]) {
  const highest = (densities) => Math.max(0, ...[...densities].filter(Number.isFinite));
  return highest(prior.densities) < FLAT * Math.max(...others.map(({ densities }) => highest(densities)));
}

function layer({ kind }) {
  return ["prior", PLUG_IN, "versus", NOISE_AWARE].indexOf(kind);
}

const CLIPPING = { ignored: CLIPPED, modelled: MODELLED };

function notesOf({ prior, nPrior, posterior, pooled }) {
  const said = [
    `${pooled ? "Alone: prior" : "Prior"}: ${prior}.`,
    pooled ? null : `Intervals: ${posterior.defaultInterval}${posterior.defaultInterval === "central" ? "" : ", the shortest"}.`,
    nPrior === null ? null : `Prior of the number of records: ${nPrior}.`,
  ];
  return [
    element("p", { class: "hint" }, said.filter(Boolean).join(" ")),
    posterior.conflict === null ? element("p", { class: "hint" }, UNJUDGED) : null,
    CLIPPING[posterior.clipping] ? element("p", { class: "hint" }, CLIPPING[posterior.clipping]) : null,
  ];
}

/** A command line that a narrow screen breaks between its words. */
export function commandCode(page, question) {
  const words = commandWords(page, question).map((word) => [" ", element("span", { class: "word" }, word)]);
  return element("code", {}, words.flat().slice(1));
}

function copied(title, text, code = element("code", {}, text)) {
  const button = element("button", { type: "button" }, "Copy");
  button.setAttribute("aria-label", `Copy: ${title.toLowerCase()}`);
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text, code)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return element(
    "div",
    { class: "line" },
    element("div", { class: "head" }, element("h3", {}, title), button),
    element("pre", { tabindex: 0 }, code),
  );
}

/** Copy text; where the browser does not allow it, select it for a person to copy. */
async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand("copy");
  }
}
