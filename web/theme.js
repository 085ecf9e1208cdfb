// Light or dark, decided before the first paint: the visitor's stored choice, else the system's. It is a classic
// script, because a module would run after the page had been drawn once in the wrong colours.
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("anygpu.theme");
  } catch {
    // Some private windows refuse storage; the system's choice applies.
  }

  function apply() {
    const theme = chosen || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return;
    button.setAttribute("aria-label", theme === "dark" ? "Use light colours" : "Use dark colours");
    button.title = button.getAttribute("aria-label");
  }

  function toggle() {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("anygpu.theme", chosen);
    } catch {
      // Without storage, the choice lasts as long as the page.
    }
    apply();
  }

  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", toggle);
  });
})();
