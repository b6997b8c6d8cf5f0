// Light or dark: as the system says, unless chosen here. Paper is always light.

const darkSystem = matchMedia("(prefers-color-scheme: dark)");

function rememberedTheme() {
  try {
    return localStorage.getItem("plumbline-theme");
  } catch {
    return null; // a browser may forbid it for files
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  heatMap?.later();
}

const wantedTheme = () => rememberedTheme() || (darkSystem.matches ? "dark" : "light");

function turnTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem("plumbline-theme", theme);
  } catch {
    // the choice then lasts as long as the page
  }
}

darkSystem.addEventListener("change", () => setTheme(wantedTheme()));
addEventListener("beforeprint", () => setTheme("light"));
addEventListener("afterprint", () => setTheme(wantedTheme()));
setTheme(wantedTheme());
