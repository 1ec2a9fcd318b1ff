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

export const moment = (ms) => (ms ? new Date(ms).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" }) : "");
export const clock = (ms) => (ms ? new Date(ms).toLocaleTimeString(locale()) : "");

export function ago(ms) {
  if (!ms) return "";
  const past = Math.max(0, (Date.now() - ms) / 1000);
  const form = new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" });
  for (const [unit, length] of [["year", 31556952], ["month", 2629746], ["day", 86400], ["hour", 3600], ["minute", 60]])
    if (past >= length) return form.format(-Math.floor(past / length), unit);
  return form.format(-Math.floor(past), "second");
}

// What changes the direction of text or cannot be seen is shown by its number: a name cannot pretend to be another.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
export const plain = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, (sign) => `⟨${sign.codePointAt(0).toString(16)}⟩`);
export const oneLine = (text, most = 300) => plain(text).replace(/\s+/g, " ").slice(0, most);
