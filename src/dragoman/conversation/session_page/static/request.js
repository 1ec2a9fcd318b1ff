// What the model was told at one entry: item by item, to the byte, and what was new in it.
import { html, useEffect, useLayoutEffect, useMemo, useState } from "./preact.js";
import { compareLines, onlyChanges, Unified } from "./diff.js";
import * as source from "./source.js";
import { count, drawable, oneLine, partsOf, plain, short, t, usd } from "./words.js";

const PROTOCOLS = ["", "gemini", "openai_chat", "openai_responses", "anthropic"];
const VIEWS = ["items", "body", "pretty", "difference"];

export function RequestView({ session, seq, params }) {
  const to = PROTOCOLS.includes(params.get("to")) ? params.get("to") : "";
  const view = VIEWS.includes(params.get("view")) ? params.get("view") : "items";
  const answered = session.blocks.answered();
  const around = (number) => [answered.findLast(({ data }) => data.seq < number)?.data.seq, answered.find(({ data }) => data.seq > number)?.data.seq];
  const [before, after] = around(seq);
  const link = (more, number = seq) => `#/s/${session.key}/r/${number}?${new URLSearchParams({ to, view, ...more })}`;
  useLayoutEffect(() => {
    const now = { seq, view }; // where keys have led to, before it is drawn: they come faster
    const go = (more) => {
      Object.assign(now, more);
      location.hash = link({ view: now.view }, now.seq);
    };
    const onKey = (event) => {
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      const [earlier, later] = around(now.seq);
      if (event.key === "[" && earlier) go({ seq: earlier });
      if (event.key === "]" && later) go({ seq: later });
      if (event.key === "Escape") location.hash = `#/s/${session.key}/e/${now.seq}`;
      const place = Number(event.key) - 1;
      if (VIEWS[place]) go({ view: VIEWS[place] });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return html`<section class="request">
    <h2>${t("request_before", { seq })}</h2>
    <p class="tools"><a class="button" href=${`#/s/${session.key}/e/${seq}`}>${t("to_timeline")}</a>
      ${before && html`<a class="button" href=${link({}, before)}>← ${t("request_earlier")}</a>`}
      ${after && html`<a class="button" href=${link({}, after)}>${t("request_later")} →</a>`}</p>
    <nav class="tabs" aria-label=${t("views")}>${VIEWS.map((name) => html`<a href=${link({ view: name })} aria-current=${name === view ? "page" : undefined}>${t(`view_${name}`)}</a>`)}</nav>
    ${view !== "items" && html`<nav class="tabs small" aria-label=${t("protocols")}>${PROTOCOLS.map(
      (name) => html`<a href=${link({ to: name })} aria-current=${name === to ? "page" : undefined}>${name || t("own_service")}</a>`,
    )}</nav>`}
    ${view === "items" && html`<${Items} session=${session} seq=${seq} />`}
    ${view === "body" && html`<${Body} session=${session} seq=${seq} to=${to} />`}
    ${view === "pretty" && html`<${Body} session=${session} seq=${seq} to=${to} pretty />`}
    ${view === "difference" && html`<${Difference} session=${session} seq=${seq} before=${before} to=${to} />`}
  </section>`;
}

// What is asked of the source: loading, found, or why not. With `keeps`, what was found stays until there is more.
export function useLook(id, what, values, depends, keeps) {
  const [state, setState] = useState({});
  useEffect(() => {
    let ended = false;
    if (!keeps) setState({});
    if (values) source.look(id, what, values).then((found) => ended || setState({ found }), (error) => ended || setState({ fault: error.message }));
    return () => void (ended = true);
  }, depends);
  return state;
}

export const Waiting = ({ state }) => (state.fault ? html`<p class="bad" role="alert">${plain(state.fault)}</p>` : html`<p class="dim" aria-busy="true">${t("loading")}</p>`);

function Items({ session, seq }) {
  const state = useLook(session.key, "items", { seq }, [session.key, seq]);
  if (!state.found) return html`<${Waiting} state=${state} />`;
  const { items, tokens, window, model, is_answered: answered } = state.found;
  const most = Math.max(...items.map((item) => item.tokens), 1);
  return html`<p class="facts">${t("items_head", { model: oneLine(model), tokens, percent: window ? Math.round((100 * tokens) / window) : "?", window: count(window) })}
      ${!answered && ` ${t("items_expected")}`}</p>
    <div class="wide" tabindex="0"><table class="items"><thead><tr><th>${t("entry")}</th><th>${t("kind")}</th><th>${t("tokens")}</th><th>${t("cached")}</th><th>${t("cost_so_far")}</th><th>${t("what")}</th></tr></thead>
    <tbody>${items.map((item) => html`<tr class=${item.state}>
      <td>${item.seq ? html`<a href=${`#/s/${session.key}/e/${item.seq}`}>${item.seq}</a>` : ""}</td>
      <td>${t(`kind_${item.kind}`)} <small><bdi>${oneLine(item.name, 60)}</bdi></small></td>
      <td class="number">${count(item.tokens)}${item.whole > item.tokens && html`<small> / ${short(item.whole)}</small>`}
        <span class="bar"><i class="read" style=${{ width: `${(100 * item.tokens * item.cached) / most}%` }}></i><i class="fresh" style=${{ width: `${(100 * item.tokens * (1 - item.cached)) / most}%` }}></i></span></td>
      <td class="number">${item.tokens ? `${Math.round(100 * item.cached)}%` : ""}</td>
      <td class="number">${item.usd == null ? "" : usd(item.usd)}</td>
      <td>${item.state !== "kept" && html`<b>${t(`item_${item.state}`)}</b> `}${item.why && html`<span class="dim">${plain(item.why)} </span>`}
        ${item.by_seq > 0 && html`<a href=${`#/s/${session.key}/e/${item.by_seq}`}>${item.by_seq}</a>`}${item.held && html`<b>${t("held")}</b>`} <bdi>${plain(item.about)}</bdi></td></tr>`)}
    </tbody></table></div>`;
}

const prettyOf = (body) => {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
};

// To the byte; what would reorder the line or cannot be seen shows its number and acts on nothing around it.
const sign = (part) => html`<bdi class="hidden-sign" data-sign=${part.codePointAt(0).toString(16)}>${part}</bdi>`;
const text = (part) => drawable(part).map((each, _, all) => (all.length > 1 ? html`<bdi>${each}</bdi>` : each));
const exact = (body) => partsOf(body).map((part, place) => (place % 2 ? sign(part) : text(part)));

function Body({ session, seq, to, pretty }) {
  const state = useLook(session.key, "request", { seq, to }, [session.key, seq, to]);
  if (!state.found) return html`<${Waiting} state=${state} />`;
  const { method, url, headers, body } = state.found;
  return html`<p class="facts"><code>${method} ${plain(url)}</code> · ${t("bytes", { bytes: new TextEncoder().encode(body).length })}
      <button onClick=${() => navigator.clipboard?.writeText(body)}>${t("copy")}</button></p>
    <details><summary>${t("headers")}</summary><dl class="arguments">${Object.entries(headers).map(([name, value]) => html`<dt>${plain(name)}</dt><dd>${plain(value)}</dd>`)}</dl></details>
    <pre class="code exact" tabindex="0" role="group" aria-label=${t(pretty ? "view_pretty" : "view_body")}>${pretty ? plain(prettyOf(body)) : exact(body)}</pre>`;
}

function Difference({ session, seq, before, to }) {
  const now = useLook(session.key, "request", { seq, to }, [session.key, seq, to]);
  const then = useLook(session.key, "request", before ? { seq: before, to } : null, [session.key, before, to]);
  const pairs = useMemo(() => now.found && (then.found || !before) && compareLines(before ? prettyOf(then.found.body).split("\n") : [], prettyOf(now.found.body).split("\n")), [now, then]);
  if (!pairs) return html`<${Waiting} state=${now.fault ? now : then} />`;
  const changed = pairs.filter(([sign]) => sign !== " ").length;
  return html`<p class="facts">${before ? t("difference_to", { seq: before, lines: changed }) : t("first_request")}</p><${Unified} pairs=${onlyChanges(pairs).slice(0, 5000)} />`;
}
