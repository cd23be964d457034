// What the parts of the explorer share that have no prior to move: work in slices, complaints, lines to copy.

import { nextTask, Overtaken } from "./answering.js";
import { copied } from "./answers.js";
import { element, replace } from "./dom.js";
import { shellWord } from "./lines.js";

/**
 * Work that the latest question alone is answered by: `ask(make, show)` calls `show` with what `make` found, unless it
 * was asked again meanwhile; `make` is given a pause for its slices.
 */
export function latest(node, complaint) {
  let turn = 0;
  return async (make, show) => {
    turn += 1;
    const mine = turn;
    const pause = async () => {
      await nextTask();
      if (mine !== turn) throw new Overtaken();
    };
    node.classList.add("is-working");
    try {
      await pause();
      const found = await make(pause);
      await pause();
      replace(complaint);
      node.hidden = false;
      show(found);
      node.classList.remove("is-working");
    } catch (error) {
      if (error instanceof Overtaken || mine !== turn) return;
      node.hidden = true;
      const said = error instanceof Error && error.code ? error.message : "this browser cannot work it out";
      replace(complaint, element("p", { class: "complaint" }, `${said[0].toUpperCase()}${said.slice(1)}.`));
    }
  };
}

/** Lines of the command line and of Python that give the same. */
export function sameElsewhere(words, python) {
  const command = words.map(shellWord).join(" ");
  return element(
    "details",
    {},
    element("summary", {}, "The same in Python and on the command line"),
    element("div", { class: "explorer-lines" }, copied("The same in Python", python), copied("The same on the command line", command)),
  );
}

/** A probability in percent, for people. */
export const percent = (mass) => `${Number((100 * mass).toPrecision(6))}\u00a0%`;
