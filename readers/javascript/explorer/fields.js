// The kinds of fields that the explorer's form is made of: each with its label, its hint and its complaint.

import { combobox } from "./combobox.js";
import { element, freshId, replace } from "./dom.js";
import { brief } from "./numbers.js";
import { STEPS } from "./scales.js";

const MOST_OPTIONS = 40;

/** A control with its label above it and, where there is one, a hint below. */
export function labelled(name, control, hint = null) {
  const hintId = hint === null ? null : freshId("hint");
  if (hintId !== null) control.setAttribute("aria-describedby", hintId);
  control.id ||= freshId("field");
  return element(
    "div",
    { class: "field" },
    element("label", { for: control.id }, name),
    control,
    hint === null ? null : element("p", { class: "hint", id: hintId }, hint),
  );
}

/** A list of choices. */
export function choice(name, options, choose, hint = null) {
  const control = element("select", { change: () => choose(control.value) });
  const fill = (some) =>
    replace(
      control,
      some.map(({ value, text }) => element("option", { value }, text)),
    );
  fill(options);
  return {
    node: labelled(name, control, hint),
    fill,
    show: (value) => {
      control.value = value;
    },
  };
}

/** A key of a group: a list where there are few, a field to search in where there are many. */
export function keyField(group, choose) {
  if (group.size > MOST_OPTIONS) {
    const id = freshId("key");
    const { node, show } = combobox(group, id, choose);
    return { node: element("div", { class: "field" }, element("label", { for: id }, group.label), node), show };
  }
  const keys = Array.from({ length: group.size }, (_, index) => group.key(index));
  // Values are positions: an option's value would lose the spaces of a key.
  const field = choice(
    group.label,
    keys.map((key, index) => ({ value: String(index), text: group.called(key) })),
    (at) => choose(keys[Number(at)]),
  );
  return { node: field.node, show: (key) => field.show(String(keys.indexOf(key))) };
}

/** A field of text with a place for what is wrong with it. */
export function textField(name, change, hint) {
  const complaint = element("p", { class: "complaint", id: freshId("complaint"), hidden: true });
  const control = element("input", {
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    input: () => change(control.value),
  });
  const node = labelled(name, control, hint);
  control.setAttribute("aria-describedby", `${control.getAttribute("aria-describedby")} ${complaint.id}`);
  node.append(complaint);
  return {
    node,
    show(text) {
      if (document.activeElement !== control) control.value = text;
    },
    value: () => control.value,
    put(text) {
      control.value = text;
    },
    complain(message) {
      complaint.textContent = message ?? "";
      complaint.hidden = message === null;
      control.setAttribute("aria-invalid", String(message !== null));
    },
  };
}

/** A number that is typed; what is none is left alone. */
export function numberField(name, { low, high, step }, change, hint = null) {
  const read = () => {
    if (control.validity.valid && control.value !== "") change(control.valueAsNumber);
  };
  const control = element("input", { type: "number", min: low, max: high, step, required: true, input: read });
  return {
    node: labelled(name, control, hint),
    show(value) {
      if (document.activeElement !== control) control.value = String(value);
    },
  };
}

/** A box to tick. */
export function tick(name, change) {
  const id = freshId("tick");
  const control = element("input", { type: "checkbox", id, change: () => change(control.checked) });
  return {
    node: element("div", { class: "tick" }, control, element("label", { for: id }, name)),
    show(isTicked) {
      control.checked = isTicked;
    },
  };
}

/** A slider with its value beside its name. */
export function slider({ name, hint, scale }, change) {
  const id = freshId("slider");
  const shown = element("output", { for: id });
  const control = element("input", {
    id,
    type: "range",
    min: 0,
    max: STEPS,
    step: 1,
    input: () => change(scale.number(control.valueAsNumber)),
  });
  const hintId = freshId("hint");
  control.setAttribute("aria-describedby", hintId);
  return {
    node: element(
      "div",
      { class: "field slider" },
      element("div", { class: "head" }, element("label", { for: id }, name), shown),
      control,
      element("p", { class: "hint", id: hintId }, hint),
    ),
    show(value) {
      shown.textContent = brief(value, 4);
      control.setAttribute("aria-valuetext", brief(value, 4));
      if (
        document.activeElement !== control ||
        Math.abs(scale.number(control.valueAsNumber) - value) > 1e-2 * Math.abs(value)
      ) {
        control.value = String(scale.position(value ?? scale.low));
      }
    },
  };
}
