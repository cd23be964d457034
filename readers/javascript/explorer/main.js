// Starts the explorer on a release's page: when its section comes near, so that the page itself opens at once.

import { start } from "./explorer.js";
import { MARK } from "./state.js";

const NEAR = "400px";

function begin() {
  const data = document.getElementById("suffice-release");
  const section = document.getElementById("explorer");
  if (data === null || section === null) return;
  const isAsked = location.hash.startsWith(MARK);
  let isStarted = false;
  const once = () => {
    if (isStarted) return;
    isStarted = true;
    start(section, data.textContent);
    if (isAsked) section.scrollIntoView();
  };
  if (isAsked || typeof IntersectionObserver !== "function") {
    once();
    return;
  }
  const watch = new IntersectionObserver(
    (seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      once();
    },
    { rootMargin: NEAR },
  );
  watch.observe(section);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
