// What the theme leaves out for those who do not see the page, or have no mouse.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll('.caption[role="heading"]').forEach((one) => one.setAttribute("aria-level", "2"));
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
  document.querySelectorAll("pre, .table-wrapper").forEach((one) => { one.tabIndex = 0; });
  if (!document.querySelector("h1")) document.querySelector("h2")?.setAttribute("aria-level", "1");
});

// The menu of versions: the list lies beside the versions, so that old pages know of new ones.
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.getElementById("version-menu");
  if (!menu) return;
  const { version, root, page } = menu.dataset;
  const versions = window.sufficeVersions || [version];
  menu.replaceChildren(...versions.map((one, place) => {
    const text = place === 0 && versions.length > 1 ? `${one} (newest)` : one;
    return new Option(text, one, one === version, one === version);
  }));
  menu.disabled = versions.length < 2;
  menu.addEventListener("change", () => {
    const chosen = encodeURIComponent(menu.value);
    window.location.href = `${root || "./"}../${chosen}/docs/index.html`;
  });
});
