// What is searched, as an object and as the address of the page.

const MOST_CHARACTERS = 6000; // of a vector in an address; some browsers and proxies cut longer ones
const BY = ["item", "vector", "text", "picture", "code"];

export const DEFAULTS = {
  by: "item", item: "", vector: "", text: "", code: "",
  k: 10, radius: null, label: "", ties: false, compare: false,
};

export function stateOfAddress(search = location.search) {
  const params = new URLSearchParams(search);
  const state = { ...DEFAULTS };
  const by = params.get("by") ?? BY.find((way) => params.has(way));
  if (BY.includes(by)) state.by = by;
  for (const name of ["item", "vector", "text", "code", "label"]) {
    if (params.has(name)) state[name] = params.get(name);
  }
  const k = Number.parseInt(params.get("k") ?? "", 10);
  if (k >= 1) state.k = k;
  const radius = Number.parseInt(params.get("radius") ?? "", 10);
  if (radius >= 0) state.radius = radius;
  state.ties = params.get("ties") === "complete";
  state.compare = params.get("compare") === "1";
  return state;
}

export function addressOf(state) {
  const params = new URLSearchParams();
  params.set("by", state.by);
  const value = state.by === "picture" ? "" : String(state[state.by]);
  if (value && value.length <= MOST_CHARACTERS) params.set(state.by, value);
  if (state.k !== DEFAULTS.k) params.set("k", state.k);
  if (state.radius !== null) params.set("radius", state.radius);
  if (state.label) params.set("label", state.label);
  if (state.ties) params.set("ties", "complete");
  if (state.compare) params.set("compare", "1");
  return `?${params}`;
}

// The body of POST /search; throws a sentence where the reader has to change something.
export function requestOf(state, stats, picture) {
  const request = { k: state.k, include: ["codes", "fields", "histogram"] };
  if (state.radius !== null) request.radius = state.radius;
  if (state.ties) request.ties = "complete";
  if (state.label) request.labels = [state.label];
  return { ...request, ...queryOf(state, stats, picture) };
}

export function queryOf(state, stats, picture) {
  if (state.by === "item") {
    if (!/^\d{1,19}$/.test(String(state.item).trim())) throw new Error("Type the id of an item, a whole number.");
    return { ids: [String(state.item).trim()] };
  }
  if (state.by === "vector") return { vectors: [numbersOf(state.vector, stats.row_shape[0])] };
  if (state.by === "text") {
    if (!state.text.trim()) throw new Error("Type a text to search by.");
    return { texts: [state.text] };
  }
  if (state.by === "picture") {
    if (!picture) throw new Error("Choose a picture to search by.");
    return { pictures: [picture] };
  }
  const digits = 2 * Math.ceil(stats.bits / 8);
  const code = state.code.trim();
  if (!new RegExp(`^[0-9a-fA-F]{${digits}}$`).test(code)) {
    throw new Error(`Type a code of ${digits} hexadecimal digits; this one has ${code.length}.`);
  }
  return { codes: [code] };
}

function numbersOf(text, expected) {
  const words = text.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean);
  const numbers = words.map(Number);
  const wrong = words.find((word, i) => !Number.isFinite(numbers[i]));
  if (wrong !== undefined) throw new Error(`“${wrong.slice(0, 20)}” is not a number.`);
  if (numbers.length !== expected) {
    throw new Error(`Paste ${expected} numbers; these are ${numbers.length}.`);
  }
  return numbers;
}
