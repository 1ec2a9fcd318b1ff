// What belonged to the run before.
const OVER = ["ended", "notice", "retry", "prompt_read"];

// The blocks of one session: events change them, as the program itself joins them.
export class Blocks {
  constructor(found = []) {
    this.byId = new Map();
    this.version = 0;
    this.seq = 0;
    this.whole = 0;
    this.generation = 0;
    this.take(found);
  }

  take(events) {
    for (const event of events) {
      if (event.id === "begin_anew") Object.assign(this, { seq: 0, whole: event.seq }); // what stands follows: only all of it counts
      else if (event.kind === "whole" || (event.seq ?? 0) > this.whole) this.seq = Math.max(this.seq, event.seq ?? 0);
      if (event.kind === "whole") continue;
      if (event.id === "begin_anew") this.byId.clear();
      if (event.id === "begin_anew" || event.kind === "state") continue;
      if (event.kind === "prompt" && !this.byId.has(event.id)) for (const id of OVER) this.byId.delete(id);
      const before = this.byId.get(event.id);
      const live = event.passing && event.append && event.kind === "call" && event.data?.output;
      if (live) {
        const so_far = (before?.data.output_so_far ?? "") + event.data.output;
        event.data = { ...event.data, output: before?.data.output, output_so_far: so_far.slice(-20000) };
      }
      if (event.state === "gone") this.byId.delete(event.id);
      else if (!before || !event.append) this.byId.set(event.id, { ...event, text: event.text ?? "", data: event.data ?? {}, state: event.state ?? "" });
      else
        this.byId.set(event.id, {
          ...before,
          kind: event.kind,
          text: before.text + (event.text ?? ""),
          state: event.state || before.state,
          data: event.data ? { ...before.data, ...event.data } : before.data,
        });
    }
    this.version += 1;
    return this;
  }

  get(id) {
    return this.byId.get(id);
  }

  // What each request took, in order.
  usages() {
    return [...this.byId.values()].filter((block) => block.kind === "usage" && block.data.of);
  }

  // Of those, the ones that asked for an answer: not those for a summary.
  answered() {
    return this.usages().filter((block) => /^a/.test(block.data.of));
  }

  lastSeq() {
    return [...this.byId.values()].reduce((last, block) => Math.max(last, block.data?.seq ?? 0), 0);
  }

  all(kind) {
    return [...this.byId.values()].filter((block) => block.kind === kind);
  }
}

// A command that ended with another code than 0 has failed, although the call was carried out.
export const stateOf = (block) => (block.state === "done" && block.data?.exit_code ? "failed" : block.state);

export const isAnswer = (block) => block.kind === "status" && /^a\d+$/.test(block.id);

// The blocks in the order in which they are shown. Calls that ran side by side get their lanes before them.
export function rowsOf(blocks) {
  const rows = [];
  const calls = new Map();
  const told = ["failed", "cancelled"].includes(blocks.get("ended")?.state) ? blocks.all("notice").findLast((each) => each.data?.about === "run_ended") : null;
  for (const block of blocks.byId.values()) {
    if (block.kind === "usage" || block.kind === "plan" || block.inside || (block.kind === "status" && !isAnswer(block)) || block === told) continue;
    if (block.kind === "call" && !block.inside) {
      const list = calls.get(block.data.answer) ?? [];
      if (list.push(block) === 1) calls.set(block.data.answer, list);
      if (list.length === 2) rows.splice(rows.findLastIndex((row) => row.id === list[0].id), 0, { id: `${block.data.answer}.lanes`, kind: "lanes", calls: list });
    }
    rows.push(block);
  }
  return rows;
}

// Totals of a session, for its head and for comparing.
export function totalsOf(blocks) {
  const totals = { requests: 0, fresh: 0, read: 0, write: 0, output: 0, usd: 0, isWhole: true, calls: 0, failed: 0, tools: {}, firstMs: 0, lastMs: 0 };
  for (const { data } of blocks.usages()) {
    totals.requests += 1;
    totals.fresh += data.fresh_tokens ?? 0;
    totals.read += data.cache_read_tokens ?? 0;
    totals.write += data.cache_write_tokens ?? 0;
    totals.output += data.output_tokens ?? 0;
    if (data.usd == null) totals.isWhole = false;
    totals.usd += data.usd ?? 0;
    totals.firstMs ||= data.at_ms;
    totals.lastMs = data.at_ms;
  }
  for (const block of blocks.all("call")) {
    totals.calls += 1;
    totals.failed += stateOf(block) === "failed" ? 1 : 0;
    totals.tools[block.data.name] = (totals.tools[block.data.name] ?? 0) + 1;
  }
  return totals;
}
