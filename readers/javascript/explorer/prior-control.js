// The prior, as sliders and as text: whichever was changed last sets the other.

import { element, replace } from "./dom.js";
import { slider, textField } from "./fields.js";
import { readPrior, slidersOf, writePrior } from "./priors.js";

/**
 * @param {function(string)} change - called with the text of a prior, empty for the default
 * @returns {{node: HTMLElement, show: function({text: string, usual: string, statistic: Object, entry: number}),
 *   complain: function(string|null)}}
 */
export function priorControl(change) {
  const sliders = element("div", { class: "sliders" });
  const instead = element("p", { class: "hint", hidden: true }, "No slider sets this prior: its text does.");
  const text = textField("As text", (typed) => change(typed.trim()), "as in Python and on the command line");
  const reset = element("button", { type: "button", click: () => change("") }, "Back to the default prior");
  let shown = { made: "", fields: [] };

  function show({ text: asked, usual, statistic, entry }) {
    const written = asked === "" ? usual : asked;
    if (asked === "") text.put(written);
    else text.show(written);
    reset.hidden = asked === "" || asked === usual;
    const prior = readPrior(written);
    const made = prior === null ? "" : `${statistic.name} ${prior.name} ${entry}`;
    if (made !== shown.made) shown = { made, fields: build(prior, statistic, usual, entry) };
    shown.fields.forEach(({ field, of }) => field.show(of.value(prior.numbers)));
    instead.hidden = prior !== null;
  }

  function build(prior, statistic, usual, entry) {
    const fields = prior === null ? [] : slidersOf(prior, statistic, sameKind(usual, prior), entry).map(fieldOf);
    replace(
      sliders,
      fields.map(({ field }) => field.node),
    );
    return fields;
  }

  function fieldOf(of) {
    const field = slider(of, (value) => {
      const prior = current();
      const next = writePrior({ name: prior.name, numbers: of.change(prior.numbers, value) });
      text.put(next);
      change(next);
    });
    return { field, of };
  }

  // What stands in the text is what the sliders move, so that a quick pair of moves loses neither.
  function current() {
    return readPrior(text.value());
  }

  return {
    node: element("fieldset", {}, element("legend", {}, "Prior"), sliders, instead, text.node, reset),
    show,
    complain: text.complain,
  };
}

function sameKind(usual, prior) {
  const read = readPrior(usual);
  return read !== null && read.name === prior.name ? read : null;
}
