// The marks and margins of every case and night, opened once, when a view first needs them.

async function unzip(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const MARGIN_STEPS = 253 / 9; // of a byte a decade
const MARGIN_ONE = 1 + 6 * MARGIN_STEPS; // the byte of the limit; the smallest margin that can be told is 1e-6
const marginOf = (byte) => (byte === 255 ? Infinity : byte ? 10 ** ((byte - MARGIN_ONE) / MARGIN_STEPS) : 0);

class CaseHistory {
  constructor(page, names, marks, margins) {
    this.page = page;
    this.names = names;
    this.width = page.columns.length;
    this.nights = page.nights.length;
    this.cases = names.length * this.width;
    for (const moved of [marks, margins]) for (let i = this.cases; i < moved.length; i++) moved[i] ^= moved[i - this.cases];
    this.marks = marks;
    this.margins = margins;
    this.used = new Set();
    for (const mark of marks) this.used.add(mark);
    this.positions = new Map(names.map((name, position) => [name, position]));
    this.rank = page.marks.map((mark) => mark.rank);
    this.failing = page.marks.map((mark) => mark.failing);
  }

  static async open(page, packed) {
    const [names, marks, margins] = await Promise.all([packed.names, packed.marks, packed.margins].map(unzip));
    const text = new TextDecoder().decode(names);
    return new CaseHistory(page, text ? text.split("\n") : [], marks, margins);
  }

  // The mark of a case, as its position in page.marks; of the most serious column where column is -1.
  mark(test, column, night) {
    const start = night * this.cases + test * this.width;
    if (column >= 0) return this.marks[start + column];
    let worst = this.marks[start];
    for (let k = 1; k < this.width; k++) if (this.rank[this.marks[start + k]] > this.rank[worst]) worst = this.marks[start + k];
    return worst;
  }

  marginByte(test, column, night) {
    const start = night * this.cases + test * this.width;
    if (column >= 0) return this.margins[start + column];
    let worst = 0;
    for (let k = 0; k < this.width; k++) worst = Math.max(worst, this.margins[start + k]);
    return worst;
  }

  margin(test, column, night) {
    return marginOf(this.marginByte(test, column, night));
  }

  fails(test, column, night) {
    return this.failing[this.mark(test, column, night)];
  }

  letters(test, column) {
    let said = "";
    for (let night = 0; night < this.nights; night++) said += this.page.marks[this.mark(test, column, night)].letter;
    return said;
  }
}
