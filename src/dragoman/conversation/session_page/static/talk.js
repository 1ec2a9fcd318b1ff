// A conversation: its timeline as it happens, the questions that wait for an answer, and what a person writes.
import { html, useEffect, useRef, useState } from "./preact.js";
import { Blocks } from "./blocks.js";
import { isDiff, ShownDiff } from "./diff.js";
import { useNarrow } from "./files.js";
import { Code } from "./rows.js";
import { Timeline } from "./session.js";
import * as source from "./source.js";
import { oneLine, plain, t, usd } from "./words.js";

export function TalkPage({ rest, about }) {
  return rest[0] ? html`<${Talk} key=${rest[0]} id=${rest[0]} />` : html`<${Beginning} about=${about} />`;
}

function Beginning({ about }) {
  const [choices, setChoices] = useState(null);
  const [model, setModel] = useState("");
  const [fault, setFault] = useState("");
  useEffect(() => void source.post("talk/choices").then(setChoices, (error) => setFault(error.message)), []);
  const open = (event) => {
    event.preventDefault();
    setFault("");
    source.post("talk/open", { model }).then((state) => (location.hash = `#/talk/${state.session_id}`), (error) => setFault(error.message));
  };
  return html`<main><h1>${t("talk")}</h1>${fault && html`<p class="bad" role="alert">${plain(fault)}</p>`}
    <form class="tools" onSubmit=${open}><button>${t("talk_new", { folder: oneLine(about.folder, 80) })}</button><${ModelField} models=${choices?.models ?? []} value=${model} set=${setModel} /></form>
    ${choices?.open.length > 0 && html`<h2>${t("talk_open")}</h2><ul>${choices.open.map((each) => html`<li><a href=${`#/talk/${each.session_id}`}>${oneLine(each.title || each.session_id)}</a></li>`)}</ul>`}
  </main>`;
}

const ModelField = ({ models, value, set }) => html`<label>${t("model")} <input list="models" value=${value} onChange=${(event) => set(event.target.value)} /></label>
  <datalist id="models">${models.map((name) => html`<option value=${name}></option>`)}</datalist>`;

function Talk({ id }) {
  const [talk, setTalk] = useState(null);
  const [fault, setFault] = useState("");
  const [live, setLive] = useState("");
  const [, setVersion] = useState(0);
  const [choices, setChoices] = useState({ models: [], modes: [], efforts: [], commands: [] });
  const last = useRef(Promise.resolve());
  useEffect(() => {
    let stop = () => {};
    let ended = false;
    const blocks = new Blocks();
    const begin = async () => {
      try {
        const state = await source.post("talk/open", { session: id });
        if (state.session_id !== id) return location.replace(`#/talk/${state.session_id}`);
        setTalk({ blocks, state });
        setChoices(await source.post("talk/choices"));
        if (ended) return;
        stop = source.follow(() => `talk/${id}/events?after=${blocks.seq}`, (events) => {
          blocks.take(events);
          const state = events.findLast((event) => event.kind === "state");
          if (state) setTalk({ blocks, state });
          setVersion(blocks.version);
        }, setLive);
      } catch (error) {
        setFault(error.message);
      }
    };
    begin();
    return () => ((ended = true), stop());
  }, [id]);
  if (!talk) return html`<main><p class=${fault ? "bad" : "dim"} role=${fault && "alert"}>${plain(fault) || t("loading")}</p></main>`;
  const { blocks, state } = talk;
  const facts = blocks.get("session")?.data ?? {};
  const post = (what, body) => source.post(`talk/${id}/${what}`, body).then((found) => (setFault(""), found), (error) => setFault(error.message));
  // One after the other, in the order in which they were done. A stop waits for nothing.
  const act = (what, body) => (what === "cancel" ? post(what, body) : (last.current = last.current.then(() => post(what, body))));
  const waiting = blocks.get("waiting")?.data.items ?? [];
  const questions = blocks.all("question").filter((block) => block.state === "waiting" && block.data.question);
  return html`<main class="talk"><section class="head"><h1 dir="auto">${oneLine(facts.title || t("talk"))}</h1>
      <p class="facts"><bdi>${plain(state.folder)}</bdi> · <a href=${`#/s/${id}`}>${t("timeline")}</a> ${state.busy && html`· <span class="live running" role="status">${t("state_running")}</span>`}
        ${live && live !== "live" && html`· <span class=${`live ${live}`} role="status">${t(`live_${live}`)}</span>`}
        ${state.cost_usd != null && html` · ${t("cost_so_far_of", { amount: usd(state.cost_usd) })}`}</p>
      ${state.notices.map((notice) => html`<p class="note">${plain(notice)}</p>`)}</section>
    <${Timeline} session=${{ key: id, blocks, children: [] }} version=${blocks.version} follows />
    <div class="composer">
      ${questions.map((block) => html`<${Question} key=${block.data.question.id} question=${block.data.question} answer=${(body) => act("answer", body)} />`)}
      ${fault && html`<p class="bad" role="alert">${plain(fault)}</p>`}
      ${waiting.length > 0 && html`<ul class="facts">${waiting.map((each) => html`<li>${t("waiting")} ${oneLine(each.text, 200)}
        <button onClick=${() => act("take_back", { id: each.id })}>${t("take_back")}</button></li>`)}</ul>`}
      <${Composer} state=${state} act=${act} choices=${choices} busy=${blocks.get("retry")?.text || blocks.get("prompt_read")?.text} />
    </div></main>`;
}

// Enter sends, Shift-Enter begins a line. During a run it waits for the end of it, or steers.
function Composer({ state, act, choices, busy }) {
  const [text, setText] = useState("");
  const [address, setAddress] = useState("");
  const field = useRef(null);
  const narrow = useNarrow();
  const send = async (when) => {
    if (!text.trim()) return;
    setText(""); // at once: Enter that is pressed twice sends once
    if (!(await act("send", { text, when }))) setText((now) => now || text);
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(state.busy && event.ctrlKey ? "steer" : "next");
  };
  const pick = (key, value, values, name = (each) => each) => html`<label>${t(key)} <select value=${value} onChange=${(event) => act("set", { key, value: event.target.value })}>
    ${!values.includes(value) && html`<option value=${value}>${name(value)}</option>`}${values.map((each) => html`<option value=${each}>${name(each)}</option>`)}</select></label>`;
  const offered = /^\/\S*$/.test(text) ? choices.commands.filter((row) => row.name.startsWith(text)).slice(0, 8) : [];
  return html`<form onSubmit=${(event) => (event.preventDefault(), send("next"))}>
    ${offered.length > 0 && html`<ul class="facts">${offered.map((row) => html`<li><button type="button" onClick=${() => (setText(`${row.name} `), field.current.focus())}>${row.usage}</button> ${row.about}</li>`)}</ul>`}
    <textarea ref=${field} rows=${narrow ? 2 : 3} value=${text} placeholder=${t("write")} aria-label=${t("write")} disabled=${state.asks_first} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
    <div class="tools"><button>${t(state.busy ? "send_queue" : "send")}</button>
      ${state.busy && html`<button type="button" onClick=${() => send("steer")} disabled=${!state.can_steer}>${t("steer")}</button>
        <button type="button" onClick=${() => act("cancel", {})}>${t("stop")}</button> <span role="status" class="dim">${plain(busy) || t("working")}</span>`}
      <details open=${!narrow}><summary>${oneLine(state.model, 60)}</summary><div class="tools">${pick("model", state.model, choices.models)} ${pick("mode", state.mode, choices.modes)} ${pick("effort", state.effort, ["", ...choices.efforts], (effort) => effort || t("effort_unset"))}
      ${!state.busy && html`<button type="button" onClick=${() => act("close", {}).then((closed) => closed && (location.hash = "#/talk"))}>${t("close_here")}</button>`}
      <button type="button" onClick=${() => source.post("token").then(({ url }) => setAddress(url))}>${t("another_page")}</button></div></details></div>
    ${address && html`<p class="code">${address}</p>`}</form>`;
}

// A question with everything that is to be known of it. What needs words has a field for them.
function Question({ question, answer }) {
  const [open, setOpen] = useState("");
  const [text, setText] = useState("");
  const given = useRef(false);
  const give = async (choice, words = "") => {
    if (given.current) return; // a second click is not a second answer
    given.current = true;
    if (!(await answer({ question: question.id, choice, text: words }))) given.current = false;
  };
  const words = { deny_because: t("reason"), edit: t("change_it") };
  const pick = (choice) => {
    if (!words[choice.meaning]) return give(choice.key);
    setText(choice.meaning === "edit" ? (question.edits ?? "") : "");
    return setOpen(choice.key);
  };
  const opened = question.choices?.find((choice) => choice.key === open);
  return html`<section class="asks" role="group" aria-label=${t("question")}><p><b>${plain(question.title)}</b> <bdi>${plain(question.about)}</bdi></p>
    ${question.detail && (question.paths?.length || isDiff(question.detail) ? html`<${ShownDiff} text=${question.detail} />` : html`<${Code} text=${question.detail} />`)}
    ${(question.notes ?? []).map((note) => html`<p class="note">${plain(note)}</p>`)}
    <div class="tools">${(question.choices ?? []).map((choice) => html`<button type="button" aria-expanded=${words[choice.meaning] ? choice.key === open : undefined} onClick=${() => pick(choice)}>${plain(choice.label)}</button>`)}</div>
    ${(opened || question.takes_text) && html`<form onSubmit=${(event) => (event.preventDefault(), give(open, text))}>
      <textarea rows=${Math.min(12, text.split("\n").length + 1)} value=${text} aria-label=${opened ? words[opened.meaning] : t("your_answer")} placeholder=${opened ? words[opened.meaning] : t("your_answer")}
        onInput=${(event) => setText(event.target.value)}></textarea><button>${t("send")}</button></form>`}
  </section>`;
}
