"use strict";
// Filter by text and by mark; open what a link or a printer asks for.
const box = document.getElementById("filter");
const chips = [...document.querySelectorAll(".chip")];
const rows = [...document.querySelectorAll("[data-find]")];
const found = document.getElementById("found");

function apply() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = chips.filter((c) => c.getAttribute("aria-pressed") === "true").map((c) => c.dataset.letter);
  let tests = 0;
  for (const row of rows) {
    const letters = row.dataset.letters.split(" ");
    const seen = words.every((w) => row.dataset.find.includes(w)) && (!wanted.length || wanted.some((l) => letters.includes(l)));
    row.hidden = !seen;
    if (seen && row.tagName === "TR") tests += 1;
  }
  found.textContent = words.length || wanted.length ? `tests shown: ${tests}` : "";
}

box.addEventListener("input", apply);
for (const chip of chips) {
  chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") === "true" ? "false" : "true");
    apply();
  });
}

function openTarget() {
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}
window.addEventListener("hashchange", openTarget);
openTarget();
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details.case")) details.open = true;
});
