// How measures move over the nights: per column, per model, per machine or version.

const WITH_UNIT = {
  s: (value) => (value >= 100 ? `${Math.round(value).toLocaleString("en")} s` : value >= 1 ? `${Number(value.toPrecision(3))} s` : `${Number((1000 * value).toPrecision(3))} ms`),
  x: (value) => `${value.toFixed(2)} ×`,
  "%": (value) => `${(Math.floor(value * 100 + 1e-6) / 100).toFixed(2)} %`,
  MB: (value) => `${Math.round(value).toLocaleString("en")} MB`,
  "": (value) => Number(value.toPrecision(4)).toLocaleString("en"),
};

function viewSpeed() {
  if (!page.measures.length) return nothing("No times are recorded for these nights.");
  const measure = page.measures.find((each) => each.key === state.measure) || page.measures[0];
  const mine = page.measured.filter((each) => each.measure === measure.key);
  const groups = [...new Set(mine.map((each) => each.group))].sort();
  const columns = [...new Set(mine.map((each) => each.column))].sort((a, b) => a - b);
  const group = groups.includes(state.group) ? state.group : "";
  const column = columns.includes(+state.column) && state.column !== "" ? +state.column : columns[0];
  const format = WITH_UNIT[measure.unit] || WITH_UNIT[""];
  const lines = speedLines(mine, { group, column, columns, groups });
  const set = (key) => (value) => adjust({ [key]: value });
  const tabs = page.measures.map((each) => html("button", { type: "button", id: `measure-${each.key}`, class: "tab", "aria-pressed": String(each === measure), onclick: () => adjust({ measure: each.key }) }, each.title));
  const several = (part) => new Set(page.nights.map(part)).size > 1;
  const splits = [["column", "column"], ["group", "model or file"], ["machine", "machine"], ["torch", "torch version"], ["suite", "suite"]].filter(
    ([key]) => key === "column" || (key === "group" && groups.length > 1) || (key === "torch" && several((night) => night.versions.torch)) || (["machine", "suite"].includes(key) && several((night) => night[key])));
  const split = splits.some(([key]) => key === state.split) ? state.split : "column";
  return [
    html("div", { class: "tabs", role: "group", "aria-label": "measure" }, tabs),
    html("div", { class: "tools" },
      choice("split", "a line for each", splits, split, set("split")),
      split === "column" ? null : choice("column", "column", columns.map((k) => [String(k), page.columns[k]]), String(column), set("column")),
      split !== "group" && groups.length > 1 ? choice("group", "model or file", groups.map((name) => [name, name || "all of them"]), group, set("group")) : null),
    html("p", { class: "lead" }, measure.lead),
    lineChart(lines, { format, base: measure.unit === "x" ? 1 : null, least: { x: 0.03, "%": 0.1 }[measure.unit] || 0, most: measure.unit === "%" ? 100 : Infinity, label: measure.title, marks: driftMarks(measure) }),
    speedDrifts(measure),
    speedTable(lines, measure, format),
  ];
}

function speedLines(mine, { group, column, columns, groups }) {
  const of = (wantedColumn, wantedGroup) => mine.find((each) => each.column === wantedColumn && each.group === wantedGroup)?.values || [];
  const kept = (values, test) => page.nights.map((night, n) => (!night.void && test(night) ? (values[n] ?? null) : null));
  if (state.split === "group") return groups.filter(Boolean).slice(0, 12).map((name, i) => ({ name: lastPart(name), tone: `c-${i % 8}`, values: kept(of(column, name), () => true) }));
  const part = { machine: (night) => night.machine, torch: (night) => night.versions.torch, suite: (night) => night.suite }[state.split];
  if (part) return [...new Set(page.nights.map(part))].map((value, i) => ({ name: value || "unknown", tone: `c-${i % 8}`, values: kept(of(column, group), (night) => part(night) === value) }));
  return columns.map((k) => ({ name: page.columns[k], tone: columnTone(k), values: kept(of(k, group), () => true) }));
}

// The colour is the compiler's, the dash the backend's.
function columnTone(k) {
  const { compilers, backends } = compilersAndBackends();
  const [compiler, backend] = [page.columns[k].split(":")[0], page.columns[k].slice(page.columns[k].indexOf(":") + 1)];
  return `w-${compilers.indexOf(compiler) % 4} d-${backends.indexOf(backend) % 4}`;
}

function driftMarks(measure) {
  return driftsOf(measure).filter((drift) => drift.night >= 0).map((drift) => ({ night: drift.night, text: `level changed about here (${dayOf(page.nights[drift.night])})` }));
}

const driftsOf = (measure) => page.drifts.filter((drift) => drift.view.view === "speed" && (drift.view.measure || "ratio") === measure.key);

function speedDrifts(measure) {
  const mine = driftsOf(measure);
  return mine.length ? html("ul", { class: "plain" }, mine.map((drift) => html("li", null, html("b", null, drift.bold), " ", drift.text))) : null;
}

function medianOf(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
}

// A piece of the line, with its dash.
function swatch(tone) {
  return svg("svg", { class: "swatch", width: 24, height: 8, viewBox: "0 0 24 8", "aria-hidden": "true" }, svg("path", { class: `line ${tone}`, d: "M0,4H24" }));
}

function speedTable(lines, measure, format) {
  const rows = lines.map((line) => {
    const last = line.values.findLast((value) => value !== null) ?? null;
    const usual = medianOf(line.values.slice(0, 20));
    const share = measure.unit === "%"; // of which a difference is told in points: of them, a few cases count
    const change = usual && last !== null ? (share ? (last - usual) / 100 : last / usual - 1) : null;
    const worse = change !== null && Math.abs(change) >= (share ? 1e-4 : 0.05) && change > 0 === measure.less_is_better;
    return html("tr", null, html("th", { scope: "row" }, swatch(line.tone), line.name),
      html("td", { class: "number" }, last === null ? "–" : format(last)), html("td", { class: "number" }, usual === null ? "–" : format(usual)),
      html("td", { class: `number${worse ? " hot" : ""}` }, change === null ? "–" : `${change > 0 ? "+" : ""}${(100 * change).toFixed(share ? 2 : 1)} ${share ? "points" : "%"}`));
  });
  return table(["line", "#last night", "#median of the first 20 nights", "#change"], rows, { class: "fit" });
}
