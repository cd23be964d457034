// From a question to what is shown, in slices: the page stays alive between them, and what has been overtaken
// by a newer question is left undone.

import { contrast } from "./contrast.js";
import { lawOf } from "./reading.js";

export const NOISE_AWARE = "noise-aware";
export const PLUG_IN = "plug-in";

/** Milliseconds after which what is known already is shown. */
const PATIENCE = 80;

/** Thrown where a newer question was asked meanwhile. */
export class Overtaken extends Error {}

/**
 * @typedef {Object} Side
 * @property {"noise-aware"|"plug-in"|"versus"} kind
 * @property {import("./reading.js").Law} law
 * @property {number[]} interval
 */

/**
 * Answer a question.
 *
 * @param {Object} reader - from `reading`
 * @param {Object} statistic - as the manifest has it
 * @param {import("./state.js").Question} question
 * @param {function(): boolean} isOvertaken
 * @param {function(Object)} show - called with the whole answer; before that, where it takes long, with a part:
 *   without the noise-aware posterior, or without the contrast
 */
export async function answer(reader, statistic, question, isOvertaken, show) {
  const { cell, versus, prior, nPrior, mass } = question;
  const pause = async () => {
    await nextTask();
    if (isOvertaken()) throw new Overtaken();
    if (first !== null && performance.now() > patience) {
      show(first);
      first = null;
    }
  };
  const patience = performance.now() + PATIENCE;
  let first = null;
  const posterior = (keys, method, parameters) =>
    reader.posterior(statistic.name, keys, { prior, nPrior, method, parameters }, pause);
  const plugIn = await posterior(cell, PLUG_IN, []);
  await pause();
  const entries = reader.entries(plugIn, statistic);
  const entry = entries.find(({ key }) => key === question.shown) ?? entries[0];
  const side = (kind, of) => {
    const law = lawOf(of, entry);
    return { kind, law, interval: law.interval(mass) };
  };
  const known = { question, statistic, entries, entry, contrast: undefined };
  const ignoring = side(PLUG_IN, plugIn);
  const { priorDensity } = ignoring.law;
  first = {
    ...known,
    sides: [ignoring],
    priorDensity,
    prior: plugIn.prior,
    nPrior: null,
    posterior: plugIn,
    released: [],
  };
  const aware = await posterior(cell, NOISE_AWARE, [entry.key]);
  first = null;
  await pause();
  const sides = [side(NOISE_AWARE, aware)];
  const terms = { prior: aware.prior, nPrior: aware.nPrior };
  const released = await reader.table(statistic.name, cell);
  const whole = { ...known, ...terms, posterior: aware, priorDensity, released };
  await pause();
  if (versus === null) {
    show({ ...whole, sides: [...sides, ignoring] });
    return;
  }
  const other = await posterior(versus, NOISE_AWARE, [entry.key]);
  await pause();
  sides.push(side("versus", other));
  show({ ...whole, other, sides });
  await pause();
  show({ ...whole, other, sides, contrast: contrast(sides[0].law, sides[1].law, mass) });
}

/** Let the browser do what is waiting; a timer would wait four milliseconds more. */
export function nextTask() {
  return new Promise((resume) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resume();
    };
    port2.postMessage(null);
  });
}
