// The small pictures of a fault or case: a strip of nights, and the ladder of compilers and backends.

const markOfLetter = (letter) => page.marks.find((mark) => mark.letter === letter) || page.marks[0];

// One square a night; the letters are those of the marks, a void night is an outline.
function strip(letters, { step = 5, height = 14, label = "the last nights", follow = null } = {}) {
  const squares = [...letters].map((letter, night) => {
    const mark = markOfLetter(letter);
    const gone = page.nights[night]?.void;
    const square = svg("rect", { class: gone ? "t-void" : `t-${mark.tone}`, x: night * step + 0.5, y: 0.5, width: step - 1, height: height - 1, rx: 1 },
      svg("title", null, page.nights[night] ? `${dayOf(page.nights[night])}: ${gone ? "void night" : mark.word}` : mark.word));
    if (follow) square.addEventListener("click", () => follow(night));
    return square;
  });
  const width = letters.length * step;
  return svg("svg", { class: "strip", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, squares);
}

function compilersAndBackends() {
  const split = page.columns.map((column) => [column.slice(0, column.indexOf(":")), column.slice(column.indexOf(":") + 1)]);
  return { compilers: [...new Set(split.map(([compiler]) => compiler))], backends: [...new Set(split.map(([, backend]) => backend))] };
}

// Which compiler and backend fail: one look tells whose fault it is. letterOf gives the mark of a column, or null.
function ladder(markOfColumn, label) {
  const { compilers, backends } = compilersAndBackends();
  const cell = (compiler, backend) => {
    const column = page.columns.indexOf(`${compiler}:${backend}`);
    const mark = column < 0 ? null : markOfColumn(column);
    return html("td", null, mark ? html("span", { class: `rung ${mark.tone}`, title: `${compiler}:${backend}: ${mark.word}` }, mark.letter) : "");
  };
  const rows = compilers.map((compiler) => html("tr", null, html("th", { scope: "row" }, compiler), backends.map((backend) => cell(compiler, backend))));
  const head = html("tr", null, html("td"), backends.map((backend) => html("th", { scope: "col" }, backend.replace("aot_eager", "aot").replace("inductor", "induct."))));
  return html("table", { class: "ladder", "aria-label": label }, html("thead", null, head), html("tbody", null, rows));
}

function ladderOfFault(fault) {
  const mark = page.marks[fault.mark];
  const good = markOfLetter("=");
  const failing = fault.columns.map((column) => page.columns[column]).join(", ");
  return ladder((column) => (fault.columns.includes(column) ? mark : good), `fails under ${failing}`);
}
