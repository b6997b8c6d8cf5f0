// Which tests the map lists, what is said of each, and in which order: plain functions of the history.

// Cases that the gate calls flaky; the map says the same word of them.
const flakyCases = () => new Set(page.flaky.map((each) => `${each.column} ${each.test}`));

// What one row of the map is about, for one column (-1: the most serious of all).
function judgedRow(history, test, column, flaky) {
  const judged = page.nights.map((night, n) => (night.void ? -1 : n)).filter((n) => n >= 0);
  let [flips, worst, changes] = [0, 0, 0];
  let before = null;
  let beforeMark = null;
  for (const n of judged) {
    const mark = history.mark(test, column, n);
    const rank = history.rank[mark];
    worst = Math.max(worst, rank);
    const failing = history.failing[mark];
    if (before !== null && failing !== before) flips += 1;
    if (beforeMark !== null && mark !== beforeMark) changes += 1;
    [before, beforeMark] = [failing, mark];
  }
  let nights = 0;
  for (let i = judged.length - 1; i >= 0 && history.failing[history.mark(test, column, judged[i])]; i--) nights += 1;
  const columns = column >= 0 ? [column] : page.columns.map((_, k) => k);
  const state = columns.some((k) => flaky.has(`${k} ${history.names[test]}`)) ? "flaky" : !nights ? "" : nights === 1 ? "new" : nights === judged.length ? "always" : `${nights} nights`;
  return { test, flips, changes, worst, failing: nights > 0, nights, state };
}

// A margin that rose at least three times and is now within a factor of two of its limit.
function creeps(history, test, column) {
  const columns = column >= 0 ? [column] : page.columns.map((_, k) => k);
  return columns.some((k) => {
    let rises = 0;
    for (let n = Math.max(1, history.nights - 20); n < history.nights; n++) if (history.marginByte(test, k, n) > history.marginByte(test, k, n - 1)) rises += 1;
    const now = history.margin(test, k, history.nights - 1);
    return rises >= 3 && now > 0.5 && now <= 1 && !history.fails(test, k, history.nights - 1);
  });
}

const ORDERS = {
  worst: (a, b) => b.failing - a.failing || (a.state === "flaky") - (b.state === "flaky") || (a.failing ? a.nights - b.nights : 0) || b.worst - a.worst || b.flips - a.flips || a.test - b.test,
  name: (a, b) => (a.name < b.name ? -1 : 1),
  flips: (a, b) => b.flips - a.flips || b.changes - a.changes || a.test - b.test,
};

let judgedRows = { history: null, column: null, rows: [] };

function allRows(history, column) {
  if (judgedRows.history !== history || judgedRows.column !== column) {
    const flaky = flakyCases();
    const rows = history.names.map((name, test) => ({ ...judgedRow(history, test, column, flaky), name, find: name.toLowerCase() }));
    judgedRows = { history, column, rows };
  }
  return judgedRows.rows;
}

function chosenRows(history, column) {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const fault = page.faults.find((each) => each.key === state.fault);
  const ofFault = fault ? new Set(fault.tests) : null;
  const found = allRows(history, column).filter((row) => (!ofFault || ofFault.has(row.test)) && words.every((word) => row.find.includes(word)) && (!state.failing || row.failing));
  const every = state.rows === "all" || (state.rows === "uneven" && words.length); // who searches wants the test that was named
  const chosen =
    every ? found : state.rows === "creep" ? found.filter((row) => creeps(history, row.test, column)) : found.filter((row) => row.flips || row.failing || row.state);
  return [...chosen].sort(ORDERS[state.order] || ORDERS.worst);
}
