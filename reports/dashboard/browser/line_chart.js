// Lines over nights: axis, direct labels, and a cross-hair that reads all lines of one night.

const LINE_ROOM = { width: 1160, height: 260, left: 62, right: 190, top: 18, bottom: 26 };

function niceTicks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((each) => each >= rough);
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) ticks.push(n * step);
  return ticks;
}

function spanOf(lines, { around = null, least = 0, most = Infinity } = {}) {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null && Number.isFinite(value));
  if (around !== null) values.push(around);
  if (!values.length) return [0, 1];
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((high - low) * 0.08, least, most < Infinity ? 0 : Math.abs(high) * 0.02, 1e-9);
  return [low >= 0 && low < 0.35 * high ? 0 : low - room, Math.min(most, high + room)];
}

// Labels at the right end, pushed apart so that none covers another.
function spreadLabels(places, least, top, bottom) {
  const sorted = places.map((y, index) => ({ y, index })).sort((a, b) => a.y - b.y);
  for (let i = 0, floor = top; i < sorted.length; i++) floor = sorted[i].y = Math.max(sorted[i].y, i ? floor + least : top);
  for (let i = sorted.length - 1, roof = bottom; i >= 0; i--) roof = (sorted[i].y = Math.min(sorted[i].y, roof)) - least;
  const out = [];
  for (const { y, index } of sorted) out[index] = y;
  return out;
}

function pathOf(values, x, y) {
  let said = "";
  let pen = false;
  values.forEach((value, night) => {
    if (value === null || !Number.isFinite(value)) return void (pen = false);
    said += `${pen ? "L" : "M"}${x(night).toFixed(1)},${y(value).toFixed(1)}`;
    pen = true;
  });
  return said;
}

// lines: {name, values, tone}; format turns a value into text; base is a value drawn as a line of its own; least: what the
// axis spans beyond the values; most: no value is above it.
function lineChart(lines, { format, base = null, least = 0, most, label, marks = [] }) {
  const { width, height, left, right, top, bottom } = LINE_ROOM;
  const nights = page.nights;
  const [low, high] = spanOf(lines, { around: base, least, most });
  const x = (night) => left + ((night + 0.5) * (width - left - right)) / Math.max(nights.length, 1);
  const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (high - low));
  const grid = niceTicks(low, high).flatMap((tick) => [
    svg("line", { class: base !== null && Math.abs(tick - base) < 1e-9 ? "grid base" : "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
    svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, format(tick)),
  ]);
  const drawn = lines.filter((line) => line.values.some((value) => value !== null));
  const ends = drawn.map((line) => y(line.values.findLast((value) => value !== null)));
  const places = spreadLabels(ends, 15, top + 4, height - bottom);
  const paths = drawn.map((line) => svg("path", { class: `line ${line.tone}`, d: pathOf(line.values, x, y) }));
  const names = drawn.map((line, i) => svg("text", { class: `line-name ${line.tone}`, x: width - right + 10, y: places[i] + 4 }, line.name.length > 26 ? `${line.name.slice(0, 25)}…` : line.name));
  const notes = marks.flatMap(({ night, text }) => [
    svg("line", { class: "noted", x1: x(night) - 4, x2: x(night) - 4, y1: top, y2: height - bottom }),
    svg("text", { class: "noted-text", x: x(night) - 10, y: top + 10, "text-anchor": "end" }, text),
  ]);
  const hair = svg("line", { class: "hair", y1: top, y2: height - bottom, visibility: "hidden" });
  const dots = drawn.map((line) => svg("circle", { class: `dot ${line.tone}`, r: 3.5, visibility: "hidden" }));
  const picture = svg("svg", { class: "chart lines", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, tabindex: 0 },
    grid, upgradeLines(nights, (night) => x(night) - 4, height - bottom, width - right), dayTicks(nights, x, height - 6, width - right), notes, paths, hair, dots, names);
  const reading = html("p", { class: "reading", "aria-live": "polite" }, "\u00a0");
  const read = (night) => {
    if (night < 0 || night >= nights.length) return;
    hair.setAttribute("visibility", night === nights.length - 1 ? "hidden" : "visible");
    hair.setAttribute("x1", x(night));
    hair.setAttribute("x2", x(night));
    drawn.forEach((line, i) => {
      const value = line.values[night];
      dots[i].setAttribute("visibility", value === null ? "hidden" : "visible");
      if (value !== null) [["cx", x(night)], ["cy", y(value)]].forEach(([name, at]) => dots[i].setAttribute(name, at));
    });
    reading.replaceChildren(html("b", null, dayOf(nights[night])), nights[night].void ? soft(" void") : "",
      ...drawn.map((line) => html("span", { class: `read ${line.tone}` }, `${line.name} `, html("b", null, line.values[night] === null ? "–" : format(line.values[night])))));
  };
  let at = nights.length - 1;
  read(at);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width) * width;
    read((at = Math.max(0, Math.min(nights.length - 1, Math.floor(((share - left) / (width - left - right)) * nights.length)))));
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    read((at = Math.max(0, Math.min(nights.length - 1, at + step))));
  });
  return html("figure", null, html("div", { class: "newest-first" }, picture), reading);
}
