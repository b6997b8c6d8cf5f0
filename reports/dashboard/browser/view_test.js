// One test: its history under every column, and what is known of the cases that are not plainly good.

async function viewTest() {
  const name = state.test;
  const history = await caseHistory();
  const test = history.positions.get(name);
  if (test === undefined) return nothing(`There is no test of this name in the nights shown: ${name}`);
  const details = await source.test(name);
  const faults = page.faults.filter((fault) => fault.tests.includes(test));
  const flaky = page.flaky.filter((each) => each.test === name);
  return [
    html("p", { class: "trail" }, link({ view: "map" }, "Map"), " / ", link({ view: "map", rows: "all", q: name.split("::")[0].split("/").pop() }, name.split("::")[0])),
    html("h1", { class: "name" }, testName(name)),
    faults.map((fault) => html("p", { class: "note bad-note" }, badge(page.marks[fault.mark]), " ", fault.new ? "New last night: " : "Still wrong: ", link({ view: "fault", fault: fault.key }, fault.title), " ", suspectLine(fault))),
    flaky.map((each) => html("p", { class: "note" }, `Flaky under ${page.columns[each.column]} since ${each.since}: failed on ${Math.round(100 * each.rate)} % of these nights; ${each.standing}.`)),
    html("h2", null, "History"),
    html("p", { class: "lead" }, "The letters are the verdicts of last night, the number the margin: how much of the allowed difference is used, 1 is the limit. A square opens that night beside the last one."),
    table(["column", "last night", "#margin", "nights", "margin over the nights, log scale"], page.columns.map((column, k) => testRow(history, test, column, k))),
    html("h2", null, "What was found"),
    details.length ? details.map((detail, i) => detailCard(detail, i === 0)) : nothing("Every case of this test held in the nights shown; details are kept of the others only."),
    source.live ? null : details.length ? html("p", { class: "soft" }, "This file keeps details of the last night a case was not good; plumbline dashboard --serve shows every night’s.") : null,
  ];
}

function testRow(history, test, column, k) {
  const night = history.nights - 1;
  const open = (at) => go({ view: "runs", left: page.nights[at].run_id });
  return html("tr", null, html("th", { scope: "row" }, column), html("td", null, badge(page.marks[history.mark(test, k, night)]), soft(` ${page.marks[history.mark(test, k, night)].word.toLowerCase()}`)),
    html("td", { class: "number" }, marginText(history.margin(test, k, night)) || (history.fails(test, k, night) ? "–" : "0")),
    html("td", null, strip(history.letters(test, k), { step: 6, label: `${column}, night by night`, follow: open })),
    html("td", null, marginLine(history, test, k)));
}

function marginLine(history, test, k) {
  const [width, high] = [240, 26];
  const y = (byte) => (byte ? Math.max(2, Math.min(high - 2, high / 2 - ((byte - MARGIN_ONE) / MARGIN_STEPS / 3) * (high / 2 - 2))) : high - 2);
  const points = page.nights.map((night, n) => `${((n + 0.5) * width) / history.nights},${y(history.marginByte(test, k, n)).toFixed(1)}`);
  return svg("svg", { class: "spark", width, height: high, viewBox: `0 0 ${width} ${high}`, role: "img", "aria-label": "margins, the dashed line is the limit" },
    svg("line", { x1: 0, x2: width, y1: high / 2, y2: high / 2 }), svg("polyline", { points: points.join(" ") }));
}

function detailCard(detail, open) {
  const mark = page.marks[detail.mark];
  return html("details", { class: "detail", open },
    html("summary", null, badge(mark), html("span", null, html("b", null, page.columns[detail.column]), ` ${mark.word.toLowerCase()} `, soft(page.nights[detail.night] ? dayOf(page.nights[detail.night]) : "")),
      html("span", { class: "said" }, detail.where ? [code(detail.where), ": "] : null, detail.sentence || mark.meaning)),
    html("div", null, detail.facts.length ? facts(detail.facts) : null,
      detail.notes.length ? [html("h3", null, "Notes"), html("ul", null, detail.notes.map((note) => html("li", null, note)))] : null,
      detail.events.length ? [html("h3", null, "What the compiler did"), html("ul", null, detail.events.map((event) => html("li", null, event)))] : null,
      detail.command ? [html("h3", null, "Reproduce"), copyLine(detail.command)] : null));
}
