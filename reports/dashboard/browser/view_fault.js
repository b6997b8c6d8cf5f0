// One fault: whose it is and why, what came in with it, and every test it breaks.

async function viewFault() {
  const fault = page.faults.find((each) => each.key === state.fault);
  if (!fault) return [nothing("This fault does not fail in the nights shown: it is fixed, or the link is of another night."), html("p", null, link({}, "Last night"))];
  const history = await caseHistory();
  const night = history.nights - 1;
  const rows = fault.tests.slice(0, 500).map((test) => {
    const name = history.names[test];
    return html("tr", { "data-open": address({ view: "test", test: name }) }, html("th", { scope: "row" }, link({ view: "test", test: name }, testName(name))),
      fault.columns.map((k) => html("td", null, badge(page.marks[history.mark(test, k, night)]), soft(` ${marginText(history.margin(test, k, night))}`))),
      html("td", null, strip(history.letters(test, fault.columns.at(-1)), { step: 4 })));
  });
  const versions = fault.since > 0 ? changedParts(page.nights[fault.since - 1], page.nights[fault.since]) : [];
  return [
    html("p", { class: "trail" }, link({}, "Last night"), " / fault"),
    faultCard(fault),
    html("h2", null, "What changed on that night"),
    fault.since <= 0 ? nothing("It began before the nights shown.") : versions.length ? table(["part", "before", "since"], versions.map(([part, then, now]) => html("tr", null, html("th", { scope: "row" }, part), html("td", null, code(then || "unknown")), html("td", null, code(now || "unknown"))))) : nothing("Nothing that is recorded: not plumbline, torch, your code or the machine."),
    fault.since > 0 ? html("p", null, link({ view: "runs", left: page.nights[fault.since - 1].run_id, right: page.nights[fault.since].run_id }, "the two nights side by side")) : null,
    fault.worst ? [html("h2", null, "The worst case"), detailCard({ ...fault.worst, command: "" }, true)] : null,
    html("h2", null, counted(fault.tests.length, "test")),
    table(["test", ...fault.columns.map((k) => page.columns[k]), "nights"], rows, { class: "cases" }),
    fault.tests.length > 500 ? soft(`and ${counted(fault.tests.length - 500, "more test")}; the map shows all`) : null,
  ];
}

function changedParts(before, after) {
  return Object.entries(after.versions).filter(([part, now]) => before.versions[part] !== now).map(([part, now]) => [part, before.versions[part], now]);
}
