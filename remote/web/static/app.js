// The page: logging in, following the conversation, and the prompt.
import { Refused, forget, loggedIn, login, newID, post, read, stream } from "./api.js";
import { Approvals } from "./approval.js";
import { Questions } from "./questions.js";
import { Sessions } from "./sessions.js";
import { get, line, make, set } from "./text.js";
import { Transcript, seconds } from "./transcript.js";

const transcript = new Transcript();
const approvals = new Approvals((problem) => {
  if (problem) say(problem);
  title();
});
const questions = new Questions((problem) => say(problem));
new Sessions();

let name = "";
let session = ""; // the current conversation
let after = 0; // number of its newest event that is here
let turn = ""; // of the turn that runs
let mine = ""; // id of the turn that this page started last
let outcome = null; // id of the turn whose end was told last; null: nothing was told yet
let attempt = null; // the text that was sent last, its id, and where to, until it is known to have arrived
let posting = null; // the request for a turn that is under way
let phase = null;
let following = null; // AbortController of what runs while somebody is logged in
let hurry = () => {}; // ends the wait for the next try

const say = (problem) => set(get("problem"), problem);

function title() {
  const state = approvals.open ? "● asks · " : turn ? "… " : "";
  document.title = `${state}${line(name) || "zcoder"}`;
}

// Who is logged in.

function showLogin(problem = "") {
  following?.abort();
  following = null;
  name = "";
  outcome = null;
  reset("");
  get("app").hidden = true;
  get("login").hidden = false;
  set(get("login-error"), problem);
  get("token").focus();
}

get("login-form").addEventListener("submit", async (e) => {
  e.preventDefault();
  const token = get("token").value;
  set(get("login-error"), "");
  try {
    await login(token);
    get("token").value = "";
    start();
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    set(get("login-error"), problem.message);
  }
});

get("logout").addEventListener("click", async () => {
  try {
    await post("/web/logout", {});
  } catch (problem) {
    if (problem.status !== 401) {
      say(`not logged out: ${problem.message}`);
      return;
    }
  }
  forget();
  showLogin();
});

function start() {
  get("login").hidden = true;
  get("app").hidden = false;
  following = new AbortController();
  follow(following.signal);
}

// Following the conversation.

function reset(next) {
  session = next;
  after = 0;
  turn = "";
  phase = null;
  transcript.clear();
  approvals.clear();
  questions.clear();
  get("queue").replaceChildren();
  show();
}

function net(text, kind) {
  const at = get("net");
  at.className = kind;
  set(at, text);
}

async function follow(stop) {
  let pause = 500;
  let switched = false;
  while (!stop.aborted) {
    net("connecting …", "waiting");
    try {
      if (!name) await introduce();
      await stream(session, after, (kind, data) => {
        pause = 500;
        net("connected", "live");
        switched = kind === "switched";
        handle(kind, data);
      }, stop);
    } catch (e) {
      if (stop.aborted) return;
      if (e.status === 401) {
        forget();
        showLogin("Logged out: log in again to go on.");
        return;
      }
      if (!(e instanceof Refused)) console.error(e);
    }
    if (switched) {
      switched = false;
      continue;
    }
    net("connection lost, trying again …", "lost");
    await new Promise((done) => {
      hurry = done;
      setTimeout(done, pause);
    });
    pause = Math.min(pause * 2, 10000);
  }
}

addEventListener("online", () => hurry());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) hurry();
  approvals.buttons();
});

async function introduce() {
  const hello = await read("/v1/hello");
  name = hello.server_name;
  set(get("server"), line(name));
  set(get("place"), [hello.workspace, hello.profile, hello.model, hello.git_status].filter(Boolean).map(line).join(" · "));
  set(get("policy"), hello.command_policy === "allow" ? "commands run without asking" : "");
}

function handle(kind, data) {
  if (kind === "event") happened(data);
  if (kind === "state") stateIs(data);
  if (kind === "form") {
    questions.ask(data);
    transcript.down();
  }
  if (kind === "switched") reset(data.session);
}

function stateIs(state) {
  if (state.session !== session) reset(state.session);
  turn = state.turn_id ?? "";
  if (!turn) {
    phase = null;
    questions.clear();
  }
  const last = state.last?.turn_id ?? "";
  if (outcome !== null && last !== outcome) ended(state.last);
  outcome = last;
  show();
}

// ended tells what a turn left that no event says.
async function ended(last) {
  if (last.error) transcript.note(last.error + (last.hint ? `\nhint: ${last.hint}` : ""), "error");
  await posting; // its reply names our turn
  if (last.turn_id !== mine) return;
  if (last.draft) get("prompt").value = last.draft;
  if (last.submit) submit(last.submit);
}

function happened({ event: e, approval, shown }) {
  after = Math.max(after, e.seq);
  transcript.show(e, shown);
  switch (e.event) {
    case "state":
      phase = { text: [e.state.phase, e.state.detail].filter(Boolean).map(line).join(" "), since: performance.now() };
      break;
    case "question":
      if (approval) approvals.ask(name, e.question, approval, shown);
      break;
    case "answer":
      approvals.settled(e.answer.call_id);
      break;
    case "result":
      approvals.settled(e.result.call_id);
      break;
    case "turn_end":
      approvals.clear();
      break;
    case "queued":
      queued(e.item);
      break;
    case "unqueued":
    case "user":
      if (e.item) get(`item-${e.item.id}`)?.remove();
      break;
  }
  show();
}

function queued(item) {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(item.id) || get(`item-${item.id}`)) return;
  const chip = make("div", "chip");
  chip.id = `item-${item.id}`;
  const drop = make("button", "", "Drop");
  drop.type = "button";
  drop.addEventListener("click", () => tried(() => post("/v1/input/drop", { session_id: session, message_id: item.id })));
  chip.append(make("span", "", `queued: ${line(item.text).slice(0, 200)}`), drop);
  get("queue").append(chip);
}

// The prompt.

let due = null;

function show() {
  due ??= setTimeout(paint, 30);
}

function paint() {
  due = null;
  get("stop").hidden = !turn;
  set(get("send"), turn ? "Steer" : "Send");
  const waits = phase && performance.now() - phase.since;
  let text = "";
  if (approvals.open) text = "waiting for you";
  else if (turn) text = phase ? `${phase.text} ${seconds(waits * 1e6)}` : "starting";
  if (text !== get("status").textContent) set(get("status"), text);
  title();
}
setInterval(() => turn && show(), 1000);

async function tried(f) {
  say("");
  try {
    return await f();
  } catch (e) {
    if (!(e instanceof Refused)) throw e;
    say(e.message);
    return null;
  }
}

// submit sends a text: as a turn, or to the turn that runs. One that may have arrived
// though its reply was lost is sent again as it was, so that it counts once.
async function submit(text) {
  if (attempt?.text !== text) {
    const id = newID();
    const steer = turn && !text.startsWith("/");
    attempt = steer
      ? { text, path: "/v1/input", body: { session_id: session, turn_id: turn, message_id: id, text, mode: "steer" } }
      : { text, path: "/v1/turn", body: { prompt: text, interactive: true, request_id: id } };
  }
  const { path, body } = attempt;
  posting = tried(async () => {
    try {
      const reply = await post(path, body);
      attempt = null;
      return reply;
    } catch (e) {
      if (e.status !== 0) attempt = null; // it was refused
      throw e;
    }
  });
  const reply = await posting;
  if (reply?.turn_id) mine = reply.turn_id;
  if (reply?.model_status === "warming") phase = { text: "loading model", since: performance.now() };
  return reply;
}

async function enter() {
  const box = get("prompt");
  const text = box.value;
  if (!text.trim() || get("send").disabled) return;
  get("send").disabled = true;
  const sent = await submit(text);
  get("send").disabled = false;
  if (sent && box.value === text) box.value = "";
  transcript.follow = true;
}

get("prompt-form").addEventListener("submit", (e) => {
  e.preventDefault();
  enter();
});

// Enter sends where there is a keyboard; on a phone it begins a line.
get("prompt").addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing || matchMedia("(pointer: coarse)").matches) return;
  e.preventDefault();
  enter();
});

get("stop").addEventListener("click", () => tried(() => post("/v1/cancel", { session_id: session, turn_id: turn })));

if (loggedIn()) start();
else showLogin();
