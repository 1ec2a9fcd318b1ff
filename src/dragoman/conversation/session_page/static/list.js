// All sessions of this user, the latest first: searched in their titles at once, in what was said when Enter is pressed.
import { html, useEffect, useMemo, useRef, useState } from "./preact.js";
import * as source from "./source.js";
import { ago, count, moment, oneLine, plain, short, t, usd } from "./words.js";
import { Windowed } from "./windowed.js";

export function ListPage() {
  const [all, setAll] = useState(null);
  const [fault, setFault] = useState("");
  const [search, setSearch] = useState("");
  const [folder, setFolder] = useState("");
  const [model, setModel] = useState("");
  const [chosen, setChosen] = useState([]);
  const [searches, setSearches] = useState(false);
  const asked = useRef({ words: "", times: 0 }); // what was asked for last: an answer that comes later than the next question is dropped
  const load = (words) => {
    const time = ++asked.current.times;
    asked.current.words = words;
    const take = (found, fault) => time === asked.current.times && (found && setAll(found), setFault(fault), setSearches(false));
    setSearches(Boolean(words));
    source.sessions(words).then((found) => take(found, ""), (error) => take(null, error.message));
  };
  const type = (words) => {
    setSearch(words);
    if (asked.current.words) load("");
  };
  useEffect(() => {
    document.title = "Dragoman";
    load("");
    const again = setInterval(() => document.visibilityState === "visible" && !asked.current.words && load(""), 5000);
    return () => clearInterval(again);
  }, []);
  const sessions = all?.sessions ?? [];
  const folders = useMemo(() => [...new Set(sessions.map((each) => each.workspace))].sort(), [all]);
  const models = useMemo(() => [...new Set(sessions.map((each) => each.model).filter(Boolean))].sort(), [all]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = useMemo(
    () =>
      sessions
        .filter((each) => (!folder || each.workspace === folder) && (!model || each.model === model) && (!each.parent || each.hit))
        .filter((each) => each.hit || words.every((word) => `${each.title} ${each.first_prompt} ${each.workspace} ${each.model} ${each.id}`.toLowerCase().includes(word)))
        .map((each) => ({ ...each, short: each.id, id: each.session_id })),
    [all, search, folder, model],
  );
  const choose = (id) => setChosen((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before, id].slice(-2)));
  const pick = (label, value, set, options) => html`<label>${label} <select value=${value} onChange=${(event) => set(event.target.value)}>
    <option value="">${t("all")}</option>${options.map((each) => html`<option value=${each}>${oneLine(each, 80)}</option>`)}</select></label>`;
  return html`<main><h1>${t("sessions")}</h1>
    <form class="tools" role="search" onSubmit=${(event) => (event.preventDefault(), load(search))}>
      <input type="search" value=${search} onInput=${(event) => type(event.target.value)} placeholder=${t("search_sessions")} aria-label=${t("search_sessions")} />
      ${pick(t("folder"), folder, setFolder, folders)} ${pick(t("model"), model, setModel, models)}
      ${chosen.length === 2 ? html`<a class="button" href=${`#/compare/${chosen.join("/")}`}>${t("compare_two")}</a>` : html`<span class="dim">${t("choose_two")}</span>`}
    </form>
    ${fault && html`<p class="bad" role="alert">${plain(fault)}</p>`}
    <p class="dim" role="status">${all && !searches ? t("sessions_found", { sessions: rows.length }) : t("loading")}</p>
    <${Windowed} rows=${rows} guess=${72} label=${t("sessions")} row=${(each, place) => html`<article class="row session" key=${each.id} data-id=${each.id} aria-posinset=${place + 1} aria-setsize=${rows.length}>
      <input type="checkbox" checked=${chosen.includes(each.id)} onChange=${() => choose(each.id)} aria-label=${t("choose", { title: oneLine(each.title || each.short, 60) })} />
      <div><a class="title" dir="auto" href=${`#/s/${each.id}${each.hit ? `/e/${each.hit.seq}` : ""}`}>${oneLine(each.title || t("untitled"), 200)}</a>
        ${each.hit && html`<p class="text" dir="auto">${oneLine(each.hit.excerpt, 300)}</p>`}
        ${each.run && !["answered", "running"].includes(each.run.state) && html`<p class="last-run">${oneLine(each.run.sentence, 300)}</p>`}
        <p class="facts"><span>${each.short}</span> ${each.run?.state === "running" && html`<span class="live running">${t("state_running")}</span>`} <time title=${moment(each.updated_ms)}>${ago(each.updated_ms)}</time> <bdi>${oneLine(each.model, 60)}</bdi>
          <span>${t("messages", { messages: each.messages })}</span> <span title=${count(each.usage.input_tokens)}>${t("tokens_in", { amount: short(each.usage.input_tokens) })}</span>
          ${each.usd != null && html`<b>${each.usd_is_whole ? "≈" : "≥"} ${usd(each.usd)}</b>`} ${each.fleet && html`<a href=${`#/fleet/${encodeURIComponent(each.fleet)}`}>${oneLine(each.fleet, 60)}</a>`} <bdi class="folder">${oneLine(each.workspace, 120)}</bdi></p></div></article>`} />
  </main>`;
}
