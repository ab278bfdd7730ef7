// Requests to the server; what it refuses is an error with its own sentence.

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { headers: { accept: "application/json" }, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const text = await answer.text();
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = { detail: text };
  }
  if (!answer.ok) {
    const error = new Error(sentence(document.detail) || `the server answered with status ${answer.status}`);
    error.status = answer.status;
    throw error;
  }
  return document;
}

function sentence(detail) {
  const text = typeof detail === "string" ? detail : "";
  return text && text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
}

export const get = (path, options) => ask(path, options);
export const post = (path, body, options = {}) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json", accept: "application/json" }, body: JSON.stringify(body ?? {}), ...options });
export const remove = (path) => ask(path, { method: "DELETE" });
