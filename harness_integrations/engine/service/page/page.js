// The page asks the service it came from, with a key that stays in this tab. Text from files and
// answers only ever becomes text nodes.
const at = (id) => document.getElementById(id);
const made = (kind, given = {}, ...inside) => {
  const node = Object.assign(document.createElement(kind), given);
  node.append(...inside);
  return node;
};

let key = "";
let chosen = null;
let stopWatching = () => {};

async function send(method, path, body, more = {}) {
  const headers = { authorization: `Bearer ${key}`, ...more.headers };
  if (body !== undefined && !more.raw) headers["content-type"] = "application/json";
  const content = body === undefined || more.raw ? body : JSON.stringify(body);
  const response = await fetch(path, { method, headers, body: content, signal: more.signal });
  if (response.ok) return response;
  const { error } = await response.json();
  throw Object.assign(new Error(error.message), error);
}

const call = async (...asked) => (await send(...asked)).json();

async function every(path) {
  const items = [];
  let cursor = "";
  do {
    const page = await call("GET", `${path}?limit=1000&cursor=${cursor}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
}

const base = (one = chosen) => `/namespaces/${one.namespace}/collections/${one.id}`;
const names = (id) => at(id).value.split(",").map((one) => one.trim()).filter(Boolean);
const enforced = () => chosen.access_control === "enforced";

function complain(error) {
  if (error?.code === "unauthenticated") leave();
  at("problem").hidden = !error;
  at("problem").textContent = error ? error.message : "";
  if (error) at("problem").scrollIntoView({ block: "nearest" });
}

// --- opening -------------------------------------------------------------------------------------

async function open(given) {
  key = given;
  try {
    const found = [];
    for (const space of await every("/namespaces"))
      for (const one of await every(`/namespaces/${space.id}/collections`))
        found.push({ ...one, namespace: space.id, space: space.name });
    sessionStorage.setItem("key", key);
    show(found);
  } catch (error) {
    leave();
    complain(error);
  }
}

function leave() {
  stopWatching();
  sessionStorage.clear();
  key = "";
  chosen = null;
  complain(null);
  for (const id of ["work", "pick", "leave"]) at(id).hidden = true;
  for (const id of ["answers", "files"]) at(id).replaceChildren();
  at("enter").hidden = false;
  at("enter").after(at("problem"));
  at("key").focus();
}

function show(found) {
  complain(found.length ? null : new Error("There is no collection yet: harness collection create NAME makes one."));
  at("enter").hidden = true;
  at("key").value = "";
  at("leave").hidden = false;
  at("work").hidden = at("pick").hidden = found.length === 0;
  at("collections").replaceChildren(
    ...found.map((one) => made("option", { value: one.id, textContent: `${one.space} / ${one.name}` })),
  );
  at("collections").onchange = () => choose(found.find((one) => one.id === at("collections").value));
  const last = sessionStorage.getItem("collection");
  if (!found.length) return;
  at("ask").after(at("problem"));
  choose(found.find((one) => one.id === last) ?? found[0]);
}

function choose(one) {
  chosen = one;
  sessionStorage.setItem("collection", one.id);
  at("collections").value = one.id;
  at("who").hidden = at("readers").hidden = !enforced();
  for (const id of ["answers", "files"]) at(id).replaceChildren();
  at("state").textContent = "";
  complain(null);
  stopWatching();
  stopWatching = watch(one);
}

// --- files ---------------------------------------------------------------------------------------

// One listing at a time; what happens meanwhile asks for one more, however much it is.
let listing = null;
let again = false;

async function listFiles() {
  again = true;
  listing ??= (async () => {
    try {
      while (again) {
        again = false;
        const one = chosen;
        const items = one ? await every(`${base(one)}/files`) : [];
        if (chosen === one && one) showFiles(items);
      }
    } finally {
      listing = null;
    }
  })();
  return listing;
}

function showFiles(items) {
  const ready = items.filter((one) => one.status === "ready").length;
  const focused = document.activeElement?.dataset?.file;
  at("state").textContent = items.length ? `${ready} of ${items.length} ready` : "empty";
  at("files").replaceChildren(...items.map(fileRow));
  if (focused) (at("files").querySelector(`[data-file="${focused}"]`) ?? at("upload")).focus();
}

function fileRow(file) {
  const name = file.path.slice(1);
  const remove = made("button", { type: "button", textContent: "\u2715", title: "Delete" });
  remove.setAttribute("aria-label", `Delete ${name}`);
  remove.dataset.file = file.id;
  remove.onclick = () => {
    if (confirm(`Delete ${name}?`)) send("DELETE", `${base()}/files/${file.id}`).then(listFiles).catch(complain);
  };
  const row = made(
    "li", {},
    made("span", { className: "name", textContent: name, title: name }),
    made("span", { className: `status ${file.status}`, textContent: file.status }),
    remove,
  );
  if (file.error) row.append(made("p", { className: "why note", textContent: file.error.message }));
  return row;
}

async function upload(files) {
  const wrong = [];
  const into = base();
  const grants = enforced() ? `&principals=${encodeURIComponent(JSON.stringify(names("grants")))}` : "";
  complain(null);
  for (const [place, file] of [...files].entries()) {
    at("state").textContent = `adding ${place + 1} of ${files.length}\u2026`;
    try {
      await send("PUT", `${into}/files:upload?path=${encodeURIComponent(`/${file.name}`)}${grants}`, file, {
        raw: true,
        headers: { "content-type": file.type || "application/octet-stream" },
      });
    } catch (error) {
      wrong.push(`${file.name}: ${error.message}`);
    }
  }
  if (wrong.length) complain(new Error(wrong.join("\n")));
  await listFiles().catch(complain);
}

function watch(one) {
  const leaving = new AbortController();
  const follow = async () => {
    while (!leaving.signal.aborted) {
      try {
        await listFiles();
        const response = await send("GET", `${base(one)}/events`, undefined, { signal: leaving.signal });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          if (value.includes("event:")) await listFiles();
        }
      } catch (error) {
        if (leaving.signal.aborted) return;
        if (error.code === "unauthenticated") return complain(error);
        if (error.code) {
          at("state").textContent = error.message; // a key may ask and yet not read the list
          return;
        }
      }
      await new Promise((wake) => setTimeout(wake, 1000));
    }
  };
  follow();
  return () => leaving.abort();
}

// --- asking --------------------------------------------------------------------------------------

const asking = () => at("send").getAttribute("aria-disabled") === "true";
const principals = () => (enforced() ? { principals: names("principals") } : {});

async function ask(event) {
  event.preventDefault();
  if (asking()) return;
  const one = chosen;
  const query = at("query").value;
  complain(null);
  at("send").setAttribute("aria-disabled", "true");
  at("send").textContent = "Asking\u2026";
  try {
    const asked = { query, effort: at("effort").value, ...principals() };
    const response = await send("POST", `${base()}:answer`, asked);
    const card = answerCard(query, await response.json(), response.headers.get("x-answer-partial"));
    if (chosen === one) at("answers").prepend(card);
  } catch (error) {
    if (chosen === one) complain(error);
  } finally {
    at("send").removeAttribute("aria-disabled");
    at("send").textContent = "Ask";
  }
}

function answerCard(query, told, partial) {
  const as = principals();
  const sources = new Map(told.sources.map((one) => [one.ref, one]));
  const said = made("p", { className: "said" });
  for (const piece of told.answer.split(/(\[\[SRC:\d{4,}\]\])/)) {
    const source = sources.get(piece.slice(2, -2));
    said.append(source && piece.startsWith("[[") ? cite(source, as) : piece);
  }
  const card = made(
    "article", { className: "card answer" }, made("p", { className: "question", textContent: query }), said,
  );
  if (partial) card.append(made("p", { className: "partial note", textContent: `This rests on less than it could: ${partial}.` }));
  const list = (some) => made("ul", { className: "sources" }, ...some.map((one) => made("li", {}, sourceRow(one, as))));
  const [cited, others] = [true, false].map((cited) => told.sources.filter((one) => one.cited === cited));
  if (cited.length) card.append(list(cited));
  if (others.length) {
    const title = made("summary", { className: "note", textContent: `Also read: ${others.length}` });
    card.append(made("details", {}, title, list(others)));
  }
  return card;
}

const number = (source) => Number(source.ref.slice(4));
const place = ({ pages, start, end }) => {
  if (!pages) return `characters ${start + 1}\u2013${end}`;
  return pages.end - pages.start > 1 ? `pages ${pages.start}\u2013${pages.end - 1}` : `page ${pages.start}`;
};

function cite(source, as) {
  const button = made("button", { type: "button", className: "cite", textContent: number(source) });
  button.setAttribute("aria-label", `Source ${number(source)}: ${source.path}`);
  button.onclick = () => showPassage(source, as).catch(complain);
  return button;
}

function sourceRow(source, as) {
  const button = made(
    "button", { type: "button" },
    source.cited ? made("b", { textContent: number(source) }) : "",
    made("span", { textContent: source.path.slice(1) }),
    made("span", { className: "note", textContent: place(source.span) }),
  );
  button.onclick = () => showPassage(source, as).catch(complain);
  return button;
}

// The passage inside its page; where a file has no pages, inside the whole text.
async function showPassage({ path, span }, as) {
  const around = span.pages
    ? { file_id: span.file_id, unit: "pages", start: span.pages.start, end: span.pages.end }
    : { file_id: span.file_id, unit: "file" };
  const [passage, whole] = (await call("POST", `${base()}:read-spans`, { spans: [span, around], ...as })).parts;
  if (passage.error) throw new Error("The passage cannot be read: the file was deleted, or is not yours to see.");
  const text = whole.text ?? passage.text;
  // Offsets count code points; a page does not say where it begins, so the passage is found in it.
  const points = Array.from(text);
  const found = span.pages || whole.error;
  const start = found ? Array.from(text.slice(0, Math.max(0, text.indexOf(passage.text)))).length : span.start;
  const end = start + Array.from(passage.text).length;
  const mark = made("mark", { textContent: points.slice(start, end).join("") });
  at("passage-title").textContent = path.slice(1);
  at("passage-place").textContent = place(span) + (whole.error ? "; the file is too long to be shown whole" : "");
  at("text").replaceChildren(points.slice(0, start).join(""), mark, points.slice(end).join(""));
  at("passage").showModal();
  mark.scrollIntoView({ block: "center" });
}

// --- wiring --------------------------------------------------------------------------------------

at("enter").onsubmit = (event) => { event.preventDefault(); open(at("key").value.trim()); };
at("leave").onclick = leave;
at("ask").onsubmit = ask;
at("query").onkeydown = (event) => {
  const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  if (sends) { event.preventDefault(); at("ask").requestSubmit(); }
};
at("upload").onchange = () => upload([...at("upload").files]).then(() => { at("upload").value = ""; });
at("close").onclick = () => at("passage").close();
// A file dropped beside the box would replace the page, so the whole page takes it.
for (const kind of ["dragover", "dragleave", "drop"]) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && chosen) upload([...event.dataTransfer.files]);
  });
}

const fragment = new URLSearchParams(location.hash.slice(1)).get("key");
if (fragment) history.replaceState(null, "", location.pathname); // not left in the address bar
const known = fragment ?? sessionStorage.getItem("key");
if (known) open(known);
else at("enter").hidden = false;
