// One session: its head, its timeline, and the views beside it. It grows while somebody writes it.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { Blocks, isAnswer, rowsOf, totalsOf } from "./blocks.js";
import { ContextView } from "./context.js";
import { FilesView } from "./files.js";
import { FOLDED, Row, Split } from "./rows.js";
import { RequestView } from "./request.js";
import * as source from "./source.js";
import { count, moment, oneLine, plain, seconds, t } from "./words.js";
import { Windowed } from "./windowed.js";

// Loads a session and follows it; the same object for as long as the page is at it.
export function useSession(id, onEvents) {
  const [found, setFound] = useState(null);
  const [fault, setFault] = useState("");
  const [version, setVersion] = useState(0);
  const [state, setState] = useState("");
  const [running, setRunning] = useState(false);
  useEffect(() => {
    let stop = () => {};
    let ended = false;
    const open = async () => {
      try {
        const data = await source.session(id);
        if (ended) return;
        const blocks = new Blocks(data.blocks);
        Object.assign(blocks, { seq: data.seq, generation: data.generation });
        setFound({ ...data, blocks });
        setRunning(Boolean(data.running));
        setFault("");
        stop = source.followSession(
          id,
          blocks,
          (events) => {
            if (events.some((event) => event.kind === "anew")) return stop(), open();
            blocks.take(events);
            const told = events.findLast((event) => event.kind === "state");
            if (told) setRunning(told.running);
            setVersion((before) => before + 1);
            onEvents?.(events);
          },
          setState,
        );
      } catch (error) {
        if (!ended) setFault(error.message);
      }
    };
    open();
    return () => ((ended = true), stop());
  }, [id]);
  return { found, fault, version, state, running };
}

export function SessionPage({ id, view, params, about }) {
  const { found, fault, version, state, running } = useSession(id);
  useEffect(() => void (document.title = `${oneLine(found?.title || id, 80)} · Dragoman`), [found]);
  if (fault) return html`<main><p class="bad" role="alert">${plain(fault)}</p></main>`;
  if (!found) return html`<main aria-busy="true"><p class="dim">${t("loading")}</p></main>`;
  const blocks = found.blocks;
  const session = { ...found, key: id, version, running };
  blocks.running = running;
  const tabs = [["", t("timeline")], ["context", t("context")], ["files", t("files")]];
  return html`<main>
    <${Head} session=${session} state=${state} version=${version} />
    <nav class="tabs" aria-label=${t("views")}>${tabs.map(
      ([name, label]) => html`<a href=${`#/s/${id}${name && `/${name}`}`} aria-current=${(view[0] ?? "") === name ? "page" : undefined}>${label}</a>`,
    )}${about.talk && html`<a href=${`#/talk/${id}`}>${t("go_on")}</a>`}</nav>
    ${view[0] === "r" && html`<${RequestView} session=${session} seq=${Number(view[1])} params=${params} />`}
    ${view[0] === "context" && html`<${ContextView} session=${session} />`}
    ${view[0] === "files" && html`<${FilesView} session=${session} params=${params} />`}
    ${!["r", "context", "files"].includes(view[0]) && html`<${Timeline} session=${session} version=${version} entry=${view[0] === "e" ? view[1] : ""} />`}
  </main>`;
}

function Head({ session, state }) {
  const facts = session.blocks.get("session")?.data ?? {};
  const totals = totalsOf(session.blocks);
  const whole = { fresh_tokens: totals.fresh, cache_read_tokens: totals.read, cache_write_tokens: totals.write, output_tokens: totals.output, usd: totals.usd };
  const plan = session.blocks.get("plan")?.data.items ?? [];
  return html`<section class="head" data-connection=${state}>
    <h1 dir="auto">${oneLine(facts.title || session.title || t("untitled"))}</h1>
    <p class="facts"><bdi>${plain(facts.model)}</bdi> · <bdi>${plain((facts.directories ?? [])[0] ?? "")}</bdi> · ${moment(facts.started_ms)}
      ${facts.imported_from && html` · ${t("imported", { from: oneLine(facts.imported_from) })}`}
      ${facts.parent && html` · <a href=${`#/s/${facts.parent}`}>${t("called_by")}</a>`}
      ${session.running && html` · <span class="live running" role="status">${t("state_running")}</span>`}
      ${state && state !== "live" && html` · <span class=${`live ${state}`} role="status">${t(`live_${state}`)}</span>`}</p>
    ${lastRun(session) && html`<p class="last-run">${oneLine(lastRun(session))}</p>`}
    ${totals.requests > 0 && html`<div class="facts"><${Split} used=${whole} /> <span>${t("requests", { requests: totals.requests })} · ${t("calls", { calls: totals.calls })}
      ${totals.lastMs > totals.firstMs && ` · ${seconds(totals.lastMs - facts.started_ms)}`}${!totals.isWhole && ` · ${t("cost_least")}`}</span></div>`}
    ${session.damaged > 0 && html`<p class="bad">${t("damaged", { lines: session.damaged })}</p>`}
    ${plan.length > 0 && html`<details class="plan"><summary>${t("plan", { items: plan.length })}</summary>
      <ul>${plan.map((item) => html`<li>${PLAN_MARKS[item.status] ?? "☐"} ${plain(item.content ?? item.text ?? "")}</li>`)}</ul></details>`}
  </section>`;
}

// How the last run stands, where it did not end with its answer: an export says what was so when it was written.
const lastRun = (session) => session.last_run ?? (session.running ? "" : session.blocks.get("session")?.data.run?.sentence);

const PLAN_MARKS = { completed: "☑", in_progress: "◐" };

const isTyping = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element?.tagName);

// What rows need to know of where they stand.
function placeOf(session, open, toggle) {
  return {
    id: session.key,
    blocks: session.blocks,
    children: session.children ?? [],
    inside: (id) => [...session.blocks.byId.values()].filter((block) => block.inside === id && block.kind !== "status"),
    isOpen: (id) => open.has(id),
    toggle,
    link: (rest) => `#/s/${session.key}/${rest}`,
    load: loadInner,
  };
}

async function loadInner(id) {
  const data = await source.session(id);
  const session = { ...data, key: id, blocks: new Blocks(data.blocks) };
  const open = new Set();
  return { rows: rowsOf(session.blocks).filter((block) => !FOLDED.has(block.kind) || block.kind === "call"), at: placeOf(session, open, () => {}) };
}

const holds = (block, words) => {
  const text = `${block.text} ${block.data?.arguments ?? ""} ${block.data?.output ?? ""} ${block.data?.name ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
};

export function Timeline({ session, version, entry, question, follows }) {
  const [open, setOpen] = useState(() => new Set());
  const [search, setSearch] = useState("");
  const [selected, setSelected] = useState("");
  const [goTo, setGoTo] = useState(null);
  const field = useRef(null);
  const now = useRef(""); // what is selected, before it is drawn: keys come faster
  const all = useMemo(() => rowsOf(session.blocks), [session.blocks, version]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = useMemo(() => (words.length ? all.filter((block) => holds(block, words)) : all), [all, search]);
  const leaveEnd = useEndInSight(follows, all.findLast((block) => block.kind === "prompt")?.id); // its answer may come with it
  const toggle = (id) => {
    leaveEnd();
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  };
  const at = { ...placeOf(session, open, toggle), question };
  const select = (id) => {
    now.current = id;
    setSelected(id);
  };
  // Back leads to where one was.
  const leave = (block) => !follows && entryOf(block) && history.replaceState(null, "", `#/s/${session.key}/e/${entryOf(block)}`);
  const show = (place, centre) => {
    const block = rows[Math.max(0, Math.min(place, rows.length - 1))];
    if (!block) return;
    select(block.id);
    setGoTo({ place: rows.indexOf(block), centre });
  };
  useEffect(() => {
    if (!goTo || !selected) return;
    const focus = () => isTyping(document.activeElement) || document.querySelector(`[data-id="${CSS.escape(selected)}"]`)?.focus({ preventScroll: true });
    requestAnimationFrame(focus); // by then somebody may be typing
  }, [goTo]);
  useEffect(() => {
    if (!entry) return;
    const own = rows.findIndex((block) => block.id === entry);
    const place = own >= 0 ? own : rows.findIndex((block) => (block.data?.seq ?? 0) >= Number(entry));
    show(place < 0 ? rows.length - 1 : place, true);
  }, [entry]);
  // Before anything is painted: a key that is pressed as soon as the rows are seen is heard.
  useLayoutEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target)) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      const at = rows.findIndex((block) => block.id === now.current);
      const block = rows[at];
      const act = {
        j: () => show(at + 1),
        k: () => show(at < 0 ? 0 : at - 1),
        g: () => show(0),
        G: () => show(rows.length - 1),
        n: () => show(nextOf(rows, at, 1)),
        p: () => show(nextOf(rows, at, -1)),
        o: () => block && FOLDED.has(block.kind) && toggle(block.id),
        e: () => setOpen(new Set(open.size ? [] : rows.filter((each) => each.kind === "call").map((each) => each.id))),
        r: () => block && (leave(block), (location.hash = `#/s/${session.key}/r/${requestOf(session.blocks, block)}`)),
        y: () => block && copyLink(session.key, block),
        "/": () => field.current?.focus(),
      }[event.key];
      if (act) event.preventDefault(), act();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return html`<div class="timeline">
    <div class="tools"><input type="search" ref=${field} value=${search} onInput=${(event) => setSearch(event.target.value)} placeholder=${t("search_here")} aria-label=${t("search_here")} />
      <span class="dim" role="status">${words.length ? t("found", { rows: rows.length }) : t("rows", { rows: rows.length })}</span></div>
    <${Windowed} rows=${rows} goTo=${goTo} label=${t("timeline")} row=${(block, place) => html`<article key=${block.id} data-id=${block.id} aria-posinset=${place + 1} aria-setsize=${rows.length}
      class=${`row ${block.kind} ${block.data?.taken_back ? "gone-back" : ""} ${block.id === selected ? "selected" : ""}`} tabindex="-1" onMouseDown=${() => select(block.id)}
      onClick=${(event) => event.target.closest("a[href^='#/']:not(.permalink)") && leave(block)}>
      ${block.data?.seq && !isPart(block) && html`<a class="permalink" href=${`#/s/${session.key}/e/${entryOf(block)}`} title=${t("permalink", { seq: block.data.seq })}>${block.data.seq}</a>`}
      ${block.data?.taken_back && html`<small class="dim">${t("taken_back")}</small>`}
      <${Row} block=${block} at=${at} /></article>`} />
  </div>`;
}

// Keeps the end of the page in sight while it grows, until the person scrolls up; a new prompt leads back to it.
function useEndInSight(follows, prompt) {
  const isAtEnd = useRef(true);
  const goToEnd = () => follows && isAtEnd.current && scrollTo(0, document.documentElement.scrollHeight);
  useEffect(() => {
    if (!follows) return;
    let before = { y: scrollY, height: 0 };
    const note = () => {
      const now = { y: scrollY, height: document.documentElement.scrollHeight };
      if (now.height - innerHeight - now.y < 40) isAtEnd.current = true;
      else if (now.y < before.y && now.height === before.height) isAtEnd.current = false; // or rows above it were measured
      before = now;
    };
    const grown = new ResizeObserver(goToEnd);
    grown.observe(document.body);
    addEventListener("scroll", note, { passive: true });
    return () => (grown.disconnect(), removeEventListener("scroll", note));
  }, []);
  useEffect(() => {
    if (prompt) isAtEnd.current = true;
    goToEnd();
  }, [prompt]);
  return () => void (isAtEnd.current = false);
}

// An answer and its calls are one entry: a call is named by its block.
const entryOf = (block) => (block.kind === "call" ? block.id : (block.data?.seq ?? 0));
const isPart = (block) => block.kind === "text" || block.kind === "thought";

function nextOf(rows, at, step) {
  let place = at + step;
  while (place >= 0 && place < rows.length && rows[place].kind !== "prompt") place += step;
  return rows[place] ? place : at;
}

// The request that a row belongs to: its answer's own, the next one that was answered, or else the one that comes next.
function requestOf(blocks, block) {
  const id = isAnswer(block) ? block.id : block.data?.answer;
  const own = blocks.get(`${id}.usage`)?.data.seq;
  return own ?? blocks.answered().find((each) => each.data.seq > (block.data?.seq ?? 0))?.data.seq ?? blocks.lastSeq() + 1;
}

function copyLink(id, block) {
  const link = `#/s/${id}/e/${entryOf(block)}`;
  history.replaceState(null, "", link);
  navigator.clipboard?.writeText(location.href).catch(() => {});
}
