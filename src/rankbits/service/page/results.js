// Results as cards, in groups of items that tie.
import { count, element, plural } from "./dom.js";
import { bitStrip } from "./figures.js";
import { addressOf } from "./state.js";

const TITLES = ["title", "name", "text", "sentence", "caption", "file"];
const MOST_FIELDS = 3;

export function titleOf(fields, id) {
  const key = TITLES.find((name) => typeof fields[name] === "string" && fields[name]);
  return key ? [key, fields[key]] : [null, `Item ${id}`];
}

export function picture(fields, title, size = 160) {
  if (!fields.image) return null;
  const image = element("img", { src: `${fields.image}?size=${size}`, alt: title, loading: "lazy", class: "thumb" });
  image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth <= 48));
  return image;
}

// One list of results: { id, value, places, fields } in order, by distance or by score.
export function drawList(rows, { nBits, histogram, state, isScored, ranks }) {
  const groups = [];
  for (const row of rows) {
    const last = groups[groups.length - 1];
    if (last && last[0].value === row.value) last.push(row);
    else groups.push([row]);
  }
  return groups.map((group) => {
    const words = isScored ? scoreWords(group) : distanceWords(group, histogram, nBits);
    const cards = group.map((row) => card(row, { nBits, state, isScored, ranks }));
    return element("section", { class: group.length > 1 || words.isTie ? "tie tied" : "tie" },
      element("h4", {}, element("span", { class: "value" }, words.value), words.tie ? ` ${words.tie}` : ""),
      element("ol", { class: "cards" }, ...cards));
  });
}

function distanceWords(group, histogram, nBits) {
  const distance = group[0].value, n = histogram[distance];
  const value = distance === 0 ? "The same code" : `${plural(distance, "bit")} of ${nBits} ${distance === 1 ? "differs" : "differ"}`;
  if (n <= 1) return { value, tie: "", isTie: false };
  const shown = group.length < n ? ` ${count(group.length)} of them ${group.length === 1 ? "is" : "are"} shown.` : "";
  return { value, tie: `${count(n)} items tie at distance ${distance}: their order means nothing.${shown}`, isTie: true };
}

function scoreWords(group) {
  const value = `Distance ${numberWords(group[0].value)}`;
  if (group.length === 1) return { value, tie: "" };
  return { value, tie: `${group.length} of these items have this distance: their order means nothing.` };
}

const numberWords = (x) => (x === null ? "beyond all numbers" : Number(x.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 4, signDisplay: "negative" }));

function card(row, { nBits, state, isScored, ranks }) {
  const [key, title] = titleOf(row.fields, row.id);
  const href = addressOf({ ...state, by: "item", item: String(row.id) });
  const others = Object.entries(row.fields).filter(([name]) => name !== key && name !== "label" && name !== "image");
  const n = row.places?.length;
  const isQuery = state.by === "item" && String(row.id) === String(state.item).trim();
  const facts = [isQuery ? "the query itself" : null, row.fields.label ? `label ${row.fields.label}` : null, key ? `item ${row.id}` : null];
  return element("li", { class: isQuery ? "card query-itself" : "card" },
    element("a", { href, "data-item": row.id, class: "card-link" },
      picture(row.fields, title),
      element("span", { class: "title" }, title),
      element("span", { class: "facts" }, facts.filter(Boolean).join(" · "))),
    ...others.slice(0, MOST_FIELDS).map(([name, value]) => element("p", { class: "field" }, `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`)),
    ...(row.places ? [
      element("p", { class: "distance" }, n === 0 ? "No bit differs" : `${plural(n, "bit differs", "bits differ")}`, isScored ? moved(ranks.get(row.id)) : ""),
      bitStrip(nBits, row.places),
    ] : []));
}

function moved(rank) {
  return rank === undefined ? ", not among the results by bits" : `, place ${rank} by bits`;
}
