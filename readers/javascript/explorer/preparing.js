// What a reader of the page is likely to ask next: another prior of the same cell. Likelihoods are interpolated
// once they are asked again, so asking for a prior nearby, while nobody waits, makes the sliders immediate.

import { NOISE_AWARE, nextTask, Overtaken } from "./answering.js";
import { readPrior, slidersOf, writePrior } from "./priors.js";

const STRONGER = 1.3;

/**
 * Prepare for another prior, in slices; a newer question ends it, and nothing is lost.
 *
 * @param {Object} reader - from `reading`
 * @param {Object} statistic - as the manifest has it
 * @param {import("./state.js").Question} question - that was answered
 * @param {string} usual - the text of the default prior
 * @param {function(): boolean} isOvertaken
 */
export async function prepare(reader, statistic, question, usual, isOvertaken) {
  const prior = nearby(readPrior(question.prior || usual), statistic);
  // Counts of categories have weights that go with the prior: nothing of them is kept.
  if (prior === null || statistic.family === "categorical") return;
  const pause = async () => {
    await nextTask();
    if (isOvertaken()) throw new Overtaken();
  };
  for (const cell of [question.cell, question.versus]) {
    if (cell !== null) {
      const asked = { prior, nPrior: question.nPrior, method: NOISE_AWARE, parameters: [] };
      await reader.posterior(statistic.name, cell, asked, pause);
    }
  }
}

function nearby(prior, statistic) {
  if (prior === null) return null;
  const slider = slidersOf(prior, statistic, prior, 0).at(-1);
  const value = slider?.value(prior.numbers) ?? null;
  return value === null
    ? null
    : writePrior({ name: prior.name, numbers: slider.change(prior.numbers, value * STRONGER) });
}
