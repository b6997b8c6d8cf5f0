// Light or dark: as the system says, unless chosen here.

function rememberedTheme() {
  try {
    return localStorage.getItem("plumbline-theme");
  } catch {
    return null; // a browser may forbid it for files
  }
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  heatMap?.later();
}

function turnTheme() {
  const shown = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = shown === "dark" ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem("plumbline-theme", theme);
  } catch {
    // the choice then lasts as long as the page
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heatMap?.later());
