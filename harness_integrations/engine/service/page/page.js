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

async function call(method, path, body, more = {}) {
  const headers = { authorization: `Bearer ${key}`, ...more.headers };
  if (body !== undefined && !more.raw) headers["content-type"] = "application/json";
  const content = body === undefined || more.raw ? body : JSON.stringify(body);
  const response = await fetch(path, { method, headers, body: content, signal: more.signal });
  if (more.stream && response.ok) return response;
  const told = response.status === 204 ? null : await response.json();
  if (!response.ok) throw Object.assign(new Error(told.error.message), told.error);
  return told;
}

const base = () => `/namespaces/${chosen.namespace}/collections/${chosen.id}`;

function complain(error) {
  at("problem").hidden = !error;
  at("problem").textContent = error ? error.message : "";
}

// --- opening -------------------------------------------------------------------------------------

async function open(given) {
  key = given;
  try {
    const found = [];
    for (const space of (await call("GET", "/namespaces")).items) {
      const inside = await call("GET", `/namespaces/${space.id}/collections`);
      for (const one of inside.items) found.push({ ...one, namespace: space.id, space: space.name });
    }
    sessionStorage.setItem("key", key);
    show(found);
  } catch (error) {
    sessionStorage.removeItem("key");
    at("enter").hidden = false;
    at("work").hidden = true;
    at("key").setCustomValidity(error.message);
    at("key").reportValidity();
  }
}

function show(found) {
  at("enter").hidden = true;
  at("work").hidden = false;
  at("pick").hidden = found.length === 0;
  at("collections").replaceChildren(
    ...found.map((one, place) => made("option", { value: place, textContent: `${one.space} / ${one.name}` })),
  );
  at("collections").onchange = () => choose(found[at("collections").value]);
  if (found.length) choose(found[0]);
  else complain(new Error("There is no collection yet: harness collection create NAME makes one."));
}

function choose(one) {
  chosen = one;
  at("who").hidden = one.access_control !== "enforced";
  at("answers").replaceChildren();
  complain(null);
  stopWatching();
  stopWatching = watch(one);
}

// --- files ---------------------------------------------------------------------------------------

async function listFiles() {
  const items = [];
  let cursor = null;
  do {
    const page = await call("GET", `${base()}/files?limit=1000${cursor ? `&cursor=${cursor}` : ""}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  const ready = items.filter((one) => one.status === "ready").length;
  at("state").textContent = items.length ? `${ready} of ${items.length} ready` : "empty";
  at("files").replaceChildren(...items.map(fileRow));
}

function fileRow(file) {
  const name = file.path.slice(1);
  const remove = made("button", { type: "button", textContent: "\u2715", title: "Delete" });
  remove.setAttribute("aria-label", `Delete ${name}`);
  remove.onclick = () => call("DELETE", `${base()}/files/${file.id}`).then(listFiles).catch(complain);
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
  complain(null);
  for (const file of files) {
    const path = encodeURIComponent(`/${file.name}`);
    try {
      await call("PUT", `${base()}/files:upload?path=${path}`, file, {
        raw: true,
        headers: { "content-type": file.type || "application/octet-stream" },
      });
    } catch (error) {
      complain(new Error(`${file.name}: ${error.message}`));
    }
    await listFiles();
  }
}

function watch(one) {
  const leaving = new AbortController();
  const follow = async () => {
    while (!leaving.signal.aborted) {
      try {
        await listFiles();
        const more = { stream: true, signal: leaving.signal };
        const response = await call("GET", `${base()}/events`, undefined, more);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          if (value.includes("event:") && chosen === one) await listFiles();
        }
      } catch (error) {
        if (leaving.signal.aborted || error.code) return;
      }
      await new Promise((wake) => setTimeout(wake, 1000));
    }
  };
  follow();
  return () => leaving.abort();
}

// --- asking --------------------------------------------------------------------------------------

const principals = () =>
  chosen.access_control === "enforced"
    ? { principals: at("principals").value.split(",").map((one) => one.trim()).filter(Boolean) }
    : {};

async function ask(event) {
  event.preventDefault();
  const query = at("query").value;
  complain(null);
  at("send").disabled = true;
  at("send").textContent = "Asking\u2026";
  try {
    const asked = { query, effort: at("effort").value, ...principals() };
    at("answers").prepend(answerCard(query, await call("POST", `${base()}:answer`, asked)));
  } catch (error) {
    complain(error);
  } finally {
    at("send").disabled = false;
    at("send").textContent = "Ask";
  }
}

function answerCard(query, told) {
  const sources = new Map(told.sources.map((one) => [one.ref, one]));
  const said = made("p", { className: "said" });
  for (const piece of told.answer.split(/(\[\[SRC:\d{4,}\]\])/)) {
    const source = sources.get(piece.slice(2, -2));
    said.append(source && piece.startsWith("[[") ? cite(source) : piece);
  }
  const card = made(
    "article", { className: "card answer" }, made("p", { className: "question", textContent: query }), said,
  );
  const list = (some) => made("ul", { className: "sources" }, ...some.map((one) => made("li", {}, sourceRow(one))));
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

function cite(source) {
  const button = made("button", { type: "button", className: "cite", textContent: number(source) });
  button.setAttribute("aria-label", `Source ${number(source)}: ${source.path}`);
  button.onclick = () => showPassage(source).catch(complain);
  return button;
}

function sourceRow(source) {
  const button = made(
    "button", { type: "button" },
    source.cited ? made("b", { textContent: number(source) }) : "",
    made("span", { textContent: source.path.slice(1) }),
    made("span", { className: "note", textContent: place(source.span) }),
  );
  button.onclick = () => showPassage(source).catch(complain);
  return button;
}

// The passage inside its page; where a file has no pages, inside the whole text.
async function showPassage({ path, span }) {
  const around = span.pages
    ? { file_id: span.file_id, unit: "pages", start: span.pages.start, end: span.pages.end }
    : { file_id: span.file_id, unit: "file" };
  const asked = { spans: [span, around], ...principals() };
  const [passage, whole] = (await call("POST", `${base()}:read-spans`, asked)).parts;
  if (passage.error) throw new Error(`The passage cannot be read: ${passage.error}.`);
  const text = whole.text ?? passage.text;
  // Offsets count code points; a page does not say where it begins, so the passage is found in it.
  const points = Array.from(text);
  const start = span.pages || whole.error ? Array.from(text.slice(0, Math.max(0, text.indexOf(passage.text)))).length : span.start;
  const end = start + Array.from(passage.text).length;
  const mark = made("mark", { textContent: points.slice(start, end).join("") });
  at("passage-title").textContent = path.slice(1);
  at("passage-place").textContent = place(span);
  at("text").replaceChildren(points.slice(0, start).join(""), mark, points.slice(end).join(""));
  at("passage").showModal();
  mark.scrollIntoView({ block: "center" });
}

// --- wiring --------------------------------------------------------------------------------------

at("enter").onsubmit = (event) => { event.preventDefault(); open(at("key").value.trim()); };
at("key").oninput = () => at("key").setCustomValidity("");
at("ask").onsubmit = ask;
at("query").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); at("ask").requestSubmit(); }
};
at("upload").onchange = () => upload([...at("upload").files]).then(() => { at("upload").value = ""; });
at("close").onclick = () => at("passage").close();
for (const kind of ["dragover", "dragleave", "drop"]) {
  at("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") upload([...event.dataTransfer.files]);
  });
}

const fragment = new URLSearchParams(location.hash.slice(1)).get("key");
if (fragment) history.replaceState(null, "", location.pathname); // not left in the address bar
const known = fragment ?? sessionStorage.getItem("key");
if (known) open(known);
else at("enter").hidden = false;
