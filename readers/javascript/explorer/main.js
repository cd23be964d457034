// Starts the explorer on a release's page: when its section comes near, or else once the page has been shown.

import { start } from "./explorer.js";
import { MARK } from "./state.js";

const NEAR = "400px";
const LATER = 500;

function begin() {
  const data = document.getElementById("suffice-release");
  const section = document.getElementById("explorer");
  if (data === null || section === null) return;
  const isAsked = location.hash.startsWith(MARK);
  let isStarted = false;
  const once = () => {
    if (isStarted) return;
    isStarted = true;
    const begins = start(section, data.textContent);
    if (isAsked) begins.scrollIntoView();
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
  // A print, or a picture of the whole page, scrolls nowhere.
  addEventListener("load", () => setTimeout(once, LATER));
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
