// What the page shows is in its address, after the #: a view can be linked, bookmarked and mailed.

const VIEWS = ["last", "map", "flaky", "speed", "compilers"];
const MORE_VIEWS = ["test", "fault", "runs"];
const USUAL = {
  view: "last", q: "", column: "", by: "verdict", rows: "uneven", order: "worst", failing: "",
  test: "", fault: "", left: "", right: "", measure: "ratio", split: "column", group: "", until: "", nights: "", series: "",
};
let state = { ...USUAL };

function readState() {
  const asked = new URLSearchParams(location.hash.slice(1));
  state = { ...USUAL };
  for (const key of Object.keys(USUAL)) if (asked.has(key)) state[key] = asked.get(key);
  if (![...VIEWS, ...MORE_VIEWS].includes(state.view)) state.view = "last";
}

function addressOf(wanted) {
  const said = new URLSearchParams();
  for (const key of Object.keys(USUAL)) if (wanted[key] !== USUAL[key]) said.set(key, wanted[key]);
  return `#${said}`;
}

// Where the data comes from stays; everything else of another view starts as usual.
const keptData = () => ({ until: state.until, nights: state.nights, series: state.series });

const address = (changes) => addressOf({ ...USUAL, ...keptData(), ...changes });

function link(changes, ...children) {
  return html("a", { href: address(changes) }, ...children);
}

function go(changes) {
  location.hash = address(changes);
}

// A change within a view: the button "back" of the browser leads to the view before, not through each letter typed.
function adjust(changes) {
  history.replaceState(null, "", addressOf({ ...state, ...changes }));
  readState();
  showPage();
}
