// Fleets: a grid of tasks and attempts, each cell the way to its session.
import { html, useEffect, useState } from "./preact.js";
import * as source from "./source.js";
import { count, oneLine, plain, seconds, t, usd } from "./words.js";

const MARKS = { passed: "✓", failed: "✗", "agent limit": "⏱", infrastructure: "⚠", "refused input": "⊘", cancelled: "◼", begun: "…" };
const KINDS = { passed: "good", failed: "bad", infrastructure: "bad" };
const nameOf = (outcome) => t(`outcome_${(outcome ?? "open").replaceAll(" ", "_")}`);

export function FleetPage({ rest }) {
  const [found, setFound] = useState(null);
  const [fault, setFault] = useState("");
  useEffect(() => {
    const load = () => source.fleets(rest[0]).then(setFound, (error) => setFault(error.message));
    setFound(null);
    load();
    const again = setInterval(() => document.visibilityState === "visible" && load(), 3000);
    return () => clearInterval(again);
  }, [rest[0]]);
  if (fault) return html`<main><p class="bad" role="alert">${plain(fault)}</p></main>`;
  if (!found) return html`<main aria-busy="true"><p class="dim">${t("loading")}</p></main>`;
  return rest[0] && found.tasks ? html`<${Grid} fleet=${found} />` : html`<${List} fleets=${found.fleets ?? []} />`;
}

function List({ fleets }) {
  return html`<main><h1>${t("fleets")}</h1>${fleets.length === 0 && html`<p class="dim">${t("no_fleets")}</p>`}
    <ul>${fleets.map((each) => html`<li><a href=${`#/fleet/${encodeURIComponent(each.name)}`}>${plain(each.name)}</a>
      <small> ${t("fleet_size", { tasks: each.tasks ?? 0, attempts: each.attempts ?? 1 })} <bdi>${oneLine(each.model, 60)}</bdi></small></li>`)}</ul></main>`;
}

function Grid({ fleet }) {
  const cells = fleet.tasks.flatMap((task) => task.cells);
  const counts = new Map();
  for (const cell of cells) counts.set(cell?.outcome ?? "open", (counts.get(cell?.outcome ?? "open") ?? 0) + 1);
  const cost = cells.reduce((sum, cell) => sum + (cell?.cost_usd ?? 0), 0);
  return html`<main><h1>${plain(fleet.name)}</h1>
    <p class="facts"><bdi>${plain(fleet.model)}</bdi> ${[...counts].map(([name, number]) => ` · ${count(number)} ${nameOf(name)}`)} · ${usd(cost)}</p>
    <div class="wide" tabindex="0"><table class="grid"><thead><tr><th>${t("task")}</th>${Array.from({ length: fleet.attempts }, (_, number) => html`<th>${number + 1}</th>`)}</tr></thead>
    <tbody>${fleet.tasks.map((task) => html`<tr><th scope="row"><bdi>${oneLine(task.id, 120)}</bdi></th>${task.cells.map((cell) => html`<td><${Cell} cell=${cell} /></td>`)}</tr>`)}</tbody></table></div>
    ${fleet.whole > fleet.tasks.length && html`<p class="dim">${t("fleet_more", { tasks: fleet.whole - fleet.tasks.length })}</p>`}</main>`;
}

function Cell({ cell }) {
  const words = nameOf(cell?.outcome);
  const about = [words, oneLine(cell?.reason ?? "", 200), seconds(cell?.seconds == null ? null : cell.seconds * 1000), usd(cell?.cost_usd)].filter(Boolean).join(" · ");
  const mark = html`<span class=${`mark ${KINDS[cell?.outcome] ?? ""}`}>${MARKS[cell?.outcome] ?? "·"}</span>`;
  if (!cell?.session_id) return html`<span role="img" aria-label=${about} title=${about}>${mark}</span>`;
  return html`<a href=${`#/s/${cell.session_id}`} aria-label=${about} title=${about}>${mark}</a>`;
}
