// Two sessions side by side: what they took, and how each answered the same prompt.
import { html } from "./preact.js";
import { isAnswer, totalsOf } from "./blocks.js";
import { Markdown } from "./markdown.js";
import { useSession } from "./session.js";
import { count, oneLine, plain, seconds, t, usd } from "./words.js";

export function ComparePage({ ids }) {
  const both = [useSession(ids[0]), useSession(ids[1])];
  const fault = both.map((each) => each.fault).find(Boolean);
  if (fault) return html`<main><p class="bad" role="alert">${plain(fault)}</p></main>`;
  if (!both.every((each) => each.found)) return html`<main aria-busy="true"><p class="dim">${t("loading")}</p></main>`;
  const sides = both.map(({ found }) => ({ found, facts: found.blocks.get("session")?.data ?? {}, totals: totalsOf(found.blocks), rounds: roundsOf(found.blocks) }));
  const tools = [...new Set(sides.flatMap((side) => Object.keys(side.totals.tools)))].sort();
  const rows = [
    ["model", (side) => plain(side.facts.model)],
    ["folder", (side) => plain(side.facts.directories?.[0])],
    ["requests_head", (side) => side.totals.requests, true],
    ["part_fresh", (side) => side.totals.fresh, true],
    ["part_write", (side) => side.totals.write, true],
    ["part_read", (side) => side.totals.read, true],
    ["part_output", (side) => side.totals.output, true],
    ["cost", (side) => side.totals.usd, true, usd],
    ["duration", (side) => side.totals.lastMs - side.facts.started_ms, true, seconds],
    ["calls_head", (side) => side.totals.calls, true],
    ["failed_head", (side) => side.totals.failed, true],
    ["files_head", (side) => new Set(side.found.files.map((each) => each.path)).size, true],
  ];
  const line = (label, value, isNumber, form = count) => {
    const [one, two] = sides.map(value);
    return html`<tr><th scope="row"><bdi>${label}</bdi></th><td class=${isNumber && "number"}>${isNumber ? form(one) : one}</td><td class=${isNumber && "number"}>${isNumber ? form(two) : two}</td>
      <td class="number">${isNumber && one > 0 && two !== one ? `${two > one ? "+" : ""}${Math.round((100 * (two - one)) / one)}%` : ""}</td></tr>`;
  };
  const rounds = Math.max(...sides.map((side) => side.rounds.length));
  return html`<main class="compare"><h1>${t("compare")}</h1>
    <div class="wide" tabindex="0"><table><thead><tr><td></td>${ids.map((id, place) => html`<th><a href=${`#/s/${id}`}>${oneLine(sides[place].found.title || id, 80)}</a></th>`)}<th>${t("change")}</th></tr></thead>
      <tbody>${rows.map(([name, ...rest]) => line(t(name), ...rest))}${tools.map((tool) => line(tool, (side) => side.totals.tools[tool] ?? 0, true))}</tbody></table></div>
    ${Array.from({ length: rounds }, (_, number) => html`<section class="pair"><h2>${t("round", { number: number + 1 })}</h2>
      ${sides.map((side) => html`<div>${side.rounds[number] && html`<div class="text prompt" dir="auto">${plain(side.rounds[number].prompt)}</div>
        <p class="facts">${t("requests", { requests: side.rounds[number].requests })} · ${t("calls", { calls: side.rounds[number].calls })}</p><${Markdown} text=${side.rounds[number].text} />`}</div>`)}</section>`)}
  </main>`;
}

// Each prompt with the last words that answered it.
function roundsOf(blocks) {
  const rounds = [];
  for (const block of blocks.byId.values()) {
    if (block.kind === "prompt") rounds.push({ prompt: block.text, text: "", requests: 0, calls: 0 });
    const round = rounds.at(-1);
    if (!round) continue;
    if (block.kind === "text") round.text = block.text;
    if (block.kind === "call") round.calls += 1;
    if (isAnswer(block)) round.requests += 1;
  }
  return rounds;
}
