// Elements of the page. Everything that comes from results goes in as text or as an attribute's value, never as HTML.

function build(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const html = (tag, attributes, ...children) => build(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => build("http://www.w3.org/2000/svg", tag, attributes, children);

const code = (text) => html("code", null, text);
const soft = (...children) => html("span", { class: "soft" }, ...children);

function counted(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

function marginText(margin) {
  if (margin === null || margin === undefined) return "";
  if (margin === Infinity) return "∞";
  return margin ? String(Number(margin.toPrecision(2))) : "";
}

const lastPart = (path) => path.split("/").pop();
const dayOf = (night) => night.utc.slice(0, 10);
const shortDay = (night) => night.utc.slice(5, 10);

// A test's name with its folder set back, so that the eye finds what tells it apart.
function testName(name) {
  const cut = name.lastIndexOf("/", name.indexOf("::") < 0 ? name.length : name.indexOf("::")) + 1;
  return html("code", { class: "test" }, soft(name.slice(0, cut)), breakable(name.slice(cut)));
}

function badge(mark, title) {
  return html("span", { class: `badge ${mark.tone}`, title: title || `${mark.word}: ${mark.meaning}` }, mark.letter.trim() || "\u00a0");
}

function copyLine(command) {
  const copy = html("button", {
    type: "button",
    class: "copy",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(command);
        copy.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(line);
        copy.textContent = "selected: press Ctrl+C";
      }
      setTimeout(() => (copy.textContent = "copy"), 2000);
    },
  }, "copy");
  const line = code(command);
  return html("div", { class: "command" }, line, copy);
}

function facts(pairs) {
  return html("dl", { class: "facts" }, pairs.map(([name, value]) => html("div", null, html("dt", null, name), html("dd", null, value))));
}

// A name such as compiler:backend or file::test, which may go on in the next line after its colons.
function breakable(text) {
  return text.split(/(?<=:)(?!:)/).flatMap((part, i) => (i ? [html("wbr"), part] : [part]));
}

function table(heads, rows, attributes) {
  const head = heads.map((text) => html("th", { scope: "col", class: text.startsWith("#") ? "number" : null }, breakable(text.replace(/^#/, ""))));
  return html("div", { class: "scroll" }, html("table", attributes, html("thead", null, html("tr", null, head)), html("tbody", null, rows)));
}

function choice(id, label, options, value, change) {
  const list = options.map(([key, text]) => html("option", { value: key, selected: key === value }, text));
  return html("label", null, label, html("select", { id, onchange: (event) => change(event.target.value) }, list));
}

function nothing(text) {
  return html("p", { class: "nothing" }, text);
}
