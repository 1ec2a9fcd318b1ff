// Answers as they are meant to look. Markdown becomes elements with text in them, never markup: what an answer says cannot run.
import { html } from "./preact.js";
import { plain } from "./words.js";

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+(?:\*(?!\*)[^*\n]*)*)\*\*|(?<![\w*])\*([^*\s][^*\n]*?)\*(?!\w)|(?<!\w)_([^_\s][^_\n]*?)_(?!\w)|~~([^~\n]+)~~|!?\[([^\]\n]{0,1000})\]\([ \t]{0,9}<?([^)\s>]{1,2000})>?(?:\s[^)\n]{0,1000})?\)|(https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]])/g;

// What nobody writes by hand, but a page must survive: deeper, wider or longer than this it is shown as plain text.
const LIMITS = { depth: 20, cells: 100, lines: 5000, inline: 20_000 };

export function inline(text) {
  if (text.length > LIMITS.inline) return [text];
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [, , code, bold, italic, under, gone, label, address, bare] = match;
    if (code !== undefined) parts.push(html`<code>${code.trim()}</code>`);
    else if (bold !== undefined) parts.push(html`<strong>${inline(bold)}</strong>`);
    else if (italic !== undefined || under !== undefined) parts.push(html`<em>${inline(italic ?? under)}</em>`);
    else if (gone !== undefined) parts.push(html`<del>${inline(gone)}</del>`);
    else parts.push(link(label ?? bare, address ?? bare));
  }
  return [...parts, text.slice(at)].filter((part) => part !== "");
}

// The address is always to be seen. Only those of the web can be followed, and nothing is told where one comes from.
function link(label, address) {
  const shown = label === address ? "" : ` (${address})`;
  if (!/^https?:\/\//i.test(address)) return `${label}${shown}`;
  return html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow">${label || address}</a>${shown && html`<small>${shown}</small>`}`;
}

const LIST = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

export function blocksOf(lines, depth = 0) {
  if (depth > LIMITS.depth) return [html`<p>${lines.join("\n")}</p>`];
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const fence = line.match(/^\s{0,3}(`{3,}|~{3,})\s*([^`]*)$/);
    if (!line.trim()) at += 1;
    else if (fence) {
      const end = lines.findIndex((each, place) => place > at && each.trim().startsWith(fence[1]) && /^[`~]+$/.test(each.trim()));
      const stop = end < 0 ? lines.length : end;
      found.push(html`<pre class="code" tabindex="0"><code>${lines.slice(at + 1, stop).join("\n")}</code></pre>`);
      at = stop + 1;
    } else if (/^#{1,6}\s/.test(line)) {
      found.push(html`<p class="heading h${line.match(/^#+/)[0].length}">${inline(line.replace(/^#+\s+|\s+#+\s*$/g, ""))}</p>`);
      at += 1;
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      found.push(html`<hr />`);
      at += 1;
    } else if (/^\s{0,3}>/.test(line)) {
      const end = endOf(lines, at, (each) => /^\s{0,3}>/.test(each));
      found.push(html`<blockquote>${blocksOf(lines.slice(at, end).map((each) => each.replace(/^\s{0,3}>\s?/, "")), depth + 1)}</blockquote>`);
      at = end;
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && lines[at + 1].includes("-") && line.split("|", LIMITS.cells + 1).length <= LIMITS.cells) {
      const end = endOf(lines, at, (each) => each.includes("|"));
      found.push(tableOf(lines.slice(at, end)));
      at = end;
    } else if (LIST.test(line)) {
      const end = endOf(lines, at, (each, place) => LIST.test(each) || /^\s+\S/.test(each) || (!each.trim() && /^(\s+\S|\s*([-*+]|\d+[.)])\s)/.test(lines[place + 1] ?? "")));
      found.push(listOf(lines.slice(at, end), depth));
      at = end;
    } else {
      const end = endOf(lines, at, (each, place) => place === at || (each.trim() && !/^\s{0,3}(#{1,6}\s|>|`{3,}|~{3,})/.test(each) && !LIST.test(each)));
      found.push(html`<p>${inline(lines.slice(at, end).join("\n"))}</p>`);
      at = end;
    }
  }
  return found;
}

function endOf(lines, at, holds) {
  let end = at;
  while (end < lines.length && holds(lines[end], end)) end += 1;
  return end;
}

function listOf(lines, depth) {
  const column = lines[0].match(LIST)[1].length;
  const items = [];
  for (const line of lines) {
    const match = line.match(LIST);
    if (match && match[1].length <= column + 1) items.push([match[3]]);
    else items.at(-1).push(line.replace(new RegExp(`^\\s{0,${column + 2}}`), ""));
  }
  const ordered = /\d/.test(lines[0].match(LIST)[2]);
  const drawn = items.map((item) => html`<li>${item.length === 1 ? inline(item[0]) : blocksOf(item, depth + 1)}</li>`);
  return ordered ? html`<ol start=${parseInt(lines[0].trim(), 10)}>${drawn}</ol>` : html`<ul>${drawn}</ul>`;
}

function tableOf(lines) {
  const [head, , ...rest] = lines.map(cells);
  return html`<div class="wide" tabindex="0"><table>
    <thead><tr>${head.map((cell) => html`<th>${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rest.map((row) => html`<tr>${row.slice(0, LIMITS.cells).map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export function Markdown({ text }) {
  const lines = plain(text).split("\n");
  const rest = lines.splice(LIMITS.lines).join("\n");
  return html`<div class="markdown" dir="auto">${blocksOf(lines)}${rest && html`<p>${rest}</p>`}</div>`;
}
