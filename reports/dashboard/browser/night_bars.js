// One bar a night: newly wrong, still wrong, flaky. The height grows with the root, so that one failure can be seen
// beside a hundred.

const BAR_ROOM = 1160;
const BAR_HIGH = 72;

function nightBars(nights, follow) {
  const step = Math.min(BAR_ROOM / Math.max(nights.length, 1), 40);
  const start = BAR_ROOM - step * nights.length; // few nights stand at the right, where the newest always is
  const wide = Math.max(1.5, step * 0.76);
  const most = Math.max(16, ...nights.filter((night) => !night.void).map((night) => night.new + night.still + night.flaky));
  const high = (count) => (count ? 4 + (BAR_HIGH - 4) * Math.sqrt(count / most) : 0);
  const pieces = [];
  nights.forEach((night, position) => {
    const x = start + position * step + (step - wide) / 2;
    const base = BAR_HIGH + 18;
    const whole = night.new + night.still + night.flaky;
    const said = night.void ? `void: ${night.void}` : `${night.new} new, ${night.still} still wrong, ${night.flaky} flaky`;
    const bar = svg("a", { href: address({ view: "runs", left: night.run_id }), class: "bar", "aria-label": `${dayOf(night)}: ${said}` }, svg("title", null, `${dayOf(night)}: ${said}`),
      svg("rect", { class: "touch", x: start + position * step, y: 18, width: step, height: BAR_HIGH }));
    if (night.void) bar.append(svg("rect", { class: "t-void", x, y: 18, width: wide, height: BAR_HIGH, rx: 2 }));
    else if (!whole) bar.append(svg("rect", { class: "t-good", x, y: base - 3, width: wide, height: 3, rx: 1 }));
    else {
      let y = base;
      for (const [tone, count] of [["old", night.still], ["soft", night.flaky], ["bad", night.new]]) {
        const part = (high(whole) * count) / whole;
        y -= part;
        if (count) bar.append(svg("rect", { class: `t-${tone}`, x, y: y.toFixed(1), width: wide, height: Math.max(part, 1).toFixed(1), rx: 1.5 }));
      }
    }
    pieces.push(bar);
  });
  pieces.push(...upgradeLines(nights, (position) => start + position * step, BAR_HIGH + 18, BAR_ROOM), ...dayTicks(nights, (position) => start + (position + 0.5) * step, BAR_HIGH + 34, BAR_ROOM));
  return svg("svg", { class: "chart bars", viewBox: `0 0 ${BAR_ROOM} ${BAR_HIGH + 40}`, role: "group", "aria-label": "failures night by night" }, pieces);
}

// Dashed lines where torch was upgraded, named on the side with room.
function upgradeLines(nights, x, high, room) {
  const pieces = [];
  let free = -Infinity;
  for (let n = 1; n < nights.length; n++) {
    const version = nights[n].versions.torch;
    if (version === nights[n - 1].versions.torch) continue;
    const text = `torch ${version}`;
    const left = x(n) + text.length * 7 > room;
    pieces.push(svg("line", { class: "upgrade", x1: x(n), x2: x(n), y1: 2, y2: high }));
    if (x(n) < free) continue;
    pieces.push(svg("text", { class: "upgrade-text", x: x(n) + (left ? -5 : 5), y: 11, "text-anchor": left ? "end" : "start" }, text));
    free = x(n) + text.length * 7;
  }
  return pieces;
}

function dayTicks(nights, x, y, room) {
  if (!nights.length) return [];
  const every = Math.max(1, Math.ceil(95 / (x(1) - x(0)))); // labels need so much room
  const pieces = [];
  for (let n = nights.length - 1 - every; n >= 0; n -= every) if (x(n) > 22) pieces.push(svg("text", { x: x(n), y, "text-anchor": "middle" }, shortDay(nights[n])));
  pieces.push(svg("text", { class: "now", x: Math.min(x(nights.length - 1) + 4, room), y, "text-anchor": "end" }, "last night"));
  return pieces;
}
