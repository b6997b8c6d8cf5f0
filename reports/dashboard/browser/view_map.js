// The map: every test by every night, as colours; only what is uneven unless asked for more.

let heatMap = null;

async function viewMap() {
  const history = await caseHistory();
  const column = state.column === "" || !page.columns[+state.column] ? -1 : +state.column;
  const rows = chosenRows(history, column);
  const reading = html("div", { id: "map-reading", class: "map-reading", "aria-live": "polite" });
  if (heatMap?.history !== history) heatMap = new HeatMap(history, {});
  heatMap.opened = (row) => go({ view: "test", test: row.name });
  heatMap.said = (row, night) => reading.replaceChildren(...mapReading(history, row, night));
  heatMap.show(rows, column, state.by);
  const set = (key) => (value) => adjust({ [key]: value });
  const failing = html("input", { type: "checkbox", id: "failing", checked: Boolean(state.failing), onchange: (event) => adjust({ failing: event.target.checked ? "1" : "" }) });
  return [
    html("div", { class: "tools" },
      choice("column", "column", [["", `the worst of ${page.columns.length}`], ...page.columns.map((name, k) => [String(k), name])], state.column, set("column")),
      choice("by", "colour", [["verdict", "verdict"], ["margin", "margin"]], state.by, set("by")),
      choice("rows", "rows", [["uneven", "uneven only"], ["all", "all"], ["creep", "creeping margins"]], state.rows, set("rows")),
      choice("order", "order", [["worst", "worst first"], ["flips", "most changes"], ["name", "name"]], state.order, set("order")),
      html("label", { class: "check" }, failing, "failing last night"),
      page.faults.some((each) => each.key === state.fault) ? html("button", { type: "button", id: "every-test", onclick: () => adjust({ fault: "" }) }, "only one fault’s tests ✕") : null,
      html("span", { id: "found", class: "soft", "aria-live": "polite" }, `${rows.length.toLocaleString("en")} of ${counted(history.names.length, "test")}`)),
    rows.length ? heatMap.box : nothing(state.rows === "uneven" && !state.q ? "Every test did the same every night." : "No test fits the filter; clear it, or show all rows."),
    state.by === "margin" ? marginLegend() : markLegend(history),
    rows.length ? reading : null,
  ];
}

function mapReading(history, row, night) {
  const cells = page.columns.map((name, k) => {
    const margin = history.margin(row.test, k, night);
    return html("span", { class: "cell" }, badge(page.marks[history.mark(row.test, k, night)]), " ", name, margin ? soft(` ${marginText(margin)}`) : null);
  });
  return [html("p", null, link({ view: "test", test: row.name }, testName(row.name)), soft(` ${dayOf(page.nights[night])}${page.nights[night].void ? ", void night" : ""}`)), html("p", { class: "cells" }, cells)];
}

function markLegend(history) {
  const used = page.marks.filter((mark, position) => mark.letter.trim() && history.used.has(position));
  return html("p", { class: "legend" }, used.map((mark) => html("span", { title: mark.meaning }, html("i", { class: `k-${mark.tone}` }, mark.letter), mark.word.toLowerCase().replace("_", " "))), html("span", null, html("i", { class: "k-void" }), "void night"));
}

function marginLegend() {
  const steps = Array.from({ length: 9 }, (_, i) => html("i", { class: `k-heat-${i}` }));
  return html("p", { class: "legend" }, html("span", null, "bitwise equal ", steps, " at the limit"), html("span", null, html("i", { class: "k-bad" }), "fails"), html("span", null, html("i", { class: "k-void" }), "void night"));
}
