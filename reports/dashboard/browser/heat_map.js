// Tests by nights on one canvas. Only the rows in sight are drawn; the canvas stays while a tall, empty box scrolls.

const ROW = 17;
const HEAD = 38;
const MOST_HIGH = 640;

class HeatMap {
  constructor(history, { opened, said }) {
    this.history = history;
    this.opened = opened;
    this.said = said;
    this.rows = [];
    this.column = -1;
    this.by = "verdict";
    this.at = { row: 0, night: history.nights - 1 };
    this.canvas = html("canvas");
    this.tall = html("div", { class: "tall" });
    this.box = html("div", { id: "map-box", class: "map-box", tabindex: 0, role: "application", "aria-label": "tests by nights: arrow keys move, Enter opens a test" }, this.canvas, this.tall);
    this.box.addEventListener("scroll", () => this.later());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("click", (event) => this.point(event) && this.opened(this.rows[this.at.row], this.at.night));
    this.size = new ResizeObserver(() => this.later());
    this.size.observe(this.box);
  }

  show(rows, column, by) {
    [this.rows, this.column, this.by] = [rows, column, by];
    this.at.row = Math.max(0, Math.min(this.at.row, rows.length - 1));
    this.later();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      if (this.box.isConnected) this.draw();
    });
  }

  measure() {
    const width = this.box.clientWidth;
    const least = Math.max(150, Math.min(440, Math.floor(width * 0.36)));
    const cell = Math.max(3, Math.min(15, Math.floor((width - least - 10) / this.history.nights)));
    const shown = Math.min(this.history.nights, Math.floor((width - least - 4) / cell));
    const labels = Math.max(least, Math.min(720, width - shown * cell - 10)); // what the nights leave is for the names
    return { width, labels, cell, first: this.history.nights - shown, height: Math.min(MOST_HIGH, this.rows.length * ROW + HEAD + 6) };
  }

  palette() {
    const style = getComputedStyle(document.documentElement);
    const tones = new Map();
    const colour = (name) => {
      if (!tones.has(name)) tones.set(name, style.getPropertyValue(`--${name}`).trim());
      return tones.get(name);
    };
    return { colour, tones: page.marks.map((mark) => colour(`t-${mark.tone}`)), heat: Array.from({ length: 9 }, (_, i) => colour(`heat-${i}`)) };
  }

  draw() {
    const { width, labels, cell, first, height } = (this.place = this.measure());
    const dots = devicePixelRatio || 1;
    this.box.style.height = `${height + 2}px`;
    this.tall.style.height = `${Math.max(0, this.rows.length * ROW + HEAD + 4 - height)}px`;
    this.canvas.width = width * dots;
    this.canvas.height = height * dots;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    const paint = this.palette();
    pen.scale(dots, dots);
    pen.fillStyle = paint.colour("panel");
    pen.fillRect(0, 0, width, height);
    pen.textBaseline = "middle";
    const top = Math.floor(this.box.scrollTop / ROW);
    const seen = Math.ceil((height - HEAD) / ROW);
    for (let i = 0; i < seen && top + i < this.rows.length; i++) this.drawRow(pen, paint, top + i, HEAD + i * ROW);
    this.drawHead(pen, paint);
    const { row, night } = this.at;
    if (row >= top && row < top + seen && night >= first && this.rows.length) {
      pen.strokeStyle = paint.colour("accent");
      pen.lineWidth = 2;
      pen.strokeRect(labels + (night - first) * cell - 1, HEAD + (row - top) * ROW - 0.5, cell + 1, ROW - 1);
    }
    this.tell();
  }

  drawRow(pen, paint, index, y) {
    const { labels, cell, first } = this.place;
    const row = this.rows[index];
    const selected = index === this.at.row;
    if (selected) {
      pen.fillStyle = paint.colour("hover");
      pen.fillRect(0, y, labels - 2, ROW - 1);
    }
    pen.font = "12px ui-monospace, 'JetBrains Mono', 'DejaVu Sans Mono', monospace";
    pen.fillStyle = row.state === "new" ? paint.colour("bad") : paint.colour("soft");
    pen.textAlign = "right";
    pen.fillText(row.state, labels - 10, y + ROW / 2);
    const room = labels - 24 - (row.state ? pen.measureText(row.state).width + 10 : 0);
    pen.textAlign = "left";
    pen.fillStyle = paint.colour("ink");
    pen.fillText(fitted(pen, row.name, room), 10, y + ROW / 2);
    pen.font = `bold ${Math.min(11, cell)}px ui-monospace, 'JetBrains Mono', 'DejaVu Sans Mono', monospace`;
    pen.textAlign = "center";
    for (let night = first; night < this.history.nights; night++) this.drawCell(pen, paint, row.test, night, labels + (night - first) * cell, y);
  }

  drawCell(pen, paint, test, night, x, y) {
    const { cell } = this.place;
    const gap = cell > 5 ? 1.5 : 0.5;
    if (page.nights[night].void) {
      pen.strokeStyle = paint.colour("line");
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, cell - gap - 1, ROW - 3);
      return;
    }
    const mark = this.history.mark(test, this.column, night);
    const plain = !mark || page.marks[mark].tone === "soft"; // absent or flaky: its margin is not the question
    if (this.by === "margin" && !plain) pen.fillStyle = heatOf(paint, this.history.marginByte(test, this.column, night), this.history.failing[mark]);
    else pen.fillStyle = paint.tones[mark];
    pen.fillRect(x, y, cell - gap, ROW - 2);
    const said = this.history.failing[mark] || page.marks[mark].tone === "soft"; // letters repeat what colours say
    if (this.by === "verdict" && said && cell >= 8) {
      pen.fillStyle = paint.colour(this.history.failing[mark] ? "on-bad" : "ink");
      pen.fillText(page.marks[mark].letter, x + (cell - gap) / 2, y + ROW / 2 - 0.5);
    }
  }

  drawHead(pen, paint) {
    const { width, labels, cell, first, height } = this.place;
    pen.fillStyle = paint.colour("panel");
    pen.fillRect(0, 0, width, HEAD - 3);
    pen.font = "11px Inter, system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "center";
    const every = Math.max(1, Math.ceil(64 / cell));
    for (let night = this.history.nights - 1; night >= first; night -= every) {
      const x = labels + (night - first + 0.5) * cell;
      pen.fillStyle = paint.colour("soft");
      pen.fillText(shortDay(page.nights[night]), Math.min(x, width - 20), 11);
    }
    pen.strokeStyle = pen.fillStyle = paint.colour("accent");
    pen.setLineDash([3, 3]);
    for (let night = first + 1; night < this.history.nights; night++) {
      if (page.nights[night].versions.torch === page.nights[night - 1].versions.torch) continue;
      const x = labels + (night - first) * cell - 0.75;
      pen.beginPath();
      pen.moveTo(x, 20);
      pen.lineTo(x, height);
      pen.stroke();
      pen.textAlign = "right";
      pen.fillText(`torch ${page.nights[night].versions.torch}`, x - 5, 27);
    }
    pen.setLineDash([]);
  }

  point(event) {
    this.place ??= this.measure();
    const { labels, cell, first } = this.place;
    const night = first + Math.floor((event.offsetX - labels) / cell);
    const row = Math.floor((event.offsetY - HEAD) / ROW) + Math.floor(this.box.scrollTop / ROW);
    if (row < 0 || row >= this.rows.length || event.offsetY < HEAD) return false;
    this.at = { row, night: night >= first && night < this.history.nights ? night : this.at.night };
    this.later();
    return true;
  }

  key(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-30, 0], PageDown: [30, 0], j: [1, 0], k: [-1, 0], Home: [-1e9, 0], End: [1e9, 0] }[event.key];
    if (step && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      event.stopPropagation();
      this.place ??= this.measure(); // a key may come before the first drawing
      this.at.row = Math.max(0, Math.min(this.rows.length - 1, this.at.row + step[0]));
      this.at.night = Math.max(this.place.first, Math.min(this.history.nights - 1, this.at.night + step[1]));
      this.follow();
      this.later();
    }
    if (event.key === "Enter" && this.rows.length) this.opened(this.rows[this.at.row], this.at.night);
  }

  follow() {
    const y = this.at.row * ROW;
    const room = this.place.height - HEAD - ROW;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    if (y > this.box.scrollTop + room) this.box.scrollTop = y - room;
  }

  tell() {
    const row = this.rows[this.at.row];
    if (row) this.said(row, this.at.night);
  }
}

function heatOf(paint, byte, failing) {
  if (failing) return paint.colour("t-bad");
  if (!byte) return paint.heat[0];
  const step = Math.round(8 + ((byte - MARGIN_ONE) / MARGIN_STEPS) * 2.5); // margin 1 is the hottest, 1/1000 nearly cold
  return paint.heat[Math.max(1, Math.min(8, step))];
}

// The end of a name tells it apart: what does not fit is cut at the start.
function fitted(pen, name, room) {
  const wide = pen.measureText("m").width;
  const most = Math.floor(room / wide);
  const letters = [...name];
  return letters.length <= most ? name : `…${letters.slice(-Math.max(1, most - 1)).join("")}`;
}
