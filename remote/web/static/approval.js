// The dialog of an approval. Nothing can be allowed before half a second has passed and
// the end of the request was on the screen; Enter and Space do nothing until a button was
// chosen; Escape denies. Each answer carries the digest of the text that was shown.
import { Refused, post } from "./api.js";
import { get, line, make, set } from "./text.js";

const settle = 500; // milliseconds
const leastHeight = 80; // pixels of the request that must be in view to count as read

export class Approvals {
  constructor(changed) {
    this.changed = changed; // told when something waits, or no longer does
    this.waiting = []; // the first is shown
    this.dialog = get("approval");
    this.request = get("request");
    this.watchPress();
    this.observer = new IntersectionObserver((list) => this.endInView(list.at(-1).isIntersecting));
    get("allow-once").addEventListener("click", () => this.answer("y"));
    get("allow-all").addEventListener("click", () => this.answer("a"));
    get("approval-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.answer("n", get("reason").value.trim());
    });
    this.dialog.addEventListener("cancel", (e) => {
      e.preventDefault();
      this.answer("n");
    });
    this.dialog.addEventListener("close", () => this.show());
  }

  // watchPress remembers when a key or button went down that is not up yet: what began
  // before the dialog was ready is no answer.
  watchPress() {
    this.pressed = 0;
    const down = (e) => {
      if (!this.pressed || !e.repeat) this.pressed = e.timeStamp;
    };
    const up = () => setTimeout(() => (this.pressed = 0));
    for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, down, true);
    for (const name of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(name, up, true);
  }

  get open() {
    return this.waiting[0];
  }

  ask(server, question, id, shown) {
    this.waiting.push({ server, question, id, shown });
    this.show();
  }

  // settled takes a question away that has its answer, whoever gave it.
  settled(callID) {
    const first = this.open;
    this.waiting = this.waiting.filter((w) => w.question.call_id !== callID);
    if (this.open !== first) this.show();
  }

  clear() {
    this.waiting = [];
    this.show();
  }

  show() {
    const now = this.open;
    this.changed();
    if (this.shownNow === now && this.dialog.open === Boolean(now)) return;
    this.shownNow = now;
    clearTimeout(this.timer);
    this.ready = this.sending = this.seen = this.atEnd = false;
    this.observer.disconnect();
    if (now) {
      this.fill(now);
      if (!this.dialog.open) this.dialog.showModal();
      this.request.scrollTop = 0;
      this.request.focus();
      this.observer.observe(get("request-end")); // says at once whether it is in view
      this.timer = setTimeout(() => this.settleOver(), settle);
    } else if (this.dialog.open) {
      this.dialog.close();
    }
    this.buttons();
  }

  fill({ server, question, shown }) {
    set(get("approval-title"), `Allow this? on ${line(server)}: ${line(question.tool)}`);
    get("reason").value = "";
    get("allow-all").hidden = !question.grantable;
    get("facts").replaceChildren(...shown.facts.flatMap((f) => [make("dt", "", f.name), make("dd", "", line(f.value))]));
    get("lines").replaceChildren(...shown.lines.flatMap((text, i) => [make("span", "number", i + 1), make("span", "line", text)]));
    get("notes").replaceChildren(...shown.notes.map((n) => make("li", "", line(n))));
  }

  settleOver() {
    this.ready = true;
    this.readyAt = performance.now();
    this.buttons();
  }

  endInView(yes) {
    this.atEnd = yes;
    this.buttons();
  }

  buttons() {
    const now = this.open;
    if (!now) return;
    if (this.ready && this.atEnd && this.request.clientHeight >= leastHeight && !document.hidden) this.seen = true;
    const free = this.ready && !this.sending;
    get("deny").disabled = !free;
    get("allow-once").disabled = get("allow-all").disabled = !free || !this.seen;
    let hint = "";
    if (this.sending) hint = "sending …";
    else if (now.problem) hint = now.problem;
    else if (this.ready && !this.seen) hint = "read to the end: then it can be allowed";
    set(get("approval-hint"), hint);
  }

  async answer(decision, reason = "") {
    const now = this.open;
    const early = this.pressed && this.pressed < this.readyAt;
    if (!now || !this.ready || this.sending || early || (decision !== "n" && !this.seen)) return;
    this.sending = true;
    now.problem = "";
    this.buttons();
    try {
      await post("/v1/approval", { id: now.id, decision, digest: now.question.digest, reason });
      this.settled(now.question.call_id);
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      if (e.status === 409) {
        this.settled(now.question.call_id);
        this.changed("already settled: somebody else answered, or its time is over");
        return;
      }
      now.problem = `not sent: ${e.message}`;
    }
    this.sending = false;
    this.buttons();
  }
}
