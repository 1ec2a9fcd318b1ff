// What a session changed in files: each change side by side, or all changes to a file together.
import { html, useEffect, useMemo, useState } from "./preact.js";
import { compareLines, onlyChanges, SideBySide, Unified } from "./diff.js";
import { useLook, Waiting } from "./request.js";
import { oneLine, plain, t } from "./words.js";

export function useNarrow() {
  const narrow = useMemo(() => matchMedia("(max-width: 700px)"), []);
  const [is, set] = useState(narrow.matches);
  useEffect(() => {
    const change = () => set(narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return is;
}

export function FilesView({ session, params }) {
  const state = useLook(session.key, "files", {}, [session.key, session.version], true);
  const narrow = useNarrow();
  if (!state.found) return html`<${Waiting} state=${state} />`;
  if (!state.found.length) return html`<p class="dim">${t("no_files")}</p>`;
  const prompts = session.blocks.all("prompt");
  const wanted = params.get("path");
  const groups = new Map();
  for (const change of state.found) {
    if (wanted && change.path !== wanted) continue;
    const prompt = prompts.findLast((block) => block.data.seq < change.seq);
    const key = prompt?.id ?? "";
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return html`<section class="files"><h2>${t("files_changed", { files: new Set(state.found.map((each) => each.path)).size })}</h2>
    ${wanted && html`<p><a class="button" href=${`#/s/${session.key}/files`}>${t("all_files")}</a></p>`}
    ${[...groups].map(([id, changes]) => html`<h3 dir="auto">${oneLine(session.blocks.get(id)?.text ?? "", 120)}</h3>
      ${changes.map((change) => html`<${Change} key=${`${change.seq} ${change.path}`} session=${session} change=${change} narrow=${narrow} open=${changes.length < 4} />`)}`)}</section>`;
}

function Change({ session, change, narrow, open: first }) {
  const [open, setOpen] = useState(first);
  const kind = !change.before ? "made" : !change.after ? "removed" : "changed";
  return html`<details open=${open} onToggle=${(event) => setOpen(event.target.open)}><summary><bdi>${plain(change.path)}</bdi> <small>${t(`file_${kind}`)}</small></summary>
    ${open && html`<p class="facts"><a href=${`#/s/${session.key}/e/${change.seq}`}>${t("permalink", { seq: change.seq })}</a></p><${Texts} session=${session} change=${change} narrow=${narrow} />`}</details>`;
}

function Texts({ session, change, narrow }) {
  const state = useLook(session.key, "file", { seq: change.seq, path: change.path }, [change.seq, change.path]);
  if (!state.found) return html`<${Waiting} state=${state} />`;
  const { before, after } = state.found;
  const call = session.blocks.all("call").findLast((block) => block.data.call_id === change.call_id);
  if (before == null || after == null)
    return html`<p class="dim">${t("not_kept")} ${call && html`<a href=${`#/s/${session.key}/e/${call.data.seq}`}>${t("see_call")}</a>`}</p>`;
  const split = (text) => (text ? text.replace(/\n$/, "").split("\n") : []);
  const pairs = onlyChanges(compareLines(split(before), split(after)));
  return narrow ? html`<${Unified} pairs=${pairs} />` : html`<${SideBySide} pairs=${pairs} />`;
}
