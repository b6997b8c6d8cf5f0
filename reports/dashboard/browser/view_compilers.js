// The compilers on the same tests: who is wrong where the other is right.

async function viewCompilers() {
  const { compilers, backends } = compilersAndBackends();
  const pairs = compilers.flatMap((one, i) => compilers.slice(i + 1).map((other) => [one, other]));
  if (!pairs.length) return nothing(`Only ${compilers[0] || "no compiler"} has been run; with a second one (--compilers=plumbline,torch) they are compared here.`);
  const history = await caseHistory();
  return pairs.map(([one, other]) => comparedCompilers(history, backends, one, other));
}

function comparedCompilers(history, backends, one, other) {
  const night = history.nights - 1;
  const shared = backends.filter((backend) => [one, other].every((compiler) => page.columns.includes(`${compiler}:${backend}`)));
  const lists = { one: [], other: [], both: [] };
  const seen = new Set(); // tests that ran under both last night: not those that were renamed or are gone
  const rows = shared.map((backend) => {
    const [a, b] = [one, other].map((compiler) => page.columns.indexOf(`${compiler}:${backend}`));
    const counts = { one: 0, other: 0, both: 0, neither: 0 };
    history.names.forEach((name, test) => {
      if (!page.marks[history.mark(test, a, night)].letter.trim() || !page.marks[history.mark(test, b, night)].letter.trim()) return;
      const kind = { "true true": "both", "true false": "one", "false true": "other", "false false": "neither" }[`${history.fails(test, a, night)} ${history.fails(test, b, night)}`];
      counts[kind] += 1;
      seen.add(test);
      lists[kind]?.push([test, backend, a, b]);
    });
    const cell = (kind) => html("td", { class: counts[kind] && kind !== "neither" ? "number hot" : "number" }, counts[kind].toLocaleString("en"));
    return html("tr", null, html("th", { scope: "row" }, backend), ["one", "other", "both", "neither"].map(cell));
  });
  const titles = { one: `Only ${one} is wrong`, other: `Only ${other} is wrong`, both: "Both are wrong" };
  const leads = { one: `${other} gives the right answer for the same test and backend, so the fault is probably in ${one}.`, other: `${one} gives the right answer for the same test and backend, so the fault is probably in ${other}.`, both: "What both share: the test itself, torch below the compilers, or the machine." };
  return html("section", null,
    html("h1", null, `${one} and ${other} on the same ${counted(seen.size, "test")}`),
    table(["backend", `#only ${one} wrong`, `#only ${other} wrong`, "#both wrong", "#both right"], rows, { class: "fit" }),
    Object.keys(titles).map((kind) => [html("h2", null, titles[kind], soft(` ${lists[kind].length}`)), html("p", { class: "lead" }, leads[kind]), lists[kind].length ? differing(history, lists[kind], [one, other]) : nothing("No case.")]));
}

const MOST_LISTED = 200;

function differing(history, cases, names) {
  const night = history.nights - 1;
  const rows = cases.slice(0, MOST_LISTED).map(([test, backend, a, b]) => html("tr", { "data-open": address({ view: "test", test: history.names[test] }) },
    html("th", { scope: "row" }, link({ view: "test", test: history.names[test] }, testName(history.names[test]))),
    html("td", null, backend),
    [a, b].map((k) => html("td", null, badge(page.marks[history.mark(test, k, night)]), soft(` ${marginText(history.margin(test, k, night))}`))),
    html("td", null, strip(history.letters(test, history.fails(test, a, night) ? a : b), { step: 4 }))));
  return [table(["test", "backend", ...names, "nights"], rows, { class: "cases" }), cases.length > MOST_LISTED ? soft(`and ${counted(cases.length - MOST_LISTED, "more case")}; the map shows all`) : null];
}
