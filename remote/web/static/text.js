// Text on its way to the screen. Every text passes plain, and reaches the document as
// text: nothing here makes markup of it.
import { hidden } from "./hidden.js";

const point = (n) => `\\u{${n.toString(16)}}`;
const ranges = hidden.map(([first, last]) => `${point(first)}-${point(last)}`).join("");
const risky = new RegExp(`[${ranges}\\p{Cn}\\p{Cs}]`, "gu");

function named(c) {
  const n = c.codePointAt(0);
  if (n === 0x0d) return "\\r";
  const hex = n.toString(16);
  return n < 0xa0 ? `\\x${hex.padStart(2, "0")}` : `<U+${hex.toUpperCase().padStart(4, "0")}>`;
}

// plain names every character that would act, hide or reorder.
export function plain(text) {
  return String(text ?? "").replaceAll("\r\n", "\n").replace(risky, named);
}

// line is plain text on one line.
export function line(text) {
  return plain(String(text ?? "").replaceAll("\t", " ").replace(/\r?\n/g, "⏎"));
}

// set replaces what stands in an element.
export function set(node, text) {
  node.textContent = plain(text);
  return node;
}

// make makes an element with a class and a text.
export function make(tag, className = "", text = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  return set(node, text);
}

const mostShown = 200000; // characters of one text

// Flow is a text that grows. What is too long for a page is counted and left out.
export class Flow {
  constructor(node) {
    this.text = document.createTextNode("");
    this.node = node;
    this.left = 0;
    node.append(this.text);
  }

  add(text) {
    const room = mostShown - this.text.length;
    const safe = plain(text);
    if (room > 0) this.text.appendData(safe.slice(0, room));
    if (safe.length <= room) return;
    this.left += safe.length - Math.max(room, 0);
    if (!this.more) {
      this.more = make("p", "note");
      this.node.after(this.more);
    }
    set(this.more, `… ${this.left} more characters are not shown here`);
  }

  get empty() {
    return this.text.length === 0;
  }
}

export const get = (id) => document.getElementById(id);
