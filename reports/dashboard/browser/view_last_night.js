// The first page: one verdict, one sentence, what changed, one card a fault.

function viewLastNight() {
  const shown = page.faults;
  const fresh = shown.filter((fault) => fault.new);
  const old = shown.filter((fault) => !fault.new);
  const often = page.flaky.filter((each) => each.counted);
  const flaky = page.flaky.filter((each) => each.failing && !each.counted);
  return [
    banner(),
    whatChanged(),
    html("figure", { class: "card plain-card" }, html("figcaption", null, html("b", null, "Failures"), soft(` of ${counted(page.nights.length, "night")}; a bar opens that night beside the last one`)), html("div", { class: "newest-first" }, nightBars(page.nights)), barLegend()),
    fresh.length ? [html("h2", null, "New last night"), fresh.map(faultCard)] : null,
    html("div", { class: "two" }, drifting(), renames()),
    old.length ? [html("h2", null, "Still wrong"), old.map(faultCard)] : null,
    often.length ? [html("h2", null, "Fails often, and did not before: counted"), flakyTable(often)] : null,
    flaky.length ? [html("h2", null, "Flaky, failed last night, not counted"), flakyTable(flaky)] : null,
    shown.length || flaky.length || often.length ? null : nothing("No case failed last night."),
  ];
}

function banner() {
  const night = page.nights.at(-1);
  const tiles = night
    ? [
        [night.cases ? `${passRate(night)} %` : "–", `of ${counted(night.cases, "case")} hold`, ""],
        [night.new, "newly wrong", night.new ? "hot" : ""],
        [night.still, "still wrong", night.still ? "warm" : ""],
        [night.fixed, "fixed", night.fixed ? "fine" : ""],
        [night.flaky, "flaky, not counted", ""],
      ]
    : [];
  return html("header", { class: `banner ${page.verdict.toLowerCase()}` },
    html("div", { class: "verdict" }, page.verdict),
    html("div", { class: "headline" }, html("h1", null, page.headline), html("p", null, page.summary)),
    html("dl", { class: "tiles" }, tiles.map(([number, text, tone]) => html("div", { class: tone }, html("dd", null, typeof number === "number" ? number.toLocaleString("en") : number), html("dt", null, text)))));
}

function passRate(night) {
  const share = (100 * night.passing) / night.cases;
  return share === 100 ? "100" : (Math.floor(share * 100) / 100).toFixed(share > 99 ? 2 : 1);
}

function whatChanged() {
  const night = page.nights.at(-1);
  const before = page.nights[page.compared];
  if (!night) return null;
  const boxes = Object.entries(night.versions).map(([part, now]) => {
    const then = before?.versions[part];
    const changed = before && then !== now;
    return html("div", { class: changed ? "changed" : "" }, html("dt", null, part), html("dd", null, changed ? [html("s", null, then || "unknown"), " → ", html("b", null, now || "unknown")] : [now || "unknown", soft(before ? ", unchanged" : "")]));
  });
  const since = [];
  if (before) since.push("Compared with ", link({ view: "runs", left: before.run_id, right: night.run_id }, `the night before (${dayOf(before)})`));
  if (page.green >= 0 && page.green !== page.compared) since.push(since.length ? "; last green: " : "Last green: ", link({ view: "runs", left: page.nights[page.green].run_id, right: night.run_id }, dayOf(page.nights[page.green])));
  else if (page.green < 0 && page.nights.length > 1) since.push("; no green night in view");
  return [html("dl", { class: "sources" }, boxes), since.length ? html("p", { class: "soft since" }, since, ".") : null];
}

function barLegend() {
  const keys = [["bad", "new"], ["old", "still wrong"], ["soft", "flaky, not counted"], ["good", "no failure"], ["void", "void night"]];
  return html("p", { class: "legend" }, keys.map(([tone, text]) => html("span", null, html("i", { class: `k-${tone}` }), text)));
}

function suspectLine(fault) {
  return html("span", { class: `suspect s-${fault.suspect.replace(" ", "-")}` }, html("span", null, fault.proved ? "proved: " : "suspect: "), fault.suspect);
}

function faultCard(fault) {
  const cases = fault.tests.length * fault.columns.length;
  const since = fault.new ? "since last night" : `${fault.since < 0 ? "since before " : "since "}${fault.since_date}, ${counted(fault.nights, "night")}`;
  const worst = fault.worst;
  return html("article", { class: `fault${fault.new ? " new" : ""}`, tabindex: 0, "data-fault": fault.key, "data-open": address({ view: "fault", fault: fault.key }) },
    html("div", { class: "said" },
      html("p", { class: "who" }, suspectLine(fault), soft(since)),
      html("h3", null, badge(page.marks[fault.mark]), " ", link({ view: "fault", fault: fault.key }, fault.title)),
      html("p", { class: "why" }, fault.why),
      commitList(fault.commits),
      worst ? html("p", { class: "worst" }, soft("worst: "), link({ view: "test", test: worst.test }, testName(worst.test)), worst.margin > 1 ? soft(`, ${marginText(worst.margin)} times the limit`) : null) : null,
      worst?.sentence ? html("p", { class: "sentence" }, worst.where ? [code(worst.where), ": "] : null, worst.sentence) : null,
      copyLine(fault.command)),
    html("div", { class: "side" }, ladderOfFault(fault), strip(fault.history, { label: "the worst case, night by night" }),
      html("p", null, link({ view: "map", fault: fault.key, column: fault.columns.length === 1 ? String(fault.columns[0]) : "" }, `${counted(cases, "case")} in the map`))));
}

function commitList(commits) {
  if (!commits.length) return null;
  return html("ul", { class: "commits" }, commits.map((commit) => html("li", null, code(commit.id), " ", commit.title, " ", soft(commit.author))));
}

function drifting() {
  const list = page.drifts.map((drift) => html("li", null, html("b", null, drift.bold), " ", drift.text, " ", link(drift.view, drift.link)));
  return html("section", null, html("h2", null, "Drifting"), list.length ? html("ul", { class: "plain" }, list) : nothing("Nothing moves towards a limit."));
}

function renames() {
  const moved = page.names.filter((change) => change.after);
  const gone = page.names.filter((change) => !change.after);
  const items = [];
  if (moved.length) {
    const pairs = moved.slice(0, 50).map((change) => html("li", null, code(change.before), " → ", link({ view: "test", test: change.after }, code(change.after))));
    items.push(html("li", null, html("details", null, html("summary", null, html("b", null, `${counted(moved.length, "test")} renamed`), `; ${moved[0].because}`), html("ul", { class: "plain" }, pairs))));
  }
  for (const change of gone.slice(0, 5)) items.push(html("li", null, html("b", null, "vanished: "), link({ view: "test", test: change.before }, code(change.before)), change.because ? soft(` ${change.because}`) : null));
  if (gone.length > 5) items.push(html("li", null, `and ${counted(gone.length - 5, "more test")} that vanished`));
  return html("section", null, html("h2", null, "Names"), items.length ? html("ul", { class: "plain" }, items) : nothing("No test was renamed, none vanished."));
}
