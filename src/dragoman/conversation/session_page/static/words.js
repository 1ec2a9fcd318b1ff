// Sentences in the program's language, numbers, times, and text made harmless to look at.
let table = {};
let lang = "en";

export function setWords(found) {
  table = found.words;
  lang = found.lang;
  document.documentElement.lang = lang === "zh" ? "zh-CN" : lang;
}

// Fills `{name}`, `{name:,}` and `{count:entry|entries}` in, as the program does.
export function t(key, values = {}) {
  const text = table[key] ?? key;
  return text.replace(/\{(\w+)(?::([^}]*))?\}/g, (_, name, form) => {
    const value = values[name] ?? "";
    if (form === undefined) return String(value);
    if (!form.includes("|")) return count(value); // `{name:,}`
    const [one, many] = form.replace(/^\//, "").split("|");
    const noun = Number(value) === 1 ? one : many;
    return form.startsWith("/") ? noun : `${count(value)} ${noun}`;
  });
}

const locale = () => (lang === "zh" ? "zh-CN" : "en");

export const count = (number) => (number == null ? "?" : Number(number).toLocaleString(locale()));

// 1,234 → 1.2k
export function short(number) {
  if (number == null) return "?";
  if (number < 1000) return String(Math.round(number));
  return number < 1e6 ? `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)}k` : `${(number / 1e6).toFixed(1)}M`;
}

export function usd(amount) {
  if (amount == null) return "";
  if (amount > 0 && amount < 0.0001) return "<$0.0001";
  return `$${amount.toFixed(amount >= 10 ? 2 : 4)}`;
}

export function seconds(ms) {
  if (ms == null || ms < 0) return "";
  if (ms < 10000) return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)}\u00a0s`;
  const whole = Math.round(ms / 1000);
  return whole < 60 ? `${whole}\u00a0s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}\u00a0min`;
}

const isTime = (ms) => ms && Math.abs(ms) <= 8.64e15; // what a Date can be

export const moment = (ms) => (isTime(ms) ? new Date(ms).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" }) : "");
export const clock = (ms) => (isTime(ms) ? new Date(ms).toLocaleTimeString(locale()) : "");

export function ago(ms) {
  if (!isTime(ms)) return "";
  const past = Math.max(0, (Date.now() - ms) / 1000);
  const form = new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" });
  for (const [unit, length] of [["year", 31556952], ["month", 2629746], ["day", 86400], ["hour", 3600], ["minute", 60]])
    if (past >= length) return form.format(-Math.floor(past / length), unit);
  return form.format(-Math.floor(past), "second");
}

// What changes the direction of text or cannot be seen is shown by its number: a name cannot pretend to be another. The same as in the
// terminal; joiners and variation selectors stay where they shape the sign before them.
const HIDDEN =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const SHAPED = /[^\0-\x7f][\u200c\u200d\ufe0e\ufe0f]|[0-9#*]\ufe0f/u;
export const isHidden = (text) => text.search(HIDDEN) >= 0;

function signOf(sign, at, text) {
  const before = text.codePointAt(at - 2) > 0xffff ? at - 2 : at - 1;
  const shaped = at > 0 && SHAPED.test(text.slice(before, at + 1)) && (!isHidden(text.slice(before, at)) || (text[before] === "\ufe0f" && sign === "\u200d"));
  return shaped ? sign : `⟨${sign.codePointAt(0).toString(16)}⟩`;
}
// Browsers take quadratic time to draw one sign with very many marks upon it: each so many of them stand on a circle of their own.
const MANY_MARKS = /\p{M}{32}(?=\p{M})/gu;
export const plain = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, signOf).replace(MANY_MARKS, "$&\u25cc");
// The same for a text that must stay as it is to the byte: in parts, of which every other one is hidden, and those without too many marks.
export const partsOf = (text) => text.split(new RegExp(`(${HIDDEN.source})`, "u"));
export const drawable = (text) => (text.search(MANY_MARKS) < 0 ? [text] : text.match(/[^]*?\p{M}{32}|[^]+/gu));
export const oneLine = (text, most = 300) => plain(text).replace(/\s+/g, " ").slice(0, most);
