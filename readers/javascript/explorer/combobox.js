// One of many keys, by typing: a text field with the keys that match below it. Only those are in the page.

import { element, freshId, replace } from "./dom.js";
import { matching } from "./page-data.js";

const MOST_SHOWN = 50;

/**
 * Make a field for a key of a group.
 *
 * @param {import("./page-data.js").Group} group
 * @param {string} id - of the text field, for its label
 * @param {function(string)} choose - called with a key of the group
 * @returns {{node: HTMLElement, show: function(string)}}
 */
export function combobox(group, id, choose) {
  const listId = freshId("keys");
  const list = element("ul", { id: listId, role: "listbox", "aria-label": group.label, hidden: true });
  const note = element("p", { class: "hint", id: freshId("found") });
  const field = element("input", {
    id,
    type: "text",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": listId,
    "aria-describedby": note.id,
    input: () => open(field.value),
    focus: () => field.select(),
    click: () => open(""),
    keydown: press,
    blur: close,
  });
  let current = "";
  let active = -1;

  function open(typed) {
    const { keys, found } = matching(group, typed, MOST_SHOWN);
    replace(list, keys.map(option));
    note.textContent =
      found > keys.length ? `${found} keys match: type more to see the others` : `${found} of ${group.size} keys`;
    list.hidden = keys.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    mark(keys.length > 0 && typed.trim() !== "" ? 0 : keys.indexOf(current));
  }

  function option(key) {
    // Before the field loses the focus, which closes the list.
    const take = (event) => {
      event.preventDefault();
      commit(key);
    };
    return element("li", { id: freshId("key"), role: "option", "aria-selected": "false", pointerdown: take }, key);
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((child, at) => child.setAttribute("aria-selected", String(at === index)));
    const chosen = list.children[index];
    if (chosen === undefined) field.removeAttribute("aria-activedescendant");
    else {
      field.setAttribute("aria-activedescendant", chosen.id);
      chosen.scrollIntoView({ block: "nearest" });
    }
  }

  function press(event) {
    const size = list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) open("");
      else mark((active + (event.key === "ArrowDown" ? 1 : size - 1) + size) % size);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && active >= 0) commit(list.children[active].textContent);
      else if (group.has(field.value)) commit(field.value);
    } else if (event.key === "Escape") {
      close();
      field.select();
    }
  }

  function commit(key) {
    current = key;
    close();
    choose(key);
  }

  function close() {
    if (field.value !== current && group.has(field.value) && document.activeElement !== field) {
      current = field.value;
      choose(current);
    }
    list.hidden = true;
    field.value = current;
    note.textContent = `${group.size} keys: type to search`;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  return {
    node: element("div", { class: "combobox" }, field, list, note),
    show(key) {
      current = key;
      if (document.activeElement !== field || list.hidden) close();
    },
  };
}
