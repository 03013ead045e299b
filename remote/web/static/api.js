// Requests to the server. A login is a cookie, which scripts cannot read, and a key, which
// goes in a header and stays in this page's own storage. Neither is of use alone.
const storage = "zcoder-page-key";

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status; // 0: the server could not be reached
  }
}

export const loggedIn = () => localStorage.getItem(storage) !== null;
export const forget = () => localStorage.removeItem(storage);

function headers(more = {}) {
  return { "Zcoder-Page": localStorage.getItem(storage) ?? "", ...more };
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    throw new Refused(0, "the server cannot be reached");
  }
  if (answer.ok) return answer;
  let text = `the server says ${answer.status}`;
  try {
    text = (await answer.json()).error ?? text;
  } catch {
    // not JSON: the status has to do
  }
  throw new Refused(answer.status, text);
}

export async function read(path) {
  return (await send(path, { headers: headers() })).json();
}

export async function post(path, body) {
  const answer = await send(path, {
    method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body),
  });
  return answer.json();
}

export async function login(token) {
  const { key } = await post("/web/login", { token });
  localStorage.setItem(storage, key);
}

const silence = 40000; // milliseconds; the server says something every 15 seconds

// stream hands over the messages of the stream as they come, until it ends. It throws
// Refused, or an AbortError when stop was aborted.
export async function stream(session, after, handle, stop) {
  const request = new AbortController();
  const end = () => request.abort();
  stop.addEventListener("abort", end);
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(end, silence);
  };
  alive();
  try {
    const query = session ? `?id=${session}&after=${after}` : "";
    const answer = await send(`/v1/stream${query}`, { headers: headers(), signal: request.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      blocks.forEach((block) => message(block, handle));
    }
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", end);
    end();
  }
}

function message(block, handle) {
  let name = "";
  let data = "";
  for (const one of block.split("\n")) {
    if (one.startsWith("event: ")) name = one.slice(7);
    if (one.startsWith("data: ")) data = one.slice(6);
  }
  if (name) handle(name, JSON.parse(data));
}

// newID names a message or request of ours. randomUUID needs https, this does not.
export function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
