// The form: what the server accepts decides what is offered, the state decides what is filled in.
import { byId, count, element } from "./dom.js";
import { DEFAULTS } from "./state.js";

const form = () => byId("query");

export function prepareForm(stats) {
  for (const label of document.querySelectorAll("[data-needs]")) {
    label.hidden = !stats.accepts.includes(label.dataset.needs);
  }
  for (const part of document.querySelectorAll("[data-needs-bits]")) part.hidden = !stats.has_bits;
  byId("n-features").textContent = count(stats.row_shape[0] ?? 0);
  byId("n-digits").textContent = 2 * Math.ceil(stats.bits / 8);
  byId("radius").max = stats.bits;
  byId("k").max = Math.min(100, stats.limits.k);
  byId("label-filter").hidden = stats.labels.length === 0;
  for (const { label, items } of stats.labels) {
    byId("label").append(element("option", { value: label }, `${label} (${count(items)})`));
  }
}

export function fillForm(state, stats) {
  for (const radio of form().elements.by) radio.checked = radio.value === state.by;
  for (const name of ["item", "vector", "text", "code", "label"]) byId(name).value = state[name];
  byId("k").max = Math.max(byId("k").max, Math.min(state.k, stats.limits.k));
  byId("k").value = state.k;
  byId("radius").value = state.radius ?? stats.bits;
  byId("ties").checked = state.ties;
  byId("compare").checked = state.compare;
  showForm(state, stats);
}

export function readForm(stats) {
  const radius = Number(byId("radius").value);
  return {
    ...DEFAULTS,
    by: form().elements.by.value,
    item: byId("item").value.trim(),
    vector: byId("vector").value,
    text: byId("text").value,
    code: byId("code").value,
    label: byId("label").value,
    k: Number(byId("k").value),
    radius: radius >= stats.bits ? null : radius,
    ties: byId("ties").checked,
    compare: byId("compare").checked && canCompare(stats, form().elements.by.value),
  };
}

// Real-valued queries need numbers: those of the query itself, or the stored vector of an item.
export function canCompare(stats, by) {
  if (by === "code") return false;
  return by !== "item" || stats.has_vectors;
}

export function showForm(state, stats) {
  for (const way of document.querySelectorAll("[data-way]")) way.hidden = way.dataset.way !== state.by;
  byId("k-value").textContent = state.k;
  byId("radius-value").textContent = state.radius === null ? "any" : state.radius;
  const isPossible = canCompare(stats, state.by);
  byId("compare").disabled = !isPossible;
  byId("compare-hint").textContent = isPossible
    ? "Bits ask only which side of a plane a query is on. Real numbers keep how far."
    : state.by === "code" ? "A code has no real numbers to compare with."
      : "Start the server with --vectors to compare items by real numbers.";
}
