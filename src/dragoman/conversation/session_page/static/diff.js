// Differences between two texts, line by line, and how they are shown: one below the other, or side by side.
import { html } from "./preact.js";
import { plain, t } from "./words.js";

const MOST = 4_000_000;

// Pairs of [sign, line]: " " in both, "-" only before, "+" only after.
export function compareLines(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const middle = compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return [...before.slice(0, start).map((line) => [" ", line]), ...middle, ...before.slice(before.length - end).map((line) => [" ", line])];
}

function compareMiddle(before, after) {
  if (before.length * after.length > MOST) return [...before.map((line) => ["-", line]), ...after.map((line) => ["+", line])];
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one--)
    for (let two = after.length - 1; two >= 0; two--)
      longest[one * width + two] =
        before[one] === after[two] ? longest[(one + 1) * width + two + 1] + 1 : Math.max(longest[(one + 1) * width + two], longest[one * width + two + 1]);
  const found = [];
  let [one, two] = [0, 0];
  while (one < before.length || two < after.length) {
    if (one < before.length && two < after.length && before[one] === after[two]) found.push([" ", before[one++]]), (two += 1);
    else if (two >= after.length || (one < before.length && longest[(one + 1) * width + two] >= longest[one * width + two + 1])) found.push(["-", before[one++]]);
    else found.push(["+", after[two++]]);
  }
  return found;
}

// Only what changed, with some lines around it. `null` stands where lines are left out.
export function onlyChanges(pairs, around = 3) {
  const shown = new Uint8Array(pairs.length);
  pairs.forEach(([sign], place) => sign !== " " && shown.fill(1, Math.max(place - around, 0), place + around + 1));
  const found = [];
  pairs.forEach((pair, place) => {
    if (shown[place]) found.push(pair);
    else if (found.at(-1) !== null) found.push(null);
  });
  return found;
}

const NAMES = { "+": "come", "-": "gone", " ": "same" };

export function Unified({ pairs }) {
  return html`<div class="code diff" tabindex="0" role="group" aria-label=${t("difference")}>
    ${pairs.map((pair) => (pair ? html`<div class=${NAMES[pair[0]]}><span class="sign">${pair[0]}</span>${plain(pair[1])}</div>` : html`<div class="left-out">⋯</div>`))}
  </div>`;
}

// A text that is a difference already, as tools show it.
export function ShownDiff({ text }) {
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => /^(---|@@)/.test(line)); // what is before it is no part of it
  const pairs = lines.map((line, place) => {
    if (place < begin || /^(\+\+\+|---|@@)/.test(line)) return [" ", line];
    return /^[+-]/.test(line) ? [line[0], line.slice(1)] : [" ", line.replace(/^ /, "")];
  });
  return html`<${Unified} pairs=${pairs} />`;
}

export const isDiff = (text) => /^(---|\+\+\+|@@)/m.test(text) && /^[+-]/m.test(text);

export function SideBySide({ pairs }) {
  const rows = [];
  let open = 0; // the first row of this change that has no right side yet
  for (const pair of pairs) {
    if (pair === null || pair[0] === " ") {
      rows.push(pair && { left: pair[1], right: pair[1] });
      open = rows.length;
    } else if (pair[0] === "-") rows.push({ left: pair[1], changed: true });
    else if (open < rows.length) rows[open++].right = pair[1];
    else open = rows.push({ right: pair[1], changed: true });
  }
  const side = (row, name, kind) => {
    const text = row[name];
    return html`<div class=${text === undefined ? "none" : row.changed ? kind : "same"}>${text === undefined ? "" : plain(text)}</div>`;
  };
  return html`<div class="code sides" tabindex="0" role="group" aria-label=${t("difference")}>
    ${rows.map((row) => (row ? html`${side(row, "left", "gone")}${side(row, "right", "come")}` : html`<div class="left-out">⋯</div><div class="left-out">⋯</div>`))}
  </div>`;
}
