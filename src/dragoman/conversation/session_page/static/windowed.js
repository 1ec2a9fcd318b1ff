// A list of which only what is near the window is in the page. Heights are known once a row was seen; until then they are guessed.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";

const BEYOND = 800;

// Sums of heights that change one at a time (a Fenwick tree).
class Heights {
  constructor(count, guess) {
    this.values = new Float64Array(count).fill(guess);
    this.tree = new Float64Array(count + 1);
    for (let place = 1; place <= count; place++) {
      this.tree[place] += guess;
      const above = place + (place & -place);
      if (above <= count) this.tree[above] += this.tree[place];
    }
  }

  set(place, height) {
    const change = height - this.values[place];
    this.values[place] = height;
    for (let each = place + 1; each < this.tree.length; each += each & -each) this.tree[each] += change;
    return change;
  }

  before(place) {
    let total = 0;
    for (let each = place; each > 0; each -= each & -each) total += this.tree[each];
    return total;
  }

  placeAt(offset) {
    let place = 0;
    for (let step = 2 ** Math.ceil(Math.log2(this.tree.length + 1)); step >= 1; step /= 2) {
      if (place + step < this.tree.length && this.tree[place + step] <= offset) {
        place += step;
        offset -= this.tree[place];
      }
    }
    return Math.min(place, Math.max(this.values.length - 1, 0));
  }
}

// `rows` have ids; `row(each, place)` draws one; `goTo` is a place to be shown, with a number that changes when it is asked again.
export function Windowed({ rows, row, guess = 60, goTo, label }) {
  const list = useRef(null);
  const known = useRef({ ids: new Map(), heights: new Heights(0, guess), rows: null });
  const goal = useRef(null); // where to go, until every row between there and the window's edges was measured
  const [span, setSpan] = useState([0, 30]);
  const state = known.current;
  state.span = span;
  if (state.rows !== rows) {
    const before = state.heights;
    const places = state.ids;
    state.heights = new Heights(rows.length, guess);
    state.ids = new Map(rows.map((each, place) => [each.id, place]));
    for (const [id, place] of places) {
      const now = state.ids.get(id);
      if (now !== undefined && before.values[place] !== guess) state.heights.set(now, before.values[place]);
    }
    state.rows = rows;
  }

  const look = () => {
    if (!list.current) return;
    const top = -list.current.getBoundingClientRect().top;
    const first = state.heights.placeAt(Math.max(top - BEYOND, 0));
    const last = state.heights.placeAt(Math.max(top + innerHeight + BEYOND, 0));
    const isDrawn = state.span[0] === first && state.span[1] === last;
    if (!isDrawn) setSpan([first, last]);
    return isDrawn;
  };

  // Heights that are guessed put a row in the wrong place: it is aimed at again with what was drawn on the way.
  const aim = () => {
    if (!goal.current) return;
    const place = state.ids.get(goal.current.id);
    if (place === undefined) return void (goal.current = null);
    const head = document.querySelector("header")?.offsetHeight ?? 0;
    const top = list.current.getBoundingClientRect().top + scrollY + state.heights.before(place);
    const height = state.heights.values[place];
    if (goal.current.centre || top < scrollY + head || top + height > scrollY + innerHeight)
      scrollTo(0, goal.current.centre ? top - innerHeight / 3 : top < scrollY + head ? top - head - 8 : top + Math.min(height, innerHeight - head - 20) - innerHeight + 12);
    if (look()) goal.current = null;
  };

  useEffect(() => {
    let asked = 0;
    const soon = () => (asked ||= requestAnimationFrame(() => ((asked = 0), look())));
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
      cancelAnimationFrame(asked);
    };
  }, []);
  useLayoutEffect(look, [rows]);

  // What is measured above the window moves nothing that is in it.
  useLayoutEffect(() => {
    const element = list.current;
    let moved = 0;
    const top = -element.getBoundingClientRect().top;
    for (const child of element.firstChild.children) {
      const place = state.ids.get(child.dataset.id);
      if (place === undefined) continue;
      const start = state.heights.before(place);
      const height = child.getBoundingClientRect().height;
      if (Math.abs(height - state.heights.values[place]) < 0.5) continue;
      const change = state.heights.set(place, height);
      if (start + height - change < top) moved += change;
    }
    element.style.height = `${state.heights.before(rows.length)}px`;
    element.firstChild.style.transform = `translateY(${state.heights.before(Math.min(span[0], rows.length))}px)`;
    if (moved) scrollBy(0, moved);
    aim();
  });

  useLayoutEffect(() => {
    goal.current = goTo && rows[goTo.place] ? { id: rows[goTo.place].id, centre: goTo.centre } : null;
    aim();
  }, [goTo]);

  const [first, last] = [Math.min(span[0], rows.length), Math.min(span[1] + 1, rows.length)];
  return html`<div class="windowed" ref=${list}>
    <div ...${rows.length ? { role: "feed", "aria-label": label } : {}}>${rows.slice(first, last).map((each, place) => row(each, first + place))}</div>
  </div>`;
}
