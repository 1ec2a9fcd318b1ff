// One row of a timeline: a prompt, an answer's head, text, a thought, a call, a notice, a question, lanes.
import { html, useEffect, useState } from "./preact.js";
import { isAnswer, stateOf } from "./blocks.js";
import { isDiff, ShownDiff } from "./diff.js";
import { Markdown } from "./markdown.js";
import * as source from "./source.js";
import { clock, count, oneLine, plain, seconds, short, t, usd } from "./words.js";

export const FOLDED = new Set(["thought", "call", "notice"]);

export function Row({ block, at }) {
  const draw = { prompt: PromptRow, text: TextRow, thought: ThoughtRow, call: CallRow, notice: NoticeRow, lanes: LanesRow }[block.kind];
  if (isAnswer(block)) return html`<${AnswerRow} block=${block} at=${at} />`;
  if (block.kind === "ended") return html`<span class=${`note ${block.state}`}>${t(`state_${block.state}`)} ${unlessSaid(plain(block.text), block.state)}</span>`;
  if (draw) return html`<${draw} block=${block} at=${at} />`;
  return html`<${QuestionRow} block=${block} at=${at} />`;
}

// What says no more than the state before it.
const unlessSaid = (text, state) => (text === t(`state_${state}`) ? "" : text);

function PromptRow({ block, at }) {
  return html`<h2>${t("prompt")} <small>${clock(block.data.at_ms)}</small></h2>
    <div class="text" dir="auto">${plain(block.text)}</div><${Attachments} block=${block} at=${at} />`;
}

function TextRow({ block }) {
  return html`<${Markdown} text=${block.text} />`;
}

function ThoughtRow({ block, at }) {
  return html`<${Fold} at=${at} id=${block.id} label=${html`<em>${t("thought")}</em> ${oneLine(block.text, 120)}`}>
    <div class="text dim" dir="auto">${plain(block.text)}</div>
  <//>`;
}

// What an answer took: how long until its first words, how fast, and its tokens by where they came from.
function AnswerRow({ block, at }) {
  const { data } = block;
  const used = at.blocks.get(`${block.id}.usage`)?.data ?? (data.usage && { ...data.usage, seq: data.seq });
  const first = data.sent_ms && data.first_ms ? data.first_ms - data.sent_ms : null;
  const took = data.first_ms && data.at_ms > data.first_ms ? data.at_ms - data.first_ms : 0;
  const facts = [
    first !== null && t("first_words", { time: seconds(first) }),
    took > 20 && used?.output_tokens > 1 && t("speed", { rate: Math.round((used.output_tokens * 1000) / took) }),
    used && t("tokens_out", { amount: count(used.output_tokens) }),
  ].filter(Boolean);
  return html`<h2>${t("answer")} <small><bdi>${plain(data.model)}</bdi> ${clock(data.at_ms)}</small></h2>
    ${data.outcome && html`<div class="bad">${plain(data.outcome)}</div>`}
    ${used && html`<div class="facts"><${Split} used=${used} /> <span>${facts.join(" · ")}</span>
      <a class="button" href=${at.link(`r/${used.seq}`)}>${t("see_request")}</a></div>`}
    ${(data.sources ?? []).length > 0 && html`<ul class="sources">${data.sources.map((each) => html`<li>${plain(each.title)} ${plain(each.uri)}</li>`)}</ul>`}
    <${Attachments} block=${block} at=${at} />`;
}

// Fresh, written to the cache, read from it, written by the model: in tokens, with the price of all.
export function Split({ used }) {
  const parts = [
    ["read", used.cache_read_tokens, used.usd_read],
    ["write", used.cache_write_tokens, used.usd_write],
    ["fresh", used.fresh_tokens, used.usd_fresh],
    ["output", used.output_tokens, used.usd_output],
  ].filter(([, tokens]) => tokens);
  const whole = parts.reduce((sum, [, tokens]) => sum + tokens, 0) || 1;
  const words = parts.map(([name, tokens, price]) => `${t(`part_${name}`)} ${count(tokens)}${price == null ? "" : ` (${usd(price)})`}`).join(", ");
  return html`<span class="split" role="img" aria-label=${words} title=${words}>
      ${parts.map(([name, tokens]) => html`<i class=${name} style=${{ width: `${(100 * tokens) / whole}%` }}></i>`)}
    </span> <span class="split-words">${parts.map(([name, tokens]) => html`<span class=${`key ${name}`}>${t(`part_${name}`)} ${short(tokens)}</span>`)}
      ${used.usd != null && html`<b>${usd(used.usd)}</b>`}</span>`;
}

// A call without a result where nothing is running any more; one that waits for somebody still does.
const stateNow = (block, running) => {
  const state = stateOf(block);
  if (running !== false || String(block.data.outcome).startsWith("waits_for")) return state;
  return { running: "unknown", waiting: "not_run" }[state] ?? state;
};

function CallRow({ block, at }) {
  const { data } = block;
  const state = stateNow(block, at.blocks.running);
  const time = data.started_ms && data.finished_ms ? seconds(data.finished_ms - data.started_ms) : "";
  const mark = { done: "✓", failed: "✗", refused: "⊘", cancelled: "◼", running: "…", waiting: "?" }[state] ?? "·";
  const label = html`<span class=${`mark ${state}`} aria-hidden="true">${mark}</span> <bdi class="call-title">${oneLine(block.text, 200)}</bdi>
    <small>${time} ${state !== "done" && html`<span class=${state}>${t(`state_${state || "waiting"}`)}</span>`} ${data.exit_code ? t("exit_code", { code: data.exit_code }) : ""} <span>${["waiting", "running"].includes(state) ? "" : unlessSaid(oneLine(data.result ?? "", 160), state)}</span></small>`;
  return html`<${Fold} at=${at} id=${block.id} label=${label}><${CallBody} block=${block} at=${at} /><//>`;
}

function CallBody({ block, at }) {
  const [whole, setWhole] = useState(null);
  const { data } = whole ?? block;
  const shown = data.display && data.display !== data.output ? data.display : "";
  const child = at.children.find((each) => each.call_id === data.call_id);
  return html`<div class="call-body">
    <h3>${t("input")}</h3><${Arguments} text=${data.arguments} />
    ${shown && isDiff(shown) && html`<h3>${t("change")}</h3><${ShownDiff} text=${shown} />`}
    ${shown && !isDiff(shown) && html`<h3>${t("shown_to_you")}</h3><${Code} text=${shown} />`}
    ${data.output && html`<h3>${t("output")}</h3><${Code} text=${data.output} bad=${stateOf(block) === "failed"} />`}
    ${!data.output && data.output_so_far && html`<h3>${t("output")}</h3><${Code} text=${data.output_so_far} />`}
    ${data.exit_code != null && html`<p class="facts">${t("exit_code", { code: data.exit_code })}</p>`}
    ${(data.notes ?? []).map((note) => html`<p class="facts">${plain(note)}</p>`)}
    ${data.cut && html`<button onClick=${async () => setWhole(await source.look(at.id, "block", { id: block.id }))}>${t("show_whole", { chars: Math.max(...Object.values(data.cut)) })}</button>`}
    ${(data.changed ?? []).map((path) => html`<p class="facts"><a href=${at.link(`files?path=${encodeURIComponent(path)}`)}>${t("changed_file", { path: oneLine(path) })}</a></p>`)}
    <${Attachments} block=${block} at=${at} />
    ${at.inside(block.id).map((each) => html`<div class="row inner" key=${each.id}><${Row} block=${each} at=${at} /></div>`)}
    ${child && html`<${Inner} child=${child} at=${at} />`}
  </div>`;
}

function Arguments({ text }) {
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    // what a model wrote need not be JSON: it is shown as it came
  }
  if (!found || typeof found !== "object" || Array.isArray(found)) return html`<${Code} text=${text ?? ""} />`;
  return html`<dl class="arguments">${Object.entries(found).map(
    ([name, value]) => html`<dt>${plain(name)}</dt><dd><${Code} text=${typeof value === "string" ? value : JSON.stringify(value, null, 1)} /></dd>`,
  )}</dl>`;
}

export const Code = ({ text, bad }) => html`<div class=${`code ${bad ? "bad" : ""}`} dir="auto" tabindex="0" role="group">${plain(text)}</div>`;

// The session of a subagent, inside the call that began it.
function Inner({ child, at }) {
  const [found, setFound] = useState(null);
  useEffect(() => void at.load(child.session_id).then(setFound, () => {}), [child.session_id]);
  return html`<section class="inner"><h3>${t("subagent")} <a href=${`#/s/${child.session_id}`}>${oneLine(child.title || child.session_id)}</a></h3>
    ${found?.rows.map((block) => html`<div class=${`row ${block.kind}`} key=${block.id}><${Row} block=${block} at=${found.at} /></div>`)}
  </section>`;
}

function NoticeRow({ block, at }) {
  const { about, detail } = block.data;
  const long = detail || (about === "setup" || about === "told" ? block.text : "");
  const words = about === "setup" ? t("setup") : about === "told" ? t("told") : block.text;
  const bad = ["failed", "broken_off"].includes(block.data.outcome) ? "bad" : "";
  if (!long) return html`<span class=${`note ${bad}`}><span aria-hidden="true">${MARKS[about] ?? "·"}</span> ${plain(words)}</span>`;
  return html`<${Fold} at=${at} id=${block.id} label=${html`<span class="note">${MARKS[about] ?? ""} ${plain(words)}</span>`}><${Code} text=${long} /><//>`;
}

const MARKS = { attempt_failed: "↻", run_ended: "■", pruned: "✂", compressed: "⇲", model: "⇄", rewound: "↶", restored: "↶", kept: "⚲" };

function QuestionRow({ block, at }) {
  const about = at.blocks.get(block.data?.call)?.text || block.text;
  if (at.question && block.kind === "question" && block.state === "waiting") return at.question(block);
  return html`<span class="note">${t("question")} <bdi>${oneLine(about)}</bdi> <b>${t(`state_${block.state || "waiting"}`)}</b> ${plain(block.data?.by ?? "")}</span>`;
}

// Calls that ran side by side, over time.
function LanesRow({ block, at }) {
  const calls = block.calls.map((call) => at.blocks.get(call.id) ?? call).filter((call) => call.data.started_ms);
  if (calls.length < 2) return html`<span class="note">${t("calls_together", { calls: block.calls.length })}</span>`;
  const begin = Math.min(...calls.map((call) => call.data.started_ms));
  const end = Math.max(...calls.map((call) => call.data.finished_ms || call.data.started_ms), begin + 1);
  const part = (ms) => `${(100 * (ms - begin)) / (end - begin)}%`;
  return html`<figure class="lanes"><figcaption>${t("lanes", { calls: calls.length, time: seconds(end - begin) })}</figcaption>
    ${calls.map((call) => {
      const took = (call.data.finished_ms || end) - call.data.started_ms;
      return html`<div class="lane"><span class="lane-name"><bdi>${oneLine(call.text, 60)}</bdi></span>
        <span class="lane-time"><i class=${stateOf(call)} style=${{ marginLeft: part(call.data.started_ms), width: part(begin + Math.max(took, (end - begin) / 200)) }}></i></span>
        <small>${seconds(took)}</small></div>`;
    })}</figure>`;
}

function Fold({ at, id, label, children }) {
  const open = at.isOpen(id);
  return html`<div class="fold"><button class="fold-head" aria-expanded=${open} onClick=${() => at.toggle(id)}>${label}</button>${open && children}</div>`;
}

function Attachments({ block, at }) {
  return (block.data.attachments ?? []).map((each) => html`<${Attachment} key=${each.sha256 ?? each.uri} file=${each} at=${at} />`);
}

function Attachment({ file, at }) {
  const [url, setUrl] = useState(null);
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(file.mime) && file.sha256;
  useEffect(() => void (isImage && source.imageUrl(at.id, file.sha256).then(setUrl)), [file.sha256]);
  if (url) return html`<img src=${url} alt=${oneLine(file.mime)} />`;
  return html`<p class="facts">${t("attached", { what: oneLine(`${file.mime} ${file.uri ?? ""}`), bytes: file.size ?? 0 })}</p>`;
}
