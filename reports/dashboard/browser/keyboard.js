// Keys: 1 to 5 views, / the search, j and k the next and previous card or row, Enter opens it, t the theme, ? the keys.

function typing(target) {
  return /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

function openable() {
  return [...document.querySelectorAll("main [data-open]")];
}

function moveFocus(step) {
  const cards = openable();
  if (!cards.length) return;
  const now = cards.indexOf(document.activeElement.closest?.("[data-open]"));
  const next = cards[Math.max(0, Math.min(cards.length - 1, now < 0 ? (step > 0 ? 0 : cards.length - 1) : now + step))];
  if (!next.hasAttribute("tabindex")) next.setAttribute("tabindex", "-1");
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function pressed(event) {
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && event.target.id === "q") document.getElementById("map-box")?.focus();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const position = "12345".indexOf(event.key);
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("q").focus();
  } else if (position >= 0 && event.key.length === 1) go(VIEWS[position] === "last" ? {} : { view: VIEWS[position] });
  else if (event.key === "t") turnTheme();
  else if (event.key === "?") document.getElementById("keys").togglePopover();
  else if (event.key === "j") moveFocus(1);
  else if (event.key === "k") moveFocus(-1);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && state.view === "map" && document.activeElement === document.body) {
    event.preventDefault();
    document.getElementById("map-box")?.focus();
  } else if (event.key === "Enter" && document.activeElement.dataset?.open) location.hash = document.activeElement.dataset.open;
}

addEventListener("keydown", pressed);
