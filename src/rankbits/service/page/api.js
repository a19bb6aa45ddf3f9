// Requests to the server that this page came from.

export class RequestError extends Error {}

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export async function getJson(path) {
  return answerOf(await fetch(path, { headers: { Accept: "application/json" } }));
}

export async function search(request, signal) {
  const started = performance.now();
  const response = await fetch("/search", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: jsonOf(request),
    signal,
  });
  const answer = await answerOf(response);
  return { ...answer, roundTrip: performance.now() - started };
}

async function answerOf(response) {
  let content = {};
  try {
    content = parse(await response.text());
  } catch { /* an answer of something between this page and the server */ }
  if (!response.ok) {
    throw new RequestError(content.detail ?? `The server answered ${response.status}.`);
  }
  return content;
}

// Above 2^53 JavaScript has no exact integers: larger ones, which are ids, stay texts of digits.
function parse(text) {
  const isLarge = (token) => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (isLarge(token) ? `"${token}"` : token)));
}

function jsonOf({ ids, ...others }) {
  const text = JSON.stringify(others);
  return ids ? `{"ids":[${ids.map(BigInt).join(",")}],${text.slice(1)}` : text;
}
