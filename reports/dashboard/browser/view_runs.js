// Two runs side by side: what they ran on, and which cases differ, grouped as faults are.

async function viewRuns() {
  if (page.nights.length < 2) return nothing("There is one run only; the second one can be compared with it.");
  const history = await caseHistory();
  const position = (run, usual) => {
    const found = page.nights.findIndex((night) => night.run_id === run);
    return found < 0 ? usual : found;
  };
  const right = position(state.right, page.nights.length - 1);
  const left = position(state.left, Math.max(0, page.compared));
  const options = page.nights.map((night, n) => [night.run_id, `${dayOf(night)}${n === page.nights.length - 1 ? " (last night)" : n === page.green ? " (last green)" : night.void ? " (void)" : ""}`]).reverse();
  const found = differences(history, left, right);
  const parts = Object.keys(page.nights[right].versions);
  const shown = (value) => (typeof value === "number" ? value.toLocaleString("en") : value || "");
  const row = (name, a, b) => html("tr", { class: a === b ? "" : "changed" }, html("th", { scope: "row" }, name), html("td", null, shown(a)), html("td", null, shown(b)));
  const [a, b] = [page.nights[left], page.nights[right]];
  return [
    html("h1", null, "Two runs side by side"),
    html("div", { class: "tools" },
      choice("left", "left", options, page.nights[left].run_id, (value) => adjust({ left: value })),
      choice("right", "right", options, page.nights[right].run_id, (value) => adjust({ right: value })),
      html("button", { type: "button", onclick: () => adjust({ left: page.nights[right].run_id, right: page.nights[left].run_id }) }, "swap")),
    table(["", dayOf(a), dayOf(b)], [
      row("run", a.run_id, b.run_id), ...parts.map((part) => row(part, a.versions[part], b.versions[part])), row("cases", a.cases, b.cases), row("hold", a.passing, b.passing),
      row("wrong", a.new + a.still, b.new + b.still), row("flaky", a.flaky, b.flaky)], { class: "versions" }),
    differenceGroups(history, found.wrong, left, right, "Wrong on the right only", "No case is wrong on the right that was not on the left."),
    differenceGroups(history, found.fixed, left, right, "Wrong on the left only", "No case is wrong on the left only."),
    html("h2", null, "Other differences"),
    html("ul", { class: "plain" },
      html("li", null, `${counted(found.both, "case")} wrong on both`), html("li", null, `${counted(found.moved, "case")} with another margin (margins repeat bit for bit, so these are changed programs)`),
      html("li", null, `${counted(found.appeared, "case")} on the right only, ${counted(found.vanished, "case")} on the left only`)),
  ];
}

function differences(history, left, right) {
  const found = { wrong: [], fixed: [], both: 0, moved: 0, appeared: 0, vanished: 0 };
  for (let test = 0; test < history.names.length; test++) {
    for (let k = 0; k < history.width; k++) {
      const [a, b] = [history.mark(test, k, left), history.mark(test, k, right)];
      const [failedLeft, failsRight] = [history.failing[a], history.failing[b]];
      if (!a && b) found.appeared += 1;
      if (a && !b) found.vanished += 1;
      if (failsRight && !failedLeft) found.wrong.push([test, k]);
      else if (failedLeft && !failsRight) found.fixed.push([test, k]);
      else if (failedLeft) found.both += 1;
      else if (a && b && history.marginByte(test, k, left) !== history.marginByte(test, k, right)) found.moved += 1;
    }
  }
  return found;
}

// Cases of one file that fail under the same columns in the same way are one group: one culprit, as far as can be seen.
function grouped(history, cases, night) {
  const byTest = new Map();
  for (const [test, k] of cases) byTest.set(test, [...(byTest.get(test) || []), k]);
  const groups = new Map();
  for (const [test, columns] of byTest) {
    const mark = history.mark(test, columns.at(-1), night);
    const key = JSON.stringify([history.names[test].split("::")[0], columns, mark]);
    if (!groups.has(key)) groups.set(key, { file: history.names[test].split("::")[0], columns, mark, tests: [] });
    groups.get(key).tests.push(test);
  }
  return [...groups.values()].sort((a, b) => b.tests.length - a.tests.length);
}

function differenceGroups(history, cases, left, right, title, none) {
  const night = title.includes("right") ? right : left;
  const groups = grouped(history, cases, night);
  const cards = groups.slice(0, 60).map((group) => {
    const mark = page.marks[group.mark];
    const fault = page.faults.find((each) => group.tests.every((test) => each.tests.includes(test)));
    const links = group.tests.slice(0, 20).map((test) => html("li", null, link({ view: "test", test: history.names[test] }, testName(history.names[test]))));
    return html("article", { class: "fault small", tabindex: 0 },
      html("div", { class: "said" }, html("h3", null, badge(mark), ` ${lastPart(group.file)}: ${mark.word.toLowerCase()} in ${counted(group.tests.length, "test")}`),
        fault ? html("p", { class: "who" }, suspectLine(fault), link({ view: "fault", fault: fault.key }, "the fault")) : null,
        html("details", null, html("summary", null, "tests"), html("ul", { class: "plain" }, links, group.tests.length > 20 ? html("li", null, `and ${group.tests.length - 20} more`) : null))),
      html("div", { class: "side" }, ladder((k) => (group.columns.includes(k) ? mark : markOfLetter("=")), "columns that differ")));
  });
  return [html("h2", null, title, soft(` ${counted(cases.length, "case")}`)), cards.length ? cards : nothing(none), groups.length > 60 ? soft(`and ${groups.length - 60} more groups`) : null];
}
