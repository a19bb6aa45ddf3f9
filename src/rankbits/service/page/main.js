// The page: a form, a search whenever it changes, and an address that leads back to it.
import { getJson, search } from "./api.js";
import { byId, count, element, plural } from "./dom.js";
import { bitsOf, differingBits, drawDifferences, drawHistogram } from "./figures.js";
import { canCompare, fillForm, prepareForm, readForm, showForm } from "./form.js";
import { fillShelf } from "./pick.js";
import { drawList, picture, titleOf } from "./results.js";
import { addressOf, queryOf, requestOf, stateOfAddress } from "./state.js";
import { prepareUpload } from "./upload.js";

const WAIT_MS = 150; // after a slider has moved
let stats, state, shown = "", pictureData = null, running = null, timer = null;

async function start() {
  stats = await getJson("/stats");
  const method = stats.method ? `, ${stats.method}` : "";
  byId("facts").textContent = `${plural(stats.items, "item")}, ${stats.bits} bits${method}`;
  prepareForm(stats);
  listen();
  await open(stateOfAddress(), false);
}

// Show a state: fill the form, search, and remember the address.
async function open(newState, isNew = true) {
  state = newState;
  if (state.by === "item" && state.item === "") {
    const first = await getJson("/items?limit=1");
    state.item = first.items.length ? String(first.items[0].id) : "";
  }
  if (!canCompare(stats, state.by)) state.compare = false;
  fillForm(state, stats);
  if (isNew) history.pushState(null, "", addressOf(state));
  shown = location.search;
  await run();
}

function listen() {
  byId("query").addEventListener("submit", (event) => {
    event.preventDefault();
    open(readForm(stats));
  });
  byId("query").addEventListener("input", (event) => {
    if (event.target.id === "picture") return;
    state = readForm(stats);
    showForm(state, stats);
    const isTyped = ["vector", "text", "code", "item"].includes(event.target.id);
    clearTimeout(timer);
    const wait = event.target.type === "range" ? WAIT_MS : 0;
    if (!isTyped && isComplete()) timer = setTimeout(() => open(readForm(stats)), wait);
    if (event.target.id === "label" && byId("browse").open) refill();
  });
  byId("random").addEventListener("click", () => randomItem().catch(show));
  byId("browse").addEventListener("toggle", () => byId("browse").open && refill());
  byId("more").addEventListener("click", () => fillShelf(byId("label").value, pick).catch(show));
  byId("lists").addEventListener("click", follow);
  window.addEventListener("popstate", () => {
    // A link within the page comes here too; to show the same again would take the focus away.
    if (location.search !== shown) open(stateOfAddress(), false);
  });
  prepareUpload((data) => {
    pictureData = data;
    open({ ...readForm(stats), by: "picture" });
  });
}

const pick = (id) => open({ ...readForm(stats), by: "item", item: String(id) });

const refill = () => fillShelf(byId("label").value, pick).catch(show);

function isComplete() {
  try {
    queryOf(state, stats, pictureData);
    return true;
  } catch {
    return false;
  }
}

async function randomItem() {
  const label = byId("label").value ? `&label=${encodeURIComponent(byId("label").value)}` : "";
  const after = Math.floor(Math.random() * stats.next_id) - 1;
  let page = await getJson(`/items?limit=1&after=${after}${label}`);
  if (!page.items.length) page = await getJson(`/items?limit=1${label}`);
  if (page.items.length) await pick(page.items[0].id);
}

// A plain click on a card searches by it here; with a modifier key it is a link like any other.
function follow(event) {
  const link = event.target.closest("a[data-item]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  pick(link.dataset.item).then(() => byId("results").focus());
}

async function run() {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  byId("problem").hidden = true;
  byId("results").setAttribute("aria-busy", "true");
  try {
    const request = requestOf(state, stats, pictureData);
    const { radius, ties, ...plain } = request;
    let byBits = null, byPlan = null;
    if (stats.has_bits) byBits = await search({ ...request, by: "bits", rerank: "none" }, signal);
    else byPlan = await search({ ...plain, include: ["fields"] }, signal);
    if (byBits && state.compare) byPlan = await search({ ...plain, ...numbersOf(stats.plan) }, signal);
    if (!signal.aborted) draw(byBits, byPlan);
  } catch (error) {
    if (!signal.aborted) show(error);
  } finally {
    if (!signal.aborted) byId("results").removeAttribute("aria-busy");
  }
}

function show(error) {
  byId("status").textContent = "";
  byId("problem").textContent = error.message;
  byId("problem").hidden = false;
  byId("asked").hidden = byId("figures").hidden = true;
  byId("lists").replaceChildren();
  byId("results").removeAttribute("aria-busy");
}

// What a comparison with bits asks for: the plan of the server, or real numbers if that is bits.
const numbersOf = (plan) => (plan.by === "bits" && !plan.rerank ? { by: "weights", rerank: "none" } : {});

function rowsOf(answer) {
  const query = answer.query_codes ? bitsOf(answer.query_codes[0], stats.bits) : null;
  const values = answer.distances[0];
  return answer.ids[0].map((id, i) => ({
    id, value: values[i], fields: answer.fields[0][i],
    places: query && differingBits(query, bitsOf(answer.codes[0][i], stats.bits)),
  }));
}

function draw(byBits, byNumbers) {
  if (!byBits) return drawPlan(byNumbers);
  const rows = rowsOf(byBits), histogram = byBits.histogram[0];
  const reach = rows.length ? rows[rows.length - 1].value : -1;
  byId("status").textContent = statusWords(rows, byBits, byNumbers);
  drawAsked().catch(show);
  byId("figures").hidden = false;
  drawHistogram(byId("histogram"), histogram, reach, stats.bits, state.label);
  drawDifferences(byId("differences"), rows.map((row) => row.places), stats.bits);
  const settings = { nBits: stats.bits, histogram, state };
  const lists = [list("By bits", drawList(rows, { ...settings, isScored: false }))];
  if (byNumbers) {
    const ranks = new Map(rows.map((row, place) => [row.id, place + 1]));
    lists.push(list(byNumbersWords(), drawList(rowsOf(byNumbers), { ...settings, isScored: true, ranks })));
  }
  byId("lists").className = byNumbers ? "side-by-side" : "";
  byId("lists").replaceChildren(...lists);
}

function drawPlan(answer) {
  const rows = rowsOf(answer);
  byId("status").textContent = statusWords(rows, answer);
  drawAsked().catch(show);
  byId("figures").hidden = true;
  byId("lists").className = "";
  byId("lists").replaceChildren(list(byNumbersWords(), drawList(rows, { nBits: stats.bits, state, isScored: true })));
}

function byNumbersWords() {
  const isPlan = !numbersOf(stats.plan).by;
  return isPlan ? `By ${stats.plan.sentence}` : "By real numbers";
}

function list(heading, groups) {
  const content = groups.length ? groups : [element("p", {}, "Nothing is near enough. Raise the distance.")];
  return element("section", { class: "list" }, element("h3", {}, heading), ...content);
}

function statusWords(rows, byBits, byNumbers) {
  const groups = new Set(rows.map((row) => row.value)).size;
  const server = byBits.milliseconds + (byNumbers?.milliseconds ?? 0);
  const total = byBits.roundTrip + (byNumbers?.roundTrip ?? 0);
  const ties = rows.length ? ` at ${plural(groups, "distance")}` : "";
  return `${plural(rows.length, "result")}${ties}. The search took ${server.toFixed(1)} ms in the server, ${count(Math.round(total))} ms until it was here.`;
}

async function drawAsked() {
  const box = byId("asked");
  box.hidden = state.by !== "item";
  document.title = state.by === "item" ? `Item ${state.item} · rankbits` : "Search · rankbits";
  if (box.hidden) return;
  const item = await getJson(`/items/${state.item}`);
  const fields = { ...item.fields, image: item.image };
  const [, title] = titleOf(fields, item.id);
  const label = fields.label ? `, label ${fields.label}` : "";
  box.replaceChildren(picture(fields, "", 160) ?? "", element("p", {}, element("strong", {}, title), element("span", {}, `The query is item ${item.id}${label}.`)));
}

start().catch(show);
