// What happened in the conversation, as entries of the page. It asks nothing of the
// server and answers nothing.
import { Flow, get, line, make, plain, set } from "./text.js";

const mostEntries = 3000;
const mostLines = 40; // of a block that is open at once

const short = (text) => line(text).slice(0, 2000);
const plural = (n, noun) => (n === 1 ? `1 ${noun}` : `${n} ${noun}s`);

export function seconds(nanoseconds) {
  const s = nanoseconds / 1e9;
  if (s < 10) return `${s.toFixed(1)}s`;
  const whole = Math.floor(s);
  if (whole < 60) return `${whole}s`;
  return `${Math.floor(whole / 60)}m${String(whole % 60).padStart(2, "0")}s`;
}

export class Transcript {
  constructor() {
    this.list = get("transcript");
    this.scroll = get("scroll");
    this.follow = true;
    this.scroll.addEventListener("scroll", () => {
      this.follow = this.scroll.scrollTop + this.scroll.clientHeight >= this.scroll.scrollHeight - 40;
    });
    this.clear();
  }

  clear() {
    this.list.replaceChildren();
    get("dropped").hidden = true;
    this.calls = new Map(); // by id: what is on the screen of a call
    this.questions = new Map();
    this.endReply();
    this.lastReply = "";
  }

  // add puts an entry at the end, and lets go of the oldest when there are many.
  add(className) {
    const entry = make("article", className);
    this.list.append(entry);
    while (this.list.childElementCount > mostEntries) {
      this.list.firstElementChild.remove();
      get("dropped").hidden = false;
    }
    this.down();
    return entry;
  }

  down() {
    if (!this.follow || this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.scroll.scrollTop = this.scroll.scrollHeight;
    });
  }

  note(text, kind = "info") {
    const entry = this.add(`note ${kind}`);
    if (kind !== "info") entry.append(make("strong", "", kind));
    new Flow(entry.appendChild(make("div", "text"))).add(text.replace(/\n$/, ""));
  }

  show(e, shown) {
    const f = this[`on_${e.event}`];
    if (f) f.call(this, e, shown);
    this.down();
  }

  on_user(e) {
    this.endReply();
    const entry = this.add("user");
    entry.append(make("strong", "", "you"));
    new Flow(entry.appendChild(make("div", "text"))).add(e.text);
  }

  on_relay(e) {
    this.endReply();
    const entry = this.add("user foreign");
    entry.append(make("strong", "", `from another zcoder: ${short(e.peer.project)} · ${short(e.peer.workspace)}`));
    new Flow(entry.appendChild(make("div", "text"))).add(e.peer.message);
  }

  on_shell(e) {
    this.block(this.add("note"), "your command", e.text);
  }

  on_text(e) {
    if (!this.reply) {
      if (!e.text.trim()) return;
      const entry = this.add("reply");
      this.reply = new Flow(entry.appendChild(make("div", "text")));
    }
    this.reply.add(e.text);
  }

  on_thinking(e) {
    if (!this.thought) {
      const details = this.add("thought").appendChild(document.createElement("details"));
      details.append(make("summary", "", "thinking"));
      this.thought = new Flow(details.appendChild(make("div", "text")));
    }
    this.thought.add(e.text);
  }

  on_reply(e) {
    const m = e.reply.message;
    if (!this.thought && m.thinking) this.on_thinking({ text: m.thinking });
    if (!this.reply && m.content) this.on_text({ text: m.content });
    this.lastReply = m.content ?? "";
    this.endReply();
    if (e.reply.degenerate) this.note("the model repeated itself: this reply does not count", "warning");
  }

  endReply() {
    this.reply = this.thought = null;
  }

  on_call(e) {
    this.endReply();
    const entry = this.add("tool running");
    const head = entry.appendChild(make("div", "head"));
    head.append(make("span", "dot"));
    const said = head.appendChild(make("div"));
    said.append(make("span", "what", short(e.call.summary || e.call.name)), " ");
    const outcome = said.appendChild(make("span", "outcome", "…"));
    if (e.call.text && e.call.text.trim() !== (e.call.summary ?? "").trim()) this.block(entry, "the whole command", e.call.text);
    this.calls.set(e.call.id, { entry, outcome });
    this.running = this.calls.get(e.call.id);
  }

  on_output(e) {
    const call = this.running;
    if (!call) return;
    call.output ??= new Flow(this.fold(call.entry, "output so far").appendChild(make("pre", "text")));
    call.output.add(e.text);
  }

  on_result(e) {
    const r = e.result;
    if (!this.calls.has(r.call_id)) this.on_call({ call: { id: r.call_id, name: r.name, summary: r.name } });
    const { entry, outcome } = this.calls.get(r.call_id);
    this.calls.delete(r.call_id);
    this.running = null;
    if (r.name === "finish" && r.status === "ok") {
      entry.remove();
      return;
    }
    entry.className = `tool ${["ok", "failed", "denied"].includes(r.status) ? r.status : "other"}`;
    const facts = [r.status === "ok" ? "" : line(r.status), short(r.line), r.took ? seconds(r.took) : ""];
    set(outcome, facts.filter(Boolean).join(" · "));
    for (const old of entry.querySelectorAll("details.output")) old.remove();
    if (r.text) this.block(entry, "what the model was told", r.text);
    if (r.diff) this.diff(entry, r.diff);
  }

  fold(entry, title, open = false) {
    const details = entry.appendChild(make("details", "output"));
    details.open = open;
    details.append(make("summary", "", title));
    return details;
  }

  block(entry, title, text, open = false) {
    new Flow(this.fold(entry, title, open).appendChild(make("pre", "text"))).add(text);
  }

  diff(entry, text) {
    const lines = plain(text.slice(0, 400000)).replace(/\n$/, "").split("\n");
    const box = this.fold(entry, `change, ${plural(lines.length, "line")}`, lines.length <= mostLines);
    const list = box.appendChild(make("div", "diff"));
    for (const one of lines.slice(0, 2000)) {
      let kind = "";
      if (/^(\+\+\+|---)/.test(one)) kind = "file";
      else if (one.startsWith("+")) kind = "plus";
      else if (one.startsWith("-")) kind = "minus";
      else if (one.startsWith("@@")) kind = "hunk";
      list.append(make("div", kind, one.slice(0, 4000) || " "));
    }
    if (lines.length > 2000) box.append(make("p", "note", `… ${lines.length - 2000} more lines are not shown here`));
  }

  on_question(e, shown) {
    this.questions.set(e.question.call_id, { question: e.question, shown });
  }

  on_answer(e) {
    const asked = this.questions.get(e.answer.call_id);
    if (!asked) return;
    this.questions.delete(e.answer.call_id);
    const words = { once: "✓ approved once", conversation: "✓ approved, and commands for the rest of this conversation" };
    const entry = this.add(`answer ${e.answer.choice === "no" ? "denied" : "ok"}`);
    const by = e.answer.by ? ` by ${line(e.answer.by)}` : "";
    entry.append(make("strong", "", `${line(asked.question.tool)}: ${words[e.answer.choice] ?? "✗ denied"}${by}`));
    if (e.answer.reason) entry.append(make("div", "text", `reason: ${short(e.answer.reason)}`));
    const lines = asked.shown?.lines ?? plain(asked.question.text).split("\n");
    this.block(entry, "what was asked", lines.join("\n"), lines.length <= 5);
  }

  on_info(e) {
    this.note(e.text);
  }

  on_printed(e) {
    const entry = this.add("note printed");
    new Flow(entry.appendChild(make("pre", "text"))).add(e.text.replace(/\n$/, ""));
  }

  on_warning(e) {
    this.note(e.text, "warning");
  }

  on_compacted(e) {
    if (e.text === "rewound") this.note("the conversation forgets the turns that were undone");
    else this.note("the conversation so far was replaced by a summary; the model goes on from it");
  }

  on_goal(e) {
    const { state, reason } = e.goal;
    if (state === "active") return;
    this.note(state === "none" ? "the goal is cleared" : `goal ${line(state)}${reason ? `: ${short(reason)}` : ""}`);
  }

  on_turn_end(e) {
    this.endReply();
    this.calls.clear();
    this.questions.clear();
    const end = e.end;
    if (!end) return;
    if (["complete", "blocked"].includes(end.reason)) {
      if (end.text?.trim() && end.text !== this.lastReply) this.on_text(end);
      this.endReply();
    } else if (end.reason !== "cancelled" && end.text) {
      this.note(end.text + (end.hint ? `\nhint: ${end.hint}` : ""), end.reason === "error" ? "error" : "warning");
    }
    this.add(`end ${end.reason === "complete" ? "ok" : "other"}`).append(make("span", "", closing(end)));
  }
}

// closing is the line at the end of a turn, from what happened in it.
function closing(end) {
  const words = {
    complete: "done", blocked: "blocked", cancelled: "stopped", error: "ended with an error",
    limit: "stopped at a limit", loop: "stopped in a loop",
  };
  const facts = [words[end.reason] ?? line(end.reason)];
  const changed = end.changed ?? [];
  if (changed.length) {
    const more = changed.length > 3 ? `, ${changed.length - 3} more` : "";
    facts.push(`${plural(changed.length, "file")} changed (${changed.slice(0, 3).map(line).join(", ")}${more})`);
  }
  for (const c of (end.commands ?? []).slice(-3)) {
    facts.push(`${line(c.summary).slice(0, 60)} ${c.exit === undefined ? "stopped" : `exit ${c.exit}`}`);
  }
  if (end.failed) facts.push(`${plural(end.failed, "call")} failed`);
  if (end.refused) facts.push(`${end.refused} refused`);
  if (end.output_tokens) facts.push(`${end.output_tokens} tokens`);
  facts.push(seconds(end.took));
  return facts.join(" · ");
}
