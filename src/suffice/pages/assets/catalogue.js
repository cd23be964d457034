// What pages of the catalogue do: change colours, copy a text, filter a table, search. Nothing is ever requested.
(function () {
  "use strict";
  var root = document.documentElement;

  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    return window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function themes(button) {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      button.setAttribute("aria-pressed", String(isDark()));
      try {
        localStorage.setItem("suffice-theme", root.dataset.theme);
      } catch (error) { /* it holds for this page */ }
    });
  }

  function select(node) {
    var range = document.createRange();
    range.selectNodeContents(node);
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  function copies(button) {
    var source = document.getElementById(button.dataset.copy);
    var label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", function () {
      function say(text) {
        button.textContent = text;
        setTimeout(function () { button.textContent = label; }, 2000);
      }
      function byHand() {
        select(source);
        var done = false;
        try { done = document.execCommand("copy"); } catch (error) { done = false; }
        say(done ? "Copied" : "Selected: press Ctrl+C");
      }
      if (navigator.clipboard && navigator.clipboard.writeText) {
        navigator.clipboard.writeText(source.textContent).then(function () { say("Copied"); }, byHand);
      } else {
        byHand();
      }
    });
  }

  // Rows whose texts hold every word that was typed.
  function filters(box) {
    var table = document.getElementById(box.dataset.filter);
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    var said = document.getElementById(box.dataset.said);
    var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
    box.closest("[hidden]").hidden = false;
    box.addEventListener("input", function () {
      var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      var shown = 0;
      rows.forEach(function (row, index) {
        var fits = words.every(function (word) { return texts[index].indexOf(word) >= 0; });
        row.hidden = !fits;
        if (fits) shown += 1;
      });
      said.textContent = words.length ? shown + " of " + rows.length + " rows" : "";
    });
  }

  // On the web a release is opened by its address; a file's is of this machine, and stays as it is written.
  function places(note) {
    var address = new URL(".", location.href).href.replace(/\/$/, "");
    var isRead = /^https:|^http:\/\/(localhost|127\.0\.0\.1)(:|\/)/.test(address);
    if (!isRead || !/^[A-Za-z0-9:/._~%+@=-]+$/.test(address)) return;
    ["use-cli", "use-python"].forEach(function (id) {
      var code = document.getElementById(id);
      code.textContent = code.textContent.split(note.dataset.uri).join(address);
    });
    note.hidden = true;
  }

  function scored(entry, words) {
    var total = 0;
    for (var i = 0; i < words.length; i += 1) {
      var word = words[i];
      if (entry.name.indexOf(word) >= 0) total += entry.name === word ? 8 : entry.name.indexOf(word) === 0 ? 5 : 3;
      else if (entry.all.indexOf(word) >= 0) total += 1;
      else return 0;
    }
    return total + entry.rank;
  }

  // Words of a search: "Beta(1, 30)" is one, however it is spaced.
  function normal(text) {
    return text.toLowerCase().replace(/\s*,\s*(?=[^()]*\))/g, ",");
  }

  function searches(box) {
    var ranks = { dataset: 0.3, series: 0.2, publication: 0.1, release: 0 };
    var entries = JSON.parse(document.getElementById("suffice-index").textContent);
    var wordsOf = new Map();
    entries.forEach(function (entry) { if (entry.kind === "series") wordsOf.set(entry.title, entry.words); });
    var index = entries.map(function (entry, order) {
      var shared = (entry.series || []).map(function (name) { return wordsOf.get(name) || ""; });
      return {
        shown: entry,
        order: order,
        rank: ranks[entry.kind] || 0,
        name: normal(entry.title),
        all: normal([entry.title, entry.text, entry.words].concat(shared).join("\n"))
      };
    });
    var results = document.getElementById("results");
    var said = document.getElementById("said");
    var most = 50;

    function show() {
      var words = normal(box.value).split(/\s+/).filter(Boolean);
      var found = index
        .map(function (entry) { return { entry: entry, score: words.length ? scored(entry, words) : entry.rank + 1 }; })
        .filter(function (one) { return one.score > 0; })
        .sort(function (a, b) { return b.score - a.score || a.entry.order - b.entry.order; });
      results.replaceChildren.apply(results, found.slice(0, most).map(function (one) {
        var item = document.createElement("li");
        var kind = document.createElement("div");
        var link = document.createElement("a");
        var text = document.createElement("p");
        kind.className = "kind";
        kind.textContent = one.entry.shown.kind;
        link.href = one.entry.shown.path;
        link.textContent = one.entry.shown.title;
        text.textContent = one.entry.shown.text;
        item.append(kind, link, text);
        return item;
      }));
      said.textContent = !found.length ? "Nothing is called or holds that." :
        found.length + (found.length === 1 ? " entry" : " entries") +
        (found.length > most ? ", the first " + most + " are shown" : "");
    }

    var asked = new URLSearchParams(location.search).get("q");
    if (asked) box.value = asked;
    box.form.addEventListener("submit", function (event) { event.preventDefault(); show(); });
    box.addEventListener("input", show);
    show();
  }

  document.querySelectorAll("[data-theme-button]").forEach(themes);
  document.querySelectorAll("[data-copy]").forEach(copies);
  document.querySelectorAll("[data-uri]").forEach(places);
  document.querySelectorAll("[data-filter]").forEach(filters);
  document.querySelectorAll("[data-search]").forEach(searches);
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (details) { details.open = true; });
  });
})();
