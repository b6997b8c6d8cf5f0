// Show what the address says, now and whenever it changes.

const SHOWN = {
  last: viewLastNight, map: viewMap, flaky: viewFlaky, speed: viewSpeed, compilers: viewCompilers,
  test: viewTest, fault: viewFault, runs: viewRuns,
};
let showing = 0;
let lastView = "";

async function showPage() {
  const mine = ++showing;
  const main = document.querySelector("main");
  const focused = document.activeElement?.id;
  let shown;
  try {
    await loadPage();
    shown = await SHOWN[state.view]();
  } catch (error) {
    shown = html("p", { class: "note bad-note", role: "alert" }, `This could not be shown: ${error.message}`);
  }
  if (mine !== showing) return; // the reader has gone on
  main.replaceChildren(...[shown].flat(9).filter(Boolean));
  main.dataset.view = state.view;
  showNavigation();
  const seen = `${state.view} ${state.test} ${state.fault}`;
  if (lastView && lastView !== seen) scrollTo(0, 0);
  lastView = seen;
  if (focused && focused !== "q") document.getElementById(focused)?.focus({ preventScroll: true });
  if (state.view === "map") heatMap?.later();
  document.documentElement.dataset.ready = state.view;
}

function showNavigation() {
  for (const each of document.querySelectorAll("nav a[data-view]")) {
    each.toggleAttribute("aria-current", each.dataset.view === state.view);
    if (each.hasAttribute("aria-current")) each.setAttribute("aria-current", "page");
    each.href = address(each.dataset.view === "last" ? {} : { view: each.dataset.view });
  }
  const box = document.getElementById("q");
  if (document.activeElement !== box) box.value = state.q;
  document.title = page ? `${page.verdict}: ${page.headline} – ${page.project}` : "plumbline";
  document.getElementById("made").textContent = page ? `Made ${page.made.replace("T", " ").slice(0, 16)} UTC from ${counted(page.nights.length, "run")}${page.series ? ` of ${page.series}` : ""}.` : "";
  showDataChoice();
}

// On a live page: which series of runs, up to which night, how many.
function showDataChoice() {
  const place = document.getElementById("data-choice");
  if (!source.live || !page) return;
  const set = (key) => (value) => adjust({ [key]: value });
  const parts = [];
  if (page.all_series.length > 1) parts.push(choice("series", "runs of", page.all_series.map((name) => [name, name]), page.series, set("series")));
  parts.push(choice("nights", "nights", [["30", "30"], ["", "60"], ["120", "120"], ["365", "365"]], state.nights, set("nights")));
  if (state.until) parts.push(html("span", null, `as of ${dayOf(page.nights.at(-1))} `, html("button", { type: "button", onclick: () => adjust({ until: "" }) }, "newest")));
  else if (page.nights.length > 1) parts.push(html("button", { type: "button", title: "Show the page as it was a night earlier", onclick: () => adjust({ until: page.nights.at(-2).run_id }) }, "a night earlier"));
  place.replaceChildren(...parts);
}

let typed = 0;

document.getElementById("q").addEventListener("input", (event) => {
  clearTimeout(typed);
  const q = event.target.value;
  typed = setTimeout(() => (state.view === "map" ? adjust({ q }) : go({ view: "map", rows: "all", q })), 60);
});
document.getElementById("theme").addEventListener("click", turnTheme);
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-open]");
  if (row && !event.target.closest("a, button") && !String(getSelection())) location.hash = row.dataset.open;
});
addEventListener("hashchange", () => {
  readState();
  showPage();
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
readState();
showPage();
