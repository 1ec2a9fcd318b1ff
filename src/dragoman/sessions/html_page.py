"""A session as one HTML page: self-contained, without scripts, and with a content security policy that forbids loading anything."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from dragoman.base.text import clip
from dragoman.sessions.call_views import CallView, views_of
from dragoman.sessions.export_words import escape_controls, facts_of, heading, label, note_words, outcome_words, time_of, tokens_words
from dragoman.sessions.html_markdown import markdown_to_html
from dragoman.sessions.transcript import Note, Prompt, Reply, Step, ToolCallStep, Transcript, read_transcript
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob, FileRef, Part
from dragoman.values.parts import call_in_words
from dragoman.values.record import Entry

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Image types that hold only pixels; an SVG is a document that can contain scripts."""
_ABOUT_CHARS = 160
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
_STYLE = """\
:root { color-scheme: light dark;
  --back: #fff; --text: #1c1e21; --dim: #656d76; --line: #d8dee4; --prompt: #eef4ff; --code: #f6f8fa; --bad: #b42318;
  --gone: #ffebe9; --come: #e6ffec; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15181c; --text: #e4e6e9; --dim: #98a1ab; --line: #333a42; --prompt: #1d2b41; --code: #1e2328; --bad: #ff8f85;
    --gone: #4b1d1c; --come: #16371f; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 54rem; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .6rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 2rem; color: var(--dim); font-size: .85rem; }
dt, dd { margin: 0; overflow-wrap: anywhere; }
section { margin: 1.4rem 0; }
h2 { font-size: .8rem; font-weight: 600; margin: 0 0 .3rem; color: var(--dim); }
h2 small { font-weight: 400; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.prompt > .text { background: var(--prompt); border-radius: .5rem; padding: .7rem .9rem; }
.code { font: .82rem/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; background: var(--code);
  border-radius: .4rem; padding: .5rem .7rem; margin: .35rem 0; max-height: 30rem; overflow: auto; }
details { margin: .35rem 0; }
summary { cursor: pointer; color: var(--dim); font-size: .88rem; overflow-wrap: anywhere; }
.call { margin: .4rem 0; border-left: 3px solid var(--line); padding-left: .8rem; }
.call summary bdi { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; color: var(--text); }
.bad { color: var(--bad); }
.diff div { white-space: pre-wrap; overflow-wrap: anywhere; min-height: 1.5em; }
.diff .gone-line { background: var(--gone); }
.diff .come-line { background: var(--come); }
.markdown { unicode-bidi: isolate; overflow-wrap: anywhere; }
.markdown p { margin: .5rem 0; white-space: pre-wrap; }
.markdown li > p { margin: .1rem 0; }
.markdown h3, .markdown h4, .markdown h5, .markdown h6 { font-size: 1rem; margin: .9rem 0 .3rem; }
.markdown ul, .markdown ol { color: inherit; font-size: inherit; }
.markdown blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--dim); }
.markdown code { font: .85em ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; background: var(--code); padding: 0 .25em;
  border-radius: .25rem; white-space: pre-wrap; }
.markdown table { border-collapse: collapse; font-size: .9rem; }
.markdown th, .markdown td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: start; }
.markdown small { color: var(--dim); }
.gone > .text, .gone > details { opacity: .55; }
.note { color: var(--dim); font-size: .88rem; }
ul { margin: .3rem 0; padding-left: 1.2rem; color: var(--dim); font-size: .85rem; overflow-wrap: anywhere; }
img { display: block; max-width: 100%; max-height: 30rem; margin: .4rem 0; border-radius: .4rem; }
"""


def to_html(entries: Iterable[Entry], blobs: BlobStore | None = None) -> str:
    """One page that loads nothing and runs nothing. Images are embedded if `blobs` has them."""
    transcript = read_transcript(entries)
    title = _escape(" ".join(heading(transcript).split()))
    body = "\n".join(_section(step, blobs) for step in transcript.steps)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_escape(_POLICY)}">\n<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1 dir="auto">{title}</h1>\n{_facts(transcript)}\n{body}\n</body>\n</html>\n'
    )


def _facts(transcript: Transcript) -> str:
    facts = facts_of(transcript) | {label("tokens"): tokens_words(transcript.usage)}
    rows = (f"<dt>{name}</dt><dd>{_escape(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{''.join(rows)}</dl>"


def _section(step: Step, blobs: BlobStore | None) -> str:
    gone = " gone" if step.taken_back else ""
    match step:
        case Prompt(is_setup=True) | Prompt(is_note=True):
            folded = _details(label("setup" if step.is_setup else "told"), step.text)
            return f'<section class="setup{gone}">{folded}</section>'
        case Prompt():
            inside = f"{_head(label('prompt'), step)}{_text(step.text)}{_attachments(step.parts, blobs)}"
            return f'<section class="prompt{gone}">{inside}</section>'
        case Reply():
            return f'<section class="answer{gone}">{_reply(step, blobs)}</section>'
        case ToolCallStep():
            return f'<section class="call{gone}">{_call(step, blobs)}</section>'
        case Note():
            words, detail = note_words(step)
            inside = _details(words, detail) if detail else f'<span class="note">{_escape(words)}</span>'
            return f'<section class="note{gone}">{inside}</section>'


def _reply(step: Reply, blobs: BlobStore | None) -> str:
    marks = outcome_words(step)
    thoughts = "".join(_details(label("thought"), thought) for thought in step.thoughts)
    sources = dict.fromkeys(" ".join(filter(None, (each.title, each.uri))) for each in step.citations)
    listed = "".join(f"<li>{label('source')}: {_escape(source)}</li>" for source in sources if source)
    return (
        f"{_head(label('answer'), step, step.model)}"
        + (f'<div class="bad">{_escape(marks)}</div>' if marks else "")
        + f"{thoughts}{_markdown(step.text)}{_attachments(step.parts, blobs)}"
        + (f"<ul>{listed}</ul>" if listed else "")
    )


def _call(step: ToolCallStep, blobs: BlobStore | None) -> str:
    line = " ".join(call_in_words(step.call).split())
    line = clip(line, _ABOUT_CHARS)
    words = f"{outcome_words(step)}{', ' + label('taken_back') if step.taken_back else ''}"
    state = "" if step.outcome == "finished" else ' class="bad"'
    inside = "".join(map(_view, views_of(step))) + _attachments(step.content, blobs)
    return f"<details><summary><bdi>{_escape(line)}</bdi> <span{state}>{_escape(words)}</span></summary>{inside}</details>"


def _view(view: CallView) -> str:
    match view.kind:
        case "diff":
            lines = "".join(map(_diff_line, view.text.split("\n")))
            return f'<div class="code diff" dir="auto">{lines}</div>'
        case "error":
            return _text(view.text, "code bad")
        case "text":
            return _text(view.text, "code")


def _diff_line(line: str) -> str:
    kind = "come-line" if line.startswith("+") else "gone-line" if line.startswith("-") else "same-line"
    return f'<div class="{kind}">{_escape(line)}</div>'


def _markdown(text: str) -> str:
    return f'<div class="markdown" dir="auto">{markdown_to_html(text, _escape)}</div>' if text.strip() else ""


def _head(title: str, step: Step, model: str = "") -> str:
    about_it = [model, time_of(step.timestamp_ms), label("taken_back") if step.taken_back else ""]
    return f"<h2>{title} <small>{_escape(' · '.join(filter(None, about_it)))}</small></h2>"


def _details(title: str, text: str) -> str:
    return f"<details><summary>{_escape(title)}</summary>{_text(text, 'code')}</details>"


def _text(text: str, kind: str = "") -> str:
    # Not <pre>: a browser drops the first newline there.
    return f'<div class="text{" " + kind if kind else ""}" dir="auto">{_escape(text)}</div>' if text.strip() else ""


def _attachments(parts: Iterable[Part], blobs: BlobStore | None) -> str:
    blocks: list[str] = []
    for part in parts:
        if isinstance(part, Blob):
            data = blobs.get(part.sha256) if blobs is not None and part.mime in _IMAGES else None
            if data is None:
                blocks.append(f"<ul><li>{label('attached')}: {_escape(part.mime)}, {part.size:,} bytes</li></ul>")
            else:
                blocks.append(f'<img alt="{_escape(part.mime)}" src="data:{part.mime};base64,{base64.b64encode(data).decode()}">')
        elif isinstance(part, FileRef):
            blocks.append(f"<ul><li>{label('attached')}: {_escape(part.mime)} {_escape(part.uri)}</li></ul>")
    return "".join(blocks)


def _escape(text: str) -> str:
    return escape(escape_controls(text), quote=True)
