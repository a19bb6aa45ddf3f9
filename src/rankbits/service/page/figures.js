// Figures of one query: how many items lie at each distance, and in which bits the results differ.
import { count, element, plural, svg } from "./dom.js";

const WIDTH = 400, HEIGHT = 110, BOTTOM = 22, TOP = 6;

export function bitsOf(hex, nBits) {
  const bits = new Uint8Array(nBits);
  for (let i = 0; i < nBits; i += 1) {
    bits[i] = (Number.parseInt(hex[i >> 2], 16) >> (3 - (i & 3))) & 1;
  }
  return bits;
}

export function differingBits(query, item) {
  const places = [];
  for (let i = 0; i < query.length; i += 1) if (query[i] !== item[i]) places.push(i);
  return places;
}

// One row of cells, those that differ filled; two paths, however many bits there are.
export function bitStrip(nBits, places) {
  const perRow = Math.min(nBits, 64), rows = Math.ceil(nBits / perRow);
  const differ = new Set(places);
  let same = "", different = "";
  for (let i = 0; i < nBits; i += 1) {
    const cell = `M${(i % perRow) * 5} ${Math.floor(i / perRow) * 8}h4v7h-4z`;
    if (differ.has(i)) different += cell;
    else same += cell;
  }
  const words = places.length === 0 ? "No bit differs"
    : `Bits that differ: ${places.slice(0, 24).map((i) => i + 1).join(", ")}${places.length > 24 ? " and more" : ""}`;
  return svg("svg", {
    class: "bits", viewBox: `0 0 ${perRow * 5 - 1} ${rows * 8 - 1}`, role: "img", "aria-label": words,
  }, svg("title", {}, words), svg("path", { class: "same", d: same }), svg("path", { class: "different", d: different }));
}

export function drawHistogram(figure, counts, reach, nBits, label) {
  const total = counts.reduce((sum, n) => sum + n, 0), most = Math.max(...counts, 1);
  const within = counts.slice(0, reach + 1).reduce((sum, n) => sum + n, 0);
  const step = WIDTH / counts.length, tall = HEIGHT - BOTTOM - TOP;
  const bars = counts.map((n, distance) => {
    if (n === 0) return null;
    const height = Math.max(2, (tall * n) / most);
    const bar = svg("rect", {
      class: distance <= reach ? "near" : "far", x: (distance * step + step * 0.1).toFixed(2),
      y: (TOP + tall - height).toFixed(2), width: (step * 0.8).toFixed(2), height: height.toFixed(2),
    });
    bar.append(svg("title", {}, `${plural(n, "item")} at distance ${distance}`));
    return bar;
  });
  const sentence = reach < 0 ? `None of ${plural(total, "item")} is near enough.`
    : `${plural(within, "item")} of ${count(total)} ${within === 1 ? "lies" : "lie"} within distance ${reach}, that of the last result.`;
  figure.replaceChildren(
    element("figcaption", {}, element("strong", {}, "Distances of this query"), ` to ${label ? `items labelled ${label}` : "all items"}. ${sentence}`),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Number of items at each distance. ${sentence}` },
      ...bars, svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - BOTTOM + 0.5, y2: HEIGHT - BOTTOM + 0.5 }), ...ticks(nBits, step)),
    tableOf(counts),
  );
}

function ticks(nBits, step) {
  const gap = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((size) => nBits / size <= 9);
  const marks = [];
  for (let distance = 0; distance <= nBits; distance += gap) {
    const [anchor, x] = distance === 0 ? ["start", 0] : distance === nBits ? ["end", WIDTH] : ["middle", (distance + 0.5) * step];
    marks.push(svg("text", { x: x.toFixed(2), y: HEIGHT - 6, "text-anchor": anchor }, distance === 0 ? "0 bits differ" : `${distance}`));
  }
  if (marks.length > 2) marks.splice(1, 1); // the first label is long
  return marks;
}

function tableOf(counts) {
  const rows = counts.map((n, distance) => (n === 0 ? null : element("tr", {}, element("th", { scope: "row" }, `${distance}`), element("td", {}, count(n)))));
  const head = element("tr", {}, element("th", { scope: "col" }, "Distance"), element("th", { scope: "col" }, "Items"));
  return element("details", {}, element("summary", {}, "These counts as a table"),
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

export function drawDifferences(figure, lists, nBits) {
  const counts = new Array(nBits).fill(0);
  for (const places of lists) for (const place of places) counts[place] += 1;
  const n = lists.length, most = Math.max(...counts, 1);
  const step = WIDTH / nBits, tall = HEIGHT - BOTTOM - TOP;
  const bars = counts.map((differing, bit) => {
    if (differing === 0) return null;
    const height = Math.max(2, (tall * differing) / most);
    const bar = svg("rect", {
      class: "different", x: (bit * step + step * 0.1).toFixed(2), y: (TOP + tall - height).toFixed(2),
      width: (step * 0.8).toFixed(2), height: height.toFixed(2),
    });
    bar.append(svg("title", {}, `Bit ${bit + 1} differs in ${differing} of ${n} results`));
    return bar;
  });
  const order = counts.map((_, bit) => bit).filter((bit) => counts[bit] > 0).sort((a, b) => counts[b] - counts[a] || a - b);
  const nSame = counts.filter((differing) => differing === 0).length;
  const sentence = order.length === 0 ? "No bit differs in any result."
    : `Most often bit ${order[0] + 1}, in ${counts[order[0]]} of ${plural(n, "result")}; ${plural(nSame, "bit is", "bits are")} the same in all.`;
  figure.replaceChildren(
    element("figcaption", {}, element("strong", {}, "Where the query’s bits differ"), ` from those of the results. ${sentence}`),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `How many results differ in each bit. ${sentence}` },
      ...bars, svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - BOTTOM + 0.5, y2: HEIGHT - BOTTOM + 0.5 }),
      svg("text", { x: 0, y: HEIGHT - 6 }, "bit 1"), svg("text", { x: WIDTH, y: HEIGHT - 6, "text-anchor": "end" }, `bit ${nBits}`)),
  );
}
