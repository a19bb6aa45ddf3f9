// A shelf of items to pick from, page by page.
import { getJson } from "./api.js";
import { byId, element } from "./dom.js";
import { picture, titleOf } from "./results.js";

const PAGE = 24;
let next = -1;
let label = "";

export async function fillShelf(newLabel, onPick) {
  if (newLabel !== label || next === -1) {
    label = newLabel;
    next = -1;
    byId("shelf").replaceChildren();
  }
  const filter = label ? `&label=${encodeURIComponent(label)}` : "";
  const page = await getJson(`/items?limit=${PAGE}&after=${next}${filter}`);
  for (const item of page.items) byId("shelf").append(entry(item, onPick));
  next = page.next ?? -1;
  byId("more").hidden = page.next === null;
}

function entry(item, onPick) {
  const fields = { ...item.fields, image: item.image };
  const [, title] = titleOf(fields, item.id);
  const words = `Search by item ${item.id}${title === `Item ${item.id}` ? "" : `: ${title}`}`;
  const button = element("button", { type: "button", "aria-label": words, title: words },
    picture(fields, "", 64) ?? element("span", {}, title));
  button.addEventListener("click", () => onPick(item.id));
  return element("li", {}, button);
}
