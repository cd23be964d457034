// The explorer: one question, one answer, and the order in which they follow each other.

import { answer, nextTask, Overtaken } from "./answering.js";
import { answers, commandCode } from "./answers.js";
import { columnSection } from "./column-section.js";
import { element, replace } from "./dom.js";
import { form } from "./form.js";
import { placeOf } from "./lines.js";
import { readPage } from "./page-data.js";
import { prepare } from "./preparing.js";
import { reading } from "./reading.js";
import { COLUMNS, TREES, firstQuestion, fromHash, partOf, remember, toHash, withQuestion } from "./state.js";
import { releasedTable } from "./released.js";
import { treeSection } from "./tree-section.js";

const QUIET = 900;

/**
 * Put the explorer into its section.
 *
 * @param {HTMLElement} section
 * @param {string} text - the page's data
 * @returns {HTMLElement} where the part begins that the address asks for
 */
export function start(section, text) {
  const written = readPage(text);
  const page = { ...written, uri: placeOf(written.uri, location.href) };
  const reader = reading(page);
  const parts = [
    page.statistics.length > 0 ? { part: "", title: "Explore", lead: LEAD, node: parameterSection(page, reader) } : null,
    page.columns.length > 0 ? { part: COLUMNS, ...columnSection(page, reader) } : null,
    page.trees.length > 0 ? { part: TREES, ...treeSection(page, reader) } : null,
  ].filter((part) => part !== null);
  const headings = parts.map(({ title }) => element("h2", {}, title));
  replace(section, parts.map(({ lead, node }, at) => [headings[at], element("p", { class: "lead" }, lead), node]));
  // Where the address asks for a part, that is what is shown.
  const asked = partOf(location.hash);
  return headings.find((_, at) => parts[at].part === asked) ?? section;
}

/** The part for the parameters of statistics, whose prior a reader moves. */
function parameterSection(page, reader) {
  const usual = new Map();
  const entries = new Map();
  let question = fromHash(location.hash, page, firstQuestion(page));
  let turn = 0;
  let quiet = null;

  const controls = form(page, ask);
  const answered = answers(page, ask);
  const unanswered = element("div", { class: "explorer-unanswered", hidden: true });
  const voice = element("p", { class: "visually-hidden", role: "status" });
  const right = element("div", { class: "explorer-right" }, answered.node, unanswered, voice);
  addEventListener("hashchange", () => {
    const asked = fromHash(location.hash, page, firstQuestion(page));
    if (toHash(asked) !== toHash(question)) ask(asked, false);
  });
  ask({}, false);
  return element("div", { class: "explorer-body" }, controls.node, right);

  function ask(patch, isRemembered = true) {
    question = { ...question, ...patch };
    if (isRemembered) remember(withQuestion(location.hash, question));
    turn += 1;
    const mine = turn;
    showForm(true);
    answered.working();
    clearTimeout(quiet);
    // A slider asks at every step: only the last question of a frame is begun.
    setTimeout(() => mine === turn && work(mine));
  }

  async function work(mine) {
    const asked = question;
    const statistic = declared(asked);
    try {
      if (!usual.has(statistic.name)) await learn(statistic, asked.cell);
      await answer(
        reader,
        statistic,
        asked,
        () => mine !== turn,
        (found) => {
          if (mine !== turn) return;
          controls.complain(null);
          unanswered.hidden = true;
          answered.hide(false);
          answered.show(found);
          showForm(true);
        },
      );
      if (mine === turn) quiet = setTimeout(() => (voice.textContent = answered.spoken()), QUIET);
      await judge(statistic, asked, mine);
      await prepare(reader, statistic, asked, usual.get(statistic.name), () => mine !== turn).catch(() => {
        // Nobody asked for it: what is wrong with it is said when somebody does.
      });
    } catch (error) {
      if (error instanceof Overtaken || mine !== turn) return;
      await refused(error, statistic, asked);
    }
  }

  /** Judge a prior that somebody stated by all cells, while nobody waits. */
  async function judge(statistic, asked, mine) {
    if (mine !== turn || asked.prior === "" || asked.prior === usual.get(statistic.name)) return;
    const pause = async () => {
      await nextTask();
      if (mine !== turn) throw new Overtaken();
    };
    answered.together(null);
    answered.together((await reader.together(statistic.name, asked, pause)) ?? { lines: [] });
  }

  /** Learn a statistic's default prior and entries, which the form needs. */
  async function learn(statistic, cell) {
    const posterior = await reader.posterior(statistic.name, cell, { prior: "", nPrior: "", method: "plug-in", parameters: [] });
    usual.set(statistic.name, String(posterior.prior));
    entries.set(statistic.name, reader.entries(posterior, statistic));
  }

  async function refused(error, statistic, asked) {
    const message = error instanceof Error && error.code ? error.message : "this browser cannot work it out";
    if (error.code === "prior" && usual.has(statistic.name)) {
      controls.complain(message);
      voice.textContent = message;
      return;
    }
    showForm(usual.has(statistic.name));
    answered.hide(true);
    unanswered.hidden = false;
    let released = null;
    try {
      released = releasedTable(await reader.table(statistic.name, asked.cell));
    } catch {
      // A file that is not what the manifest says has no table: the message says so.
    }
    replace(
      unanswered,
      element("p", { class: "explorer-answer" }, `The explorer has no posterior of ${page.words.statistic(statistic.name)}.`),
      element("p", { class: "hint" }, `${message}.`),
      element("p", {}, "Python and the command line work it out:"),
      element("pre", { tabindex: 0 }, commandCode(page, asked)),
      released,
    );
    voice.textContent = `No posterior of ${page.words.statistic(statistic.name)} here. The page says what to run instead.`;
  }

  function showForm(isAnswered) {
    const statistic = declared(question);
    const known = entries.get(statistic.name) ?? [];
    const shown = known.some(({ key }) => key === question.shown) ? question.shown : (known[0]?.key ?? "");
    controls.show(
      { ...question, shown },
      {
        entries: known,
        usual: usual.get(statistic.name) ?? "",
        statistic,
        isAnswered: isAnswered && usual.has(statistic.name),
      },
    );
  }

  function declared({ statistic }) {
    return page.statistics.find(({ name }) => name === statistic);
  }
}

const LEAD =
  "Choose a cell, state what you believed before, and see what this release makes of it. Everything is worked " +
  "out in your browser; nothing is sent anywhere, and it costs no privacy.";
