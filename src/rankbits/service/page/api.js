// Requests to the server that this page came from.

export class RequestError extends Error {}

export async function getJson(path) {
  return answerOf(await fetch(path, { headers: { Accept: "application/json" } }));
}

export async function search(request, signal) {
  const started = performance.now();
  const response = await fetch("/search", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(request),
    signal,
  });
  const answer = await answerOf(response);
  return { ...answer, roundTrip: performance.now() - started };
}

async function answerOf(response) {
  let content = {};
  try {
    content = await response.json();
  } catch { /* an answer of something between this page and the server */ }
  if (!response.ok) {
    throw new RequestError(content.detail ?? `The server answered ${response.status}.`);
  }
  return content;
}
