// What is flaky, how much, since when, and what has to happen until it counts again.

function viewFlaky() {
  return [
    html("h1", null, page.flaky.length ? `${counted(page.flaky.length, "flaky case")}` : "No flaky case"),
    html("p", { class: "lead" }, "A case is flaky when it passed and failed on the same code. It runs every night and is shown, but does not count, unless it fails so often that it must be broken."),
    page.flaky.length ? flakyTable(page.flaky) : null,
  ];
}

function flakyTable(cases) {
  const rows = cases.map((each) => html("tr", { "data-open": address({ view: "test", test: each.test }) },
    html("td", null, badge(page.marks[each.mark])),
    html("th", { scope: "row" }, link({ view: "test", test: each.test }, testName(each.test)), html("div", { class: "soft" }, page.columns[each.column])),
    html("td", { class: "number" }, `${Math.round(100 * each.rate)} %`),
    html("td", null, strip(each.history, { step: 4, label: `${each.test}, night by night` })),
    html("td", null, each.since),
    html("td", null, each.standing)));
  return table(["", "case", "#fails", "nights", "flaky since", "now"], rows, { class: "flaky" });
}
