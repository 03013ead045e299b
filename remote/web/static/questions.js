// Dialogs of slash commands: a list to choose from, or a line to write. What a line is
// asked about was printed in the conversation, so that stays within reach meanwhile.
import { Refused, post } from "./api.js";
import { get, line, make, set } from "./text.js";

export class Questions {
  constructor(problem) {
    this.problem = problem; // shows why something did not work
    this.waiting = [];
    this.dialog = get("question");
    get("question-form").addEventListener("submit", (e) => {
      e.preventDefault();
      if (!this.items().length) this.answer({ ok: true, line: get("line").value });
    });
    get("question-cancel").addEventListener("click", () => this.answer({ ok: false }));
    this.dialog.addEventListener("cancel", (e) => {
      e.preventDefault();
      this.answer({ ok: false });
    });
    this.dialog.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && !this.dialog.matches(":modal")) this.answer({ ok: false });
    });
    this.dialog.addEventListener("close", () => this.show());
  }

  items() {
    return this.waiting[0]?.items ?? [];
  }

  ask(form) {
    if (this.waiting.some((w) => w.id === form.id)) return;
    this.waiting.push(form);
    this.show();
  }

  clear() {
    this.waiting = [];
    this.show();
  }

  show() {
    const now = this.waiting[0];
    if (!now) {
      this.dialog.close();
      return;
    }
    if (this.dialog.open) return;
    set(get("question-title"), line(now.title));
    const list = now.items ?? [];
    get("choices").replaceChildren(...list.map((item, i) => this.choice(item, i, i === (now.current ?? 0))));
    get("line").hidden = get("line-ok").hidden = list.length > 0;
    get("line").value = "";
    if (list.length) this.dialog.showModal();
    else this.dialog.show();
  }

  choice(item, index, current) {
    const button = make("button", current ? "choice current" : "choice", line(item));
    button.type = "button";
    button.autofocus = current;
    button.addEventListener("click", () => this.answer({ ok: true, index }));
    return button;
  }

  async answer(given) {
    const now = this.waiting.shift();
    this.dialog.close();
    if (!now) return;
    try {
      await post("/v1/form", { id: now.id, index: 0, line: "", ...given });
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      this.problem(e.status === 409 ? "already settled: somebody else answered, or its time is over" : e.message);
    }
  }
}
