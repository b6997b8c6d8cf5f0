// Where results come from: the file itself, or the server that sent it. Both answer the same questions.

function embedded(id) {
  const node = document.getElementById(id);
  return node ? node.textContent.trim() : "";
}

const fileSource = {
  live: false,
  async page() {
    return JSON.parse(embedded("page-data"));
  },
  async history() {
    return { names: embedded("names"), marks: embedded("marks"), margins: embedded("margins") };
  },
  async test(name) {
    return page.details.filter((detail) => detail.test === name);
  },
};

async function ask(path, words) {
  const said = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== ""));
  const answer = await fetch(`api/${path}?${said}`);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
  return body;
}

const serverSource = {
  live: true,
  page: () => ask("page", keptData()),
  history: () => ask("history", keptData()),
  test: (name) => ask("test", { ...keptData(), test: name }),
};

const source = document.documentElement.dataset.live ? serverSource : fileSource;
let page = null;
let openedHistory = null;

// The history is opened when it is first needed, once for a page.
function caseHistory() {
  const mine = page;
  openedHistory ??= source.history().then((packed) => CaseHistory.open(mine, packed));
  return openedHistory;
}

let loadedFor = null;

async function loadPage() {
  const wanted = JSON.stringify(keptData());
  if (loadedFor === wanted) return;
  page = await source.page();
  openedHistory = null;
  loadedFor = wanted;
}
