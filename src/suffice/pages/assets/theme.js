// Runs before the page is painted: the colours that were chosen here before, where the browser keeps them.
(function () {
  "use strict";
  try {
    var chosen = localStorage.getItem("suffice-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (error) { /* kept nowhere: the system's choice holds */ }
})();
