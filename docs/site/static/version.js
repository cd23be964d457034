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
