// The list of conversations.
import { Refused, post, newID, read } from "./api.js";
import { get, line, make, set } from "./text.js";

const page = 50;

export class Sessions {
  constructor() {
    this.dialog = get("sessions");
    get("open-sessions").addEventListener("click", () => this.open());
    get("close-sessions").addEventListener("click", () => this.dialog.close());
    get("new-session").addEventListener("click", () => this.change("/v1/session/new", { request_id: newID() }));
  }

  async open() {
    set(get("sessions-error"), "");
    get("session-list").replaceChildren();
    this.dialog.showModal();
    await this.tried(() => this.list(0));
  }

  async list(from) {
    for (let n = from; n < from + page; n++) {
      const s = await read(`/v1/sessions?after=${n}`);
      if (s.event === "none") return;
      get("session-list").append(this.entry(s));
    }
    const more = make("button", "choice", "more …");
    more.type = "button";
    more.addEventListener("click", () => {
      more.remove();
      this.tried(() => this.list(from + page));
    });
    get("session-list").append(more);
  }

  entry(s) {
    const button = make("button", s.current ? "choice current" : "choice");
    button.type = "button";
    button.append(make("strong", "", line(s.title) || (s.empty ? "nothing said yet" : s.id)), make("span", "", `${s.current ? "current · " : ""}${line(s.model)}`));
    button.addEventListener("click", () => this.change("/v1/session/select", { id: s.id }));
    return button;
  }

  // change has the server take another conversation; the stream tells of it.
  change(path, body) {
    return this.tried(async () => {
      await post(path, body);
      this.dialog.close();
    });
  }

  async tried(f) {
    try {
      await f();
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      set(get("sessions-error"), e.status === 409 ? `${e.message}: wait for its end, or stop it first` : e.message);
    }
  }
}
