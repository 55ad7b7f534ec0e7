"use strict";
/* Everything that is shown goes through textContent, so that texts stay texts. Offsets count code points. */

const LOWEST = 0.05;  // the least score that the slider can ask for; everything above it is fetched once
const PITCH = 5, HIGHEST = 60;  // of lanes, in pixels, as in the reports
const EXAMPLE = "Amoxicillin reduced lung fibrosis and was toxic to Staphylococcus aureus. " +
  "Loss of TGFB1 in the colon and lung was followed by cancer.";
const MOST_SHOWN = 100;  // documents
const CHUNK = 400000;  // characters of a request

const $ = id => document.getElementById(id);
const element = (name, options = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key in made) made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

let service = null;  // what /v1/models says
let dropped = [];  // documents from files: {id, text}
let documents = [];  // {id, text, points, sides: [{model, own, candidates}]}
let hidden = new Set();  // types that are switched off
let running = null;  // the request in progress, to be given up for the next one

// Asking

async function ask(path, body, signal) {
  const headers = $("key").value ? {authorization: `Bearer ${$("key").value}`} : {};
  const options = body === undefined ? {} : {method: "POST", body: JSON.stringify(body)};
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {...options, headers, signal});
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("the service does not answer; is it still running?");
  }
  if (answer.ok) return answer;
  $("locked").hidden = answer.status !== 401;
  if (answer.status === 401) $("key").focus();
  const about = await answer.json().catch(() => ({error: `the service answered ${answer.status}`}));
  throw new Error(about.error);
}

async function connect() {
  service = await (await ask("v1/models")).json();
  $("locked").hidden = true;
  for (const {name} of service.models) {
    $("model").append(element("option", {value: name, textContent: name}));
    $("other").append(element("option", {value: name, textContent: name}));
  }
  for (const name of service.downloads) $("format").append(element("option", {value: name, textContent: name}));
  $("other").disabled = service.models.length < 2;
  if (service.example && !$("text").value) $("text").value = service.example;
}

async function openPage() {
  await connect();
  // a browser that opens the page again may have kept what somebody wrote
  if (service.example && $("text").value === service.example) await find();
}

function clearPage() {
  running?.abort();
  $("text").value = "";
  dropped = documents = [];
  for (const id of ["files", "view", "grid"]) $(id).hidden = true;
  $("results").replaceChildren();
  complain("");
  say("");
  $("text").focus();
}

function* chunks(rows) {
  let chunk = [], size = 0;
  for (const row of rows) {
    if (chunk.length && (size + row.text.length > CHUNK || chunk.length >= service.limits.texts)) {
      yield chunk;
      [chunk, size] = [[], 0];
    }
    chunk.push(row);
    size += row.text.length;
  }
  if (chunk.length) yield chunk;
}

async function find() {
  complain("");
  if (service === null) await connect();
  const pasted = $("text").value;
  const given = [...(pasted.trim() ? [{id: "text", text: pasted}] : []), ...dropped];
  if (!given.length) {
    say("Paste a text or drop a file first.");
    $("text").focus();
    return;
  }
  running?.abort();
  running = new AbortController();
  const {signal} = running, models = [$("model").value, $("other").value].filter(Boolean);
  $("find").setAttribute("aria-busy", "true");
  const began = performance.now(), fresh = given.map(row => ({...row, points: Array.from(row.text), sides: []}));
  let done = 0;
  try {
    for (const chunk of chunks(fresh)) {
      say(`${counted(done, "text")} of ${given.length} done …`);
      const texts = chunk.map(row => row.text);
      for (const model of models) {
        const asked = [{texts, model}, {texts, model, threshold: LOWEST, overlap: "any"}];
        const [own, all] = await Promise.all(asked.map(async body => (await ask("v1/entities", body, signal)).json()));
        chunk.forEach((row, n) => row.sides.push({
          model, own: own.documents[n].entities, candidates: all.documents[n].entities,
        }));
      }
      done += chunk.length;
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    say("");
    throw error;
  } finally {
    $("find").removeAttribute("aria-busy");
  }
  documents = fresh;
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const found = documents.reduce((sum, row) => sum + row.sides[0].own.length, 0);
  say(`${counted(found, "entity", "entities")} in ${counted(documents.length, "text")}, ${seconds} s.`);
  const trained = service.models.find(model => model.name === models[0]).overlap;
  if ($("own").checked) $("overlap").value = trained;
  $("view").hidden = false;
  $("grid").hidden = true;
  listTypes();
  render();
}

// Which entities are kept together: the same rules as in wingspan.decoding

const compareSpans = (one, other) => {
  for (let n = 0; n < Math.min(one.length, other.length); n++) {
    const difference = one[n][0] - other[n][0] || one[n][1] - other[n][1];
    if (difference) return difference;
  }
  return one.length - other.length;
};
const readingOrder = (one, other) =>
  compareSpans(one.fragments, other.fragments) || (one.label < other.label ? -1 : one.label > other.label ? 1 : 0);
const overlaps = (a, b) => a[0] < b[1] && b[0] < a[1];
const contains = (a, b) => a[0] <= b[0] && b[1] <= a[1];
const crosses = (a, b) => overlaps(a, b) && !contains(a, b) && !contains(b, a);
const name = entity => JSON.stringify([entity.label, entity.fragments]);

function resolve(entities, overlap) {
  const best = new Map();
  for (const entity of entities) {
    const known = best.get(name(entity));
    if (!known || entity.score > known.score) best.set(name(entity), entity);
  }
  const ordered = [...best.values()].sort(readingOrder);
  if (overlap === "any") return ordered;
  const clashes = overlap === "flat" ? overlaps : crosses;
  const kept = [];
  for (const cluster of clusters(ordered)) {
    const chosen = [];
    for (const entity of [...cluster].sort((a, b) => b.score - a.score || readingOrder(a, b))) {
      const clash = other => entity.fragments.some(a => other.fragments.some(b => clashes(a, b)));
      if (!chosen.some(clash)) chosen.push(entity);
    }
    kept.push(...chosen);
  }
  return kept.sort(readingOrder);
}

function clusters(ordered) {
  const found = [];
  let reach = -1;
  for (const entity of ordered) {
    if (found.length && entity.start < reach) found.at(-1).push(entity); else found.push([entity]);
    reach = Math.max(reach, entity.end);
  }
  return found;
}

function shown(side) {
  const least = Number($("threshold").value);
  const all = $("own").checked ? side.own
    : resolve(side.candidates.filter(entity => entity.score >= least), $("overlap").value);
  return all.filter(entity => !hidden.has(entity.label));
}

// Drawing: the lanes of wingspan.views.html

function lanes(entities) {
  const chosen = entities.map(() => 0);
  const byStart = entities.map((_, n) => n).sort((a, b) => entities[a].start - entities[b].start);
  const groups = [];
  let reach = -1;
  for (const n of byStart) {
    if (groups.length && entities[n].start < reach) groups.at(-1).push(n); else groups.push([n]);
    reach = Math.max(reach, entities[n].end);
  }
  const width = n => entities[n].end - entities[n].start;
  for (const group of groups) {
    const placed = [];
    for (const n of group.sort((a, b) => width(a) - width(b) || entities[a].start - entities[b].start)) {
      const touched = placed.filter(m => entities[m].start < entities[n].end && entities[n].start < entities[m].end);
      chosen[n] = Math.max(-1, ...touched.map(m => chosen[m])) + 1;
      placed.push(n);
    }
  }
  return chosen;
}

function bar(color, bottom, height, inGap, only) {
  const place = (from, size) => `0 calc(100% - ${from}px)/100% ${size}px no-repeat`;
  if (inGap) return [`repeating-linear-gradient(90deg,${color} 0 1px,#0000 1px 3px) ${place(bottom + height / 2, 1)}`];
  const solid = (from, size) => `linear-gradient(${color},${color}) ${place(from, size)}`;
  return only && height >= 3 ? [solid(bottom, 1), solid(bottom + height - 1, 1)] : [solid(bottom, height)];
}

function drawn(row, entities, common, depth) {
  const places = lanes(entities);
  const pitch = Math.max(2, Math.min(PITCH, HIGHEST / Math.max(depth, 1))), height = Math.max(1, pitch - 2);
  const box = element("div", {className: "ws-text", dir: "auto"});
  box.style.setProperty("--ws-lanes", `${depth * pitch}px`);
  const only = n => common !== null && !common.has(name(entities[n]));
  const layers = (n, inGap) =>
    bar(color(entities[n].label), (depth - 1 - places[n]) * pitch, height, inGap, only(n));
  const edges = new Set([0, row.points.length]);
  const opening = new Map();
  entities.forEach((entity, n) => {
    entity.fragments.flat().forEach(edge => edges.add(edge));
    opening.set(entity.start, [...(opening.get(entity.start) ?? []), n]);
  });
  const borders = [...edges].sort((a, b) => a - b);
  let active = [];
  for (let at = 0; at + 1 < borders.length; at++) {
    const [start, end] = [borders[at], borders[at + 1]];
    active.push(...(opening.get(start) ?? []));
    const inside = active.filter(n => entities[n].fragments.some(([s, e]) => s <= start && end <= e));
    const closing = active.filter(n => entities[n].end === end)
      .sort((a, b) => (entities[a].end - entities[a].start) - (entities[b].end - entities[b].start));
    const text = row.points.slice(start, end).join("");
    if (active.length) {
      const piece = element("span", {className: "ws-p", textContent: text});
      const backs = active.flatMap(n => layers(n, !inside.includes(n)));
      if (inside.length) {
        const inner = inside.reduce((a, b) => places[a] <= places[b] ? a : b);
        const light = `${color(entities[inner].label)}22`;
        backs.push(`linear-gradient(${light},${light}) 0 0/100% calc(100% - var(--ws-lanes)) no-repeat`);
      }
      piece.style.background = backs.join(",");
      box.append(piece);
    } else {
      box.append(text);
    }
    let here = [...active].sort((a, b) => a - b);
    for (const n of closing) {
      const holder = element("span", {className: "ws-p"}, "\u202f");
      holder.style.background = here.flatMap(m => layers(m, !inside.includes(m))).join(",");
      holder.append(chip(row, entities[n], only(n)));
      box.append(holder);
      here = here.filter(m => m !== n);
    }
    active = active.filter(n => entities[n].end > end);
  }
  return box;
}

function chip(row, entity, only) {
  const about = [entity.label, entity.text, `score ${entity.score.toFixed(3)}`];
  if (only) about.push("only in this model");
  const made = element("bdi", {className: only ? "ws-chip only" : "ws-chip", tabIndex: 0, role: "note"});
  made.textContent = only ? `≠\u00a0${entity.label}` : entity.label;
  made.style.background = color(entity.label);
  made.setAttribute("aria-label", about.join(", "));
  made.dataset.tip = about.join(" · ");
  made.dataset.start = entity.start;
  return made;
}

const color = label => service.colors[label] ?? "#5a6170";

function render() {
  $("least").textContent = Number($("threshold").value).toFixed(2);
  const parts = documents.slice(0, MOST_SHOWN).map((row, number) => {
    const sides = row.sides.map(shown);
    const names = sides.map(side => new Set(side.map(name)));
    const header = element("header", {}, element("h2", {textContent: row.id}));
    const grid = element("button", {type: "button", textContent: "grid"});
    grid.setAttribute("aria-label", `Span grid of ${row.id}`);
    grid.addEventListener("click", () => openGrid(row, 0));
    header.append(grid);
    if (sides.length === 2) {
      const both = sides[0].filter(entity => names[1].has(name(entity))).length;
      const counts = [`${both} in both`, `${sides[0].length - both} only in ${row.sides[0].model}`,
        `${sides[1].length - both} only in ${row.sides[1].model}`];
      header.append(element("span", {className: "soft tally", textContent: counts.join(", ")}));
    }
    const columns = element("div", {className: "sides"});
    const depth = Math.max(0, ...sides.flatMap(lanes).map(lane => lane + 1));  // lines side by side are equally high
    sides.forEach((entities, n) => {
      const column = element("div");
      if (sides.length === 2) column.append(element("h3", {textContent: row.sides[n].model}));
      column.append(drawn(row, entities, sides.length === 2 ? names[1 - n] : null, depth));
      columns.append(column);
    });
    const article = element("article", {className: "doc"}, header, columns);
    article.dataset.number = number;
    return article;
  });
  if (documents.length > MOST_SHOWN) {
    const more = `${documents.length - MOST_SHOWN} more texts are not shown; the download has them.`;
    parts.push(element("p", {className: "soft", textContent: more}));
  }
  $("results").replaceChildren(...parts);
  const counts = new Map();
  for (const row of documents) {
    for (const entity of shown(row.sides[0])) counts.set(entity.label, (counts.get(entity.label) ?? 0) + 1);
  }
  for (const count of document.querySelectorAll(".type .count")) {
    count.textContent = hidden.has(count.dataset.label) ? "" : counts.get(count.dataset.label) ?? 0;
  }
}

let frame = 0;
function renderSoon() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(render);
}

function listTypes() {
  const asked = new Set(documents[0].sides.map(side => side.model));
  const labels = new Set(service.models.filter(model => asked.has(model.name)).flatMap(model => model.labels));
  const boxes = [...labels].sort().map(label => {
    const box = element("input", {type: "checkbox", checked: !hidden.has(label)});
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(label); else hidden.add(label);
      renderSoon();
    });
    const sign = element("span", {className: "ws-chip", textContent: label});
    sign.style.background = color(label);
    const count = element("span", {className: "count"});
    count.dataset.label = label;
    return element("label", {className: "type"}, box, sign, count);
  });
  $("types").replaceChildren($("types").firstElementChild, ...boxes);
}

// The span grid

let spot = null;  // the sentence that is shown: {row, at, past, answer}

async function openGrid(row, at, back = false) {
  const model = row.sides[0].model;
  const from = Math.max(0, at - 4000), text = row.points.slice(from, at + 8000).join("");
  const answer = await (await ask("v1/grid", {text, at: at - from, model})).json();
  if (!answer.words.length) {
    say("There is no word in this text.");
    return;
  }
  spot = {row, start: from + answer.start, end: from + answer.end, from, answer};
  $("grid").hidden = false;
  $("grid-model").textContent = `${model}: ${row.id}`;
  const kind = $("kind").value, names = ["all types", ...answer.labels];
  $("kind").replaceChildren(...names.map(label => element("option", {value: label, textContent: label})));
  if (names.includes(kind)) $("kind").value = kind;
  drawGrid();
  if (!back) $("grid").scrollIntoView({block: "nearest"});
}

function drawGrid() {
  const {answer, row, from} = spot, kind = $("kind").value;
  const labels = kind === "all types" ? answer.labels : [kind];
  const words = answer.words.map(([start, end]) => row.points.slice(from + start, from + end).join(""));
  const head = element("tr", {}, element("th", {textContent: "width", scope: "col"}));
  words.forEach(word => head.append(element("th", {scope: "col"}, element("span", {textContent: word, title: word}))));
  const body = element("tbody"), widest = answer.grids[labels[0]].length;
  let best = null;
  for (let width = 0; width < widest; width++) {
    const line = element("tr", {}, element("th", {textContent: width + 1, scope: "row"}));
    words.forEach((_, start) => {
      const scored = labels.map(label => [answer.grids[label][width]?.[start] ?? null, label])
        .filter(([score]) => score !== null).sort(([a], [b]) => b - a);
      const cell = element("td");
      if (!scored.length) {
        cell.className = "none";
      } else {
        const [score, label] = scored[0];
        cell.style.background = `color-mix(in srgb, ${color(label)} ${Math.round(score / 10)}%, var(--faint))`;
        if (score >= 10) cell.textContent = score >= 995 ? "1" : `.${String(Math.round(score / 10)).padStart(2, "0")}`;
        const span = words.slice(start, start + width + 1).join(" ");
        cell.dataset.tip = `${label} · ${span} · score ${(score / 1000).toFixed(3)}`;
        if (best === null || score > best[0]) best = [score, cell, cell.dataset.tip];
      }
      line.append(cell);
    });
    body.append(line);
  }
  best?.[1].classList.add("best");
  $("cell").textContent = best ? `Highest: ${best[2]}` : "This model scores no span of this sentence.";
  $("cells").replaceChildren(element("table", {className: "cells"}, element("thead", {}, head), body));
}

// Files, export, messages

async function read(files) {
  complain("");
  for (const file of files) {
    const bytes = await file.arrayBuffer();
    let text;
    try {
      text = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
    } catch {
      complain(`${file.name} is no text in UTF-8; convert it first.`);
      continue;
    }
    dropped.push(...texts(file.name, text));
  }
  const shownNames = dropped.slice(0, 5).map(row => row.id).join(", ") + (dropped.length > 5 ? ", …" : "");
  const clear = element("button", {type: "button", textContent: "Remove"});
  clear.addEventListener("click", () => {
    dropped = [];
    $("files").hidden = true;
    $("choose").focus();
  });
  $("files").replaceChildren(`${counted(dropped.length, "text")} from files: ${shownNames}`, clear);
  $("files").hidden = !dropped.length;
}

function texts(file, text) {
  if (!/\.(jsonl|ndjson)$/.test(file)) return [{id: file, text}];
  const rows = text.split("\n").filter(line => line.trim()).map((line, n) => {
    try {
      const record = JSON.parse(line);
      return typeof record.text === "string" ? {id: String(record.id ?? `${file}-${n + 1}`), text: record.text} : null;
    } catch {
      return null;
    }
  });
  const bad = rows.filter(row => row === null).length;
  if (bad) complain(`${file}: ${counted(bad, "line")} without a "text" left out.`);
  return rows.filter(row => row !== null);
}

async function save() {
  const format = $("format").value;
  const rows = documents.map(({id, text, sides}) => ({id, text, entities: shown(sides[0])}));
  const answer = await ask("v1/export", {documents: rows, format, model: documents[0].sides[0].model});
  const file = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition"))[1];
  const address = URL.createObjectURL(await answer.blob());
  element("a", {href: address, download: file}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  const notes = decodeURIComponent(answer.headers.get("wingspan-notes") ?? "");
  say(`${file} downloaded. ${notes}`);
}

function say(sentence) {
  $("status").textContent = sentence;
}

function complain(sentence) {
  $("problem").textContent = sentence;
  $("problem").hidden = !sentence;
}

const tried = action => async (...given) => {
  try {
    await action(...given);
  } catch (error) {
    if (error.name !== "AbortError") complain(`${error.message[0].toUpperCase()}${error.message.slice(1)}.`.replace("..", "."));
  }
};

// Tips of scores, by mouse and by keyboard

function tip(event) {
  const target = event.target.closest?.("[data-tip]");
  $("tip").hidden = !target;
  if (!target) return;
  $("tip").textContent = target.dataset.tip;
  const box = target.getBoundingClientRect(), own = $("tip").getBoundingClientRect();
  $("tip").style.left = `${Math.max(4, Math.min(box.left, innerWidth - own.width - 4))}px`;
  $("tip").style.top = `${box.bottom + own.height + 8 < innerHeight ? box.bottom + 6 : box.top - own.height - 6}px`;
}
for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, tip);
document.addEventListener("scroll", () => { $("tip").hidden = true; }, true);
document.addEventListener("keydown", event => {
  if (event.key === "Escape") $("tip").hidden = true;
  const target = event.target.closest?.(".doc .ws-chip");
  if (target && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    target.click();
  }
});

$("results").addEventListener("click", tried(async event => {
  const target = event.target.closest(".ws-chip");
  if (!target) return;
  await openGrid(documents[Number(target.closest(".doc").dataset.number)], Number(target.dataset.start));
}));
$("question").addEventListener("submit", event => {
  event.preventDefault();
  tried(find)();
});
$("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("question").requestSubmit();
});
$("example").addEventListener("click", () => {
  $("text").value = service?.example ?? EXAMPLE;
  $("question").requestSubmit();
});
$("clear").addEventListener("click", clearPage);
$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", tried(async () => {
  await read([...$("file").files]);
  $("file").value = "";
}));
for (const id of ["model", "other"]) {
  $(id).addEventListener("change", () => { if (documents.length) $("question").requestSubmit(); });
}
$("own").addEventListener("change", () => {
  $("threshold").disabled = $("overlap").disabled = $("own").checked;
  renderSoon();
});
for (const id of ["threshold", "overlap"]) $(id).addEventListener("input", renderSoon);
$("download").addEventListener("click", tried(save));
$("kind").addEventListener("change", drawGrid);
$("before").addEventListener("click", tried(() => openGrid(spot.row, Math.max(0, spot.start - 2), true)));
$("after").addEventListener("click", tried(() => openGrid(spot.row, Math.min(spot.row.points.length - 1, spot.end), true)));
let depth = 0;
addEventListener("dragenter", event => { event.preventDefault(); depth++; $("drop").hidden = false; });
addEventListener("dragleave", () => { if (--depth <= 0) $("drop").hidden = true; });
addEventListener("dragover", event => event.preventDefault());
addEventListener("drop", tried(async event => {
  event.preventDefault();
  depth = 0;
  $("drop").hidden = true;
  if (event.dataTransfer.files.length) {
    await read([...event.dataTransfer.files]);
    await find();
  } else if (event.dataTransfer.getData("text")) {
    $("text").value = event.dataTransfer.getData("text");
    await find();
  }
}));
tried(openPage)();
