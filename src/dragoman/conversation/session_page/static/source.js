// Where sessions come from: the server, asked with the page's key; or, in an export, the file itself.
import { t } from "./words.js";

const KEY = "dragoman-key";
export const embedded = readEmbedded();

function readEmbedded() {
  const element = document.getElementById("session-data");
  return element ? JSON.parse(element.textContent) : null;
}

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const headers = () => ({ "x-dragoman-key": sessionStorage.getItem(KEY) ?? "" });

async function answerOf(response) {
  const data = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(data.error ?? response.statusText, response.status);
  return data;
}

const ask = (path, options) => fetch(`api/${path}`, options).catch(() => Promise.reject(new Refused(t("no_server"), 0)));

export const get = async (path) => answerOf(await ask(path, { headers: headers() }));

export const post = async (path, body = {}) =>
  answerOf(await ask(path, { method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: JSON.stringify(body) }));

// The token stands behind the `#`, which no server and no log is sent. It is exchanged once, and taken out of the address.
export async function enter(credential) {
  const { key } = await post("key", credential);
  sessionStorage.setItem(KEY, key);
}

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));

export const words = async () => (embedded ? embedded.words : (await fetch("words.json")).json());
export const about = async () => (embedded ? { talk: false, version: embedded.version } : get("about"));

const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined)).toString();
const place = (id) => `sessions/${encodeURIComponent(id)}`;

export const sessions = (search) => get(`sessions?${query({ search })}`);
export const fleets = (name) => get(name ? `fleets/${encodeURIComponent(name)}` : "fleets");
export async function session(id) {
  if (!embedded) return get(place(id));
  if (!embedded.sessions[id]) throw new Refused(embedded.missing, 404);
  return embedded.sessions[id];
}

export async function look(id, what, values = {}) {
  if (!embedded) return get(`${place(id)}/${what}?${query(values)}`);
  const looks = embedded.looks[id] ?? {};
  if (what === "items") return embeddedItems(looks, query(values));
  const found = what === "file" ? looks.file?.find((each) => each.seq === values.seq && each.path === values.path) : (looks[what]?.[query(values)] ?? embeddedRequest(id, what, values));
  if (found === undefined) throw new Refused(embedded.missing, 404);
  return found;
}

// Items of an export name what they share with those of other requests.
function embeddedItems({ items, item_parts: parts, item_own: names }, asked) {
  const found = items?.[asked];
  if (!found) throw new Refused(embedded.missing, 404);
  return { ...found, items: found.items.map(([part, ...own]) => ({ ...parts[part], ...Object.fromEntries(own.map((value, place) => [names[place], value])) })) };
}

// Requests of an export say only where they differ from the one before them.
function embeddedRequest(id, what, values) {
  const list = what === "request" ? embedded.looks[id]?.requests?.[values.to ?? ""] : undefined;
  if (!list) return undefined;
  let body = "";
  for (const each of list) {
    body = body.slice(0, each.keep) + each.text + (each.end ? body.slice(-each.end) : "");
    if (String(each.seq) === String(values.seq)) return { ...each.head, body };
  }
  return undefined;
}

export async function imageUrl(id, sha256) {
  if (embedded) return embedded.images[sha256];
  const response = await fetch(`api/${place(id)}/blob/${sha256}`, { headers: headers() });
  return response.ok ? URL.createObjectURL(await response.blob()) : undefined;
}

// Lines of JSON as they come, until `stop` is called. Lost connections are tried again from where they broke. A page that is not seen
// gives its own back until it is: a browser opens six to one server, and the seventh page would wait for ever.
export function follow(path, onLines, onState = () => {}) {
  const control = new AbortController();
  let connection = new AbortController();
  const rest = () => document.visibilityState === "hidden" && connection.abort();
  document.addEventListener("visibilitychange", rest, { signal: control.signal });
  control.signal.addEventListener("abort", () => connection.abort());
  (async () => {
    for (let wait = 300; !control.signal.aborted; wait = Math.min(wait * 2, 5000)) {
      await untilSeen(control.signal);
      connection = new AbortController();
      try {
        const response = await fetch(`api/${path()}`, { headers: headers(), signal: connection.signal });
        if (!response.ok) throw new Refused("", response.status);
        onState("live");
        wait = 300;
        await readLines(response.body.getReader(), onLines);
      } catch (error) {
        if (control.signal.aborted) return;
        if (connection.signal.aborted) continue;
        if (error.status === 401 || error.status === 404) return onState("ended");
      }
      onState("lost");
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  })();
  return () => control.abort();
}

async function untilSeen(signal) {
  while (document.visibilityState === "hidden" && !signal.aborted)
    await new Promise((seen) => {
      document.addEventListener("visibilitychange", seen, { once: true, signal });
      signal.addEventListener("abort", seen, { once: true });
    });
}

async function readLines(reader, onLines) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    const found = lines.filter(Boolean).map((line) => JSON.parse(line)).filter((each) => each.kind !== "ping");
    if (found.length) onLines(found);
  }
}

export const followSession = (id, state, onLines, onState) =>
  embedded ? () => {} : follow(() => `${place(id)}/events?${query({ after: state.seq, generation: state.generation })}`, onLines, onState);
