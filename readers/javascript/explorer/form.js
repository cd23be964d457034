// What is asked: one form, from the statistic to the mass of intervals.

import { countControl } from "./count-control.js";
import { element, replace } from "./dom.js";
import { choice, keyField, numberField, tick } from "./fields.js";
import { priorControl } from "./prior-control.js";

/**
 * @param {Object} page - from `readPage`
 * @param {function(Object)} ask - called with what of the question has changed
 */
export function form(page, ask) {
  const statistic = choice(
    "Statistic",
    page.statistics.map(({ name }) => ({ value: name, text: page.words.statistic(name) })),
    (name) => ask({ statistic: name, prior: "", nPrior: "", shown: "" }),
  );
  const first = cellFields(page, (cell) => ask({ cell }));
  const second = cellFields(page, (versus) => ask({ versus }));
  const compare = tick("Compare with another cell", (isOn) =>
    ask({ versus: isOn ? otherCell(page, asked.cell) : null }),
  );
  const entry = choice("Shown", [], (shown) => ask({ shown }));
  const prior = priorControl((text) => ask({ prior: text }));
  const count = page.nIsPublic ? null : countControl(page.mostRows, (nPrior) => ask({ nPrior }));
  const mass = numberField("Probability of intervals, in %", { low: 0.1, high: 99.9, step: "any" }, (percent) =>
    ask({ mass: Number((percent / 100).toPrecision(12)) }),
  );
  const whole = tick("Show the whole prior", (isOn) => ask({ whole: isOn }));
  let asked = null;

  const versus = element("fieldset", { hidden: true }, element("legend", {}, "Compared with"), second.node);
  const cells = element(
    "fieldset",
    {},
    element("legend", {}, "Cell"),
    first.node,
    hasOthers(page) ? compare.node : null,
  );
  const node = element(
    "form",
    { class: "explorer-form", "aria-label": "What is asked", submit: (event) => event.preventDefault() },
    page.statistics.length > 1 ? statistic.node : null,
    page.groups.length > 0 ? cells : null,
    versus,
    entry.node,
    prior.node,
    count?.node,
    element("fieldset", {}, element("legend", {}, "Shown as"), mass.node, whole.node),
  );

  return {
    node,
    /** Show a question; `entries` are what the posterior has, `usual` is the default prior's text. */
    show(question, { entries, usual, statistic: declared, isAnswered }) {
      asked = question;
      statistic.show(question.statistic);
      first.show(question.cell);
      if (question.versus !== null) second.show(question.versus);
      versus.hidden = question.versus === null;
      compare.show(question.versus !== null);
      entry.fill(entries.map(({ key, label }) => ({ value: key, text: label })));
      entry.show(question.shown);
      entry.node.hidden = entries.length < 2;
      [prior.node, count?.node, whole.node].forEach((part) => part && (part.hidden = !isAnswered));
      // A table of likelihoods is of one prior of the number of records.
      if (count !== null && page.likelihoods[declared.name]) count.node.hidden = true;
      if (isAnswered) {
        const index = Math.max(
          0,
          entries.findIndex(({ key }) => key === question.shown),
        );
        prior.show({ text: question.prior, usual, statistic: declared, entry: entries[index]?.index ?? 0 });
      }
      count?.show(question.nPrior);
      mass.show(Number((question.mass * 100).toPrecision(12)));
      whole.show(question.whole);
    },
    complain: prior.complain,
  };
}

function cellFields(page, change) {
  let keys = page.groups.map((group) => group.key(0));
  const fields = page.groups.map((group, index) =>
    keyField(group, (key) => change(keys.map((old, at) => (at === index ? key : old)))),
  );
  return {
    node: replace(
      element("div", { class: "cell" }),
      fields.map(({ node }) => node),
    ),
    show(shown) {
      keys = shown;
      fields.forEach((field, index) => field.show(shown[index]));
    },
  };
}

function hasOthers(page) {
  return page.groups.some(({ size }) => size > 1);
}

/** The cell that differs from this one in the first group that has another key. */
export function otherCell(page, cell) {
  const at = page.groups.findIndex(({ size }) => size > 1);
  return cell.map((key, index) => {
    if (index !== at) return key;
    return page.groups[at].key(0) === key ? page.groups[at].key(1) : page.groups[at].key(0);
  });
}
