// The context over time, what was cached of it, what was taken out, and what other ways would have cost.
import { html, useEffect, useRef } from "./preact.js";
import { useLook, Waiting } from "./request.js";
import { clock, count, plain, short, t, usd } from "./words.js";

const PARTS = ["cache_read_tokens", "cache_write_tokens", "fresh_tokens"];
const PART_NAMES = ["read", "write", "fresh"];
const MARKED = { pruned: "--warn", compressed: "--bad", model: "--dim", rewound: "--dim" };

export function ContextView({ session }) {
  const usages = session.blocks.answered();
  const notices = session.blocks.all("notice").filter((block) => MARKED[block.data.about]);
  return html`<section class="context"><h2>${t("context_over_time")}</h2>
    ${usages.length ? html`<${Chart} usages=${usages} notices=${notices} version=${session.version} />` : html`<p class="dim">${t("no_requests")}</p>`}
    <details><summary>${t("as_table")}</summary><div class="wide" tabindex="0"><table><thead><tr>
      ${["entry", "time", "part_read", "part_write", "part_fresh", "part_output", "cost"].map((name) => html`<th>${t(name)}</th>`)}</tr></thead>
      <tbody>${usages.map(({ data }) => html`<tr><td><a href=${`#/s/${session.key}/r/${data.seq}`}>${data.seq}</a></td><td>${clock(data.at_ms)}</td>
        ${[...PARTS, "output_tokens"].map((name) => html`<td class="number">${count(data[name])}</td>`)}<td class="number">${usd(data.usd)}</td></tr>`)}</tbody></table></div></details>
    <h2>${t("other_ways")}</h2><${Simulation} session=${session} /></section>`;
}

function Chart({ usages, notices, version }) {
  const place = useRef(null);
  useEffect(() => {
    if (!globalThis.uPlot) return undefined;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const sums = usages.map(({ data }) => PARTS.map((name) => data[name] ?? 0));
    const stacked = [2, 1, 0].map((top) => sums.map((parts) => parts.slice(0, top + 1).reduce((one, two) => one + two, 0)));
    const marks = notices.map((block) => ({ at: usages.filter(({ data }) => data.seq < block.data.seq).length + 0.5, colour: colour(MARKED[block.data.about]) }));
    const draw = () => {
      const width = place.current.clientWidth;
      const series = [2, 1, 0].map((part) => ({ label: t(`part_${PART_NAMES[part]}`), stroke: colour(`--${PART_NAMES[part]}`), fill: colour(`--${PART_NAMES[part]}`), width: 1, points: { show: usages.length < 3 } }));
      const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
      return new globalThis.uPlot(
        {
          width,
          height: Math.min(320, Math.max(180, width / 2)),
          scales: { x: { time: false, range: [0.5, Math.max(usages.length, 2) + 0.5] }, y: { range: (plot, low, high) => [0, high * 1.05 || 1] } },
          axes: [{ ...axis, values: (plot, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick : "")) }, { ...axis, size: 56, values: (plot, ticks) => ticks.map(short) }],
          series: [{ label: t("request") }, ...series],
          legend: { live: false },
          cursor: { y: false },
          hooks: { draw: [(plot) => marks.forEach((mark) => drawMark(plot, mark))] },
        },
        [usages.map((_, index) => index + 1), ...stacked],
        place.current,
      );
    };
    let plot = draw();
    const anew = () => (plot.destroy(), (plot = draw()));
    addEventListener("resize", anew);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", anew);
    return () => (removeEventListener("resize", anew), scheme.removeEventListener("change", anew), plot.destroy());
  }, [version]);
  const last = usages.at(-1).data;
  const label = t("chart_words", { requests: usages.length, tokens: last.input_tokens ?? 0, marks: notices.length });
  return html`<figure><div class="chart" ref=${place} role="img" aria-label=${label}></div>
    <figcaption>${label}${notices.map((block) => html`<br /><span class="note">${block.data.seq}: ${plain(block.text).replace(/[:：]$/, "")}</span>`)}</figcaption></figure>`;
}

function drawMark(plot, { at, colour }) {
  const x = plot.valToPos(at, "x", true);
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.setLineDash([6, 4]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

// A row for each policy, a column for each model's prices: the share of what it would have cost without any pruning.
function Simulation({ session }) {
  const state = useLook(session.key, "simulate", {}, [session.key]);
  if (!state.found) return html`<${Waiting} state=${state} />`;
  const { prices, costs } = state.found;
  const rows = new Map();
  for (const cost of costs) {
    const key = `${cost.rule} ${cost.policy}`;
    rows.set(key, [...(rows.get(key) ?? []), cost]);
  }
  return html`<p class="facts">${t("simulate_words")}</p><div class="wide" tabindex="0"><table class="simulated"><thead><tr><th>${t("rule")}</th><th>${t("policy")}</th>
    ${prices.map((each) => html`<th>${plain(each.name)}<br /><small>${plain(each.model)}</small></th>`)}</tr></thead>
    <tbody>${[...rows.values()].map((row) => html`<tr><td>${t(`rule_${row[0].rule}`)}</td><td>${t(`policy_${row[0].policy}`)}</td>
      ${row.map((cost) => html`<td class=${`number ${cost.percent < 99.5 ? "good" : cost.percent > 100.5 ? "bad" : ""}`}>${usd(cost.cost_usd)} <small>${Math.round(cost.percent)}%</small></td>`)}</tr>`)}
    </tbody></table></div>`;
}
