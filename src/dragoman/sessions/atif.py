"""A session in the Agent Trajectory Interchange Format, ATIF v1.8: what Harbor and others read, score and train on.

The format has closed objects, so what it has no field for stands in `extra`. A trajectory holds the conversation as it stands; what was
rejected or taken back is left out of it and counted in its totals, because it was paid for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dragoman import __version__
from dragoman.base.text import one_line
from dragoman.sessions.export_words import utc_of
from dragoman.sessions.last_run import LastRun, run_facts, words_for_file
from dragoman.sessions.transcript import Note, Prompt, Reply, ToolCallStep, Transcript, read_transcript
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolSpec
from dragoman.values.parts import text_of
from dragoman.values.record import AttemptFailed, Configured, Entry, ModelChanged, Rewound, Spent, Started, usage_of
from dragoman.values.usage import Prices, Usage
from dragoman.words import say

SCHEMA = "ATIF-v1.8"

PricesOf = Callable[[str, str], Prices | None]
"""The prices of a deployment's model; None where they are not known."""
CalledSessions = Callable[[str], Iterable[Sequence[Entry]]]
"""The sessions of agents that were called as tools in a session, by its id."""
_Fields = dict[str, Any]


def to_atif(
    entries: Iterable[Entry],
    *,
    prices_of: PricesOf = lambda deployment, model: None,
    called: CalledSessions = lambda session_id: (),
    is_held: bool | None = None,
) -> _Fields:
    """The trajectory as JSON data. `is_held`: whether a process has the session open, so that a run without an end is under way. Raises
    InputError where nothing was said, because the format has no trajectory without a step."""
    return _trajectory(tuple(entries), prices_of, called, set(), is_held=is_held)


def _trajectory(
    entries: Sequence[Entry], prices_of: PricesOf, called: CalledSessions, above: set[str], *, is_held: bool | None = None
) -> _Fields:
    transcript, served = read_transcript(entries), _Served(entries)
    inner = _called_agents(transcript, prices_of, called, above | {transcript.session_id})
    writing = _Steps(served, prices_of, {call: each["trajectory_id"] for call, each in inner})
    for system in _system_prompts(entries):
        writing.wait_with(system)
    for step in transcript.steps:
        writing.take(step)
    writing.finish()
    if not writing.steps:
        raise InputError(say("sessions.atif_empty"))
    return _filled(
        schema_version=SCHEMA,
        session_id=transcript.session_id,
        trajectory_id=transcript.session_id,
        agent=_agent(transcript, entries, served),
        steps=writing.steps,
        notes=" ".join(filter(None, (words_for_file(transcript.run, is_held=is_held), _left_out_words(writing.left_out)))),
        final_metrics=_totals(entries, transcript, served, prices_of, len(writing.steps)),
        extra=_filled(
            title=transcript.title,
            directories=list(transcript.directories),
            imported_from=transcript.imported_from,
            parent_session_id=transcript.parent,
            parent_call_id=transcript.parent_call,
            last_run=_last_run(transcript.run, is_held=is_held),
            failed_attempts=sum(isinstance(entry, AttemptFailed) for entry in entries) or None,
        ),
        subagent_trajectories=[each for _, each in inner],
    )


def _left_out_words(count: int) -> str:
    return say("sessions.atif_left_out", count=count) if count else ""


def _last_run(run: LastRun, *, is_held: bool | None) -> _Fields:
    """How the last run stands. What it took is in the totals, with that of the runs before."""
    facts = run_facts(run, is_held=is_held) or {}
    return _filled(outcome=facts.get("state"), error=run.error, message=one_line(run.words), turns=run.turns or None)


def _called_agents(transcript: Transcript, prices_of: PricesOf, called: CalledSessions, above: set[str]) -> list[tuple[str, _Fields]]:
    """The call and the trajectory of each agent that was called here. `above`: sessions that are being written, so that a damaged record
    whose sessions name each other comes to an end."""
    found: dict[str, tuple[str, _Fields]] = {}
    for entries in called(transcript.session_id) if transcript.session_id else ():
        head = next((entry for entry in entries if isinstance(entry, Started)), None)
        if head is None or not head.session_id or head.session_id in above:
            continue
        try:
            found[head.session_id] = (head.parent_call, _trajectory(entries, prices_of, called, above))
        except InputError:  # nothing was said in it
            continue
    return list(found.values())


def _agent(transcript: Transcript, entries: Iterable[Entry], served: _Served) -> _Fields:
    configured = [entry for entry in entries if isinstance(entry, Configured)]
    tools = configured[-1].tools if configured else ()
    return _filled(
        name="dragoman",
        version=__version__,
        model_name=served.name_at(transcript.steps[-1].seq if transcript.steps else 0, transcript.model),
        tool_definitions=list(map(_tool, tools)),
        extra=_filled(versions=sorted({version for each in configured for version in each.versions})),
    )


def _tool(spec: ToolSpec) -> _Fields:
    return {"type": "function", "function": {"name": spec.name, "description": spec.description, "parameters": spec.schema}}


def _totals(entries: Sequence[Entry], transcript: Transcript, served: _Served, prices_of: PricesOf, steps: int) -> _Fields:
    paid = [(entry, usage) for entry in entries if (usage := usage_of(entry)) is not None]
    costs = [served.cost_usd(entry, usage, prices_of) for entry, usage in paid]
    usage = transcript.usage
    known = [cost for cost in costs if cost is not None]
    return _filled(
        total_prompt_tokens=usage.told(usage.input_tokens),
        total_completion_tokens=usage.told(usage.output_tokens),
        total_cached_tokens=usage.told(usage.cache_read_tokens),
        total_cost_usd=sum(known) if paid and len(known) == len(costs) else None,
        total_steps=steps,
        extra={"llm_requests": len(paid)} | _further_tokens(usage),
    )


def _metrics(usage: Usage | None, cost_usd: float | None) -> _Fields:
    if usage is None or usage.is_unknown:
        return {}
    return _filled(
        prompt_tokens=usage.told(usage.input_tokens),
        completion_tokens=usage.told(usage.output_tokens),
        cached_tokens=usage.told(usage.cache_read_tokens),
        cost_usd=cost_usd,
        extra=_further_tokens(usage),
    )


def _further_tokens(usage: Usage) -> _Fields:
    """What the format has no field for."""
    return _filled(
        cache_write_tokens=usage.cache_write_tokens or None,
        reasoning_tokens=usage.thought_tokens or None,
        incomplete=usage.incomplete or None,
    )


# --- steps


class _Steps:
    """The steps of a trajectory, numbered from 1. An answer is one step with its calls and what came of them."""

    def __init__(self, served: _Served, prices_of: PricesOf, called: dict[str, str]) -> None:
        self.steps: list[_Fields] = []
        self.left_out = 0
        """Answers that were rejected or taken back."""
        self._served, self._prices_of, self._called = served, prices_of, called
        self._waiting: list[tuple[int, _Fields]] = []
        self._answer: tuple[int, _Fields] | None = None
        """The seq and the step of the last answer that counts."""

    def wait_with(self, system: tuple[int, _Fields]) -> None:
        """Add a system prompt before the first step that comes after it."""
        self._waiting.append(system)

    def take(self, step: Prompt | Reply | ToolCallStep | Note) -> None:
        while self._waiting and self._waiting[0][0] < step.seq:
            self._add(self._waiting.pop(0)[1])
        if step.taken_back or (isinstance(step, Reply) and step.rejected):
            self.left_out += isinstance(step, Reply)
            return
        match step:
            case Prompt():
                self._add(_prompt(step))
            case Reply():
                self._answer = step.seq, self._add(self._reply(step))
            case ToolCallStep() if self._answer is not None and self._answer[0] == step.seq:
                self._call(self._answer[1], step)
            case Note(kind="compressed"):
                self._add({"source": "system", "message": step.about, "extra": {"about": "summary"}}, step.timestamp_ms)
            case _:
                pass

    def finish(self) -> None:
        """Add what came after the last step."""
        while self._waiting and not self.steps:
            self._add(self._waiting.pop(0)[1])

    def _add(self, fields: _Fields, timestamp_ms: int = 0) -> _Fields:
        timestamp = {"timestamp": utc_of(timestamp_ms)} if utc_of(timestamp_ms) else {}
        self.steps.append({"step_id": len(self.steps) + 1} | timestamp | fields)
        return self.steps[-1]

    def _reply(self, step: Reply) -> _Fields:
        cost = self._served.price_at(step.seq, step.model, step.usage, self._prices_of)
        sources = [_filled(title=each.title, uri=each.uri, cited_text=each.cited_text) for each in step.citations]
        extra = _filled(
            broken_off=step.broken_off,
            sent_at=utc_of(step.sent_ms),
            first_token_at=utc_of(step.first_ms),
            attachments=_attachments(step.parts),
            citations=sources,
        )
        return (
            _stamped(step)
            | {"source": "agent", "message": step.text, "llm_call_count": 1}
            | _filled(
                model_name=self._served.name_at(step.seq, step.model),
                reasoning_content="\n\n".join(step.thoughts),
                metrics=_metrics(step.usage, cost),
                extra=extra,
            )
        )

    def _call(self, answer: _Fields, step: ToolCallStep) -> None:
        arguments = step.call.args
        facts = _call_facts(step)
        unread = {"arguments_text": step.call.arguments} if arguments is None else {}
        made = {"tool_call_id": step.call.id, "function_name": step.call.name, "arguments": arguments or {}}
        answer.setdefault("tool_calls", []).append(made | _filled(extra=unread | ({} if step.has_result else facts)))
        if not step.has_result:
            return
        result: _Fields = {"source_call_id": step.call.id, "content": step.output}
        if inner := self._called.get(step.call.id):
            result["subagent_trajectory_ref"] = [{"trajectory_id": inner}]
        answer.setdefault("observation", {"results": []})["results"].append(result | _filled(extra=facts))


def _prompt(step: Prompt) -> _Fields:
    """What the program says to the model by itself is the system's, though a service takes it in a user's message."""
    if not (step.is_setup or step.is_note):
        return (
            _stamped(step)
            | {"source": "user", "message": text_of(step.parts)}
            | _filled(extra=_filled(attachments=_attachments(step.parts)))
        )
    about = {"about": "environment" if step.is_setup else "note", "sent_as": "user"}
    return _stamped(step) | {"source": "system", "message": step.text, "extra": about}


def _call_facts(step: ToolCallStep) -> _Fields:
    command = step.command
    return {"outcome": step.outcome} | _filled(
        started_at=utc_of(step.started_ms),
        finished_at=utc_of(step.finished_ms),
        exit_code=command.exit_code if command else None,
        signal=command.signal if command else "",
        timed_out=(command.timed_out if command else False) or None,
        outside_sandbox=step.outside or None,
        changed=list(step.changed),
        attachments=_attachments(step.content),
    )


def _attachments(parts: Iterable[Part | Text | Blob | FileRef]) -> list[_Fields]:
    """The format takes paths of files beside it alone; the bytes are in a JSON export."""
    found: list[_Fields] = []
    for part in parts:
        match part:
            case Blob(mime=mime, sha256=sha256, size=size):
                found.append({"media_type": mime, "sha256": sha256, "bytes": size})
            case FileRef(mime=mime, uri=uri):
                found.append({"media_type": mime, "uri": uri})
            case _:
                pass
    return found


def _system_prompts(entries: Iterable[Entry]) -> Iterable[tuple[int, _Fields]]:
    """Each system prompt that differs from the one before."""
    last = ""
    for entry in entries:
        if isinstance(entry, Configured) and entry.system != last:
            last = entry.system
            if last:
                stamp = {"timestamp": utc_of(entry.timestamp_ms)} if utc_of(entry.timestamp_ms) else {}
                yield entry.seq, stamp | {"source": "system", "message": last}


class _Served:
    """Which deployment and model answered at which entry."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._seqs: list[int] = []
        self._models: list[tuple[str, str]] = []
        for entry in entries:
            if isinstance(entry, Rewound):
                self._change(entry.seq, *self._at(entry.to_seq))
            elif isinstance(entry, Configured | ModelChanged):
                self._change(entry.seq, entry.deployment or self._at(entry.seq)[0], entry.model)

    def name_at(self, seq: int, model: str) -> str:
        """`deployment/model`."""
        deployment, configured = self._at(seq)
        return "/".join(filter(None, (deployment, model or configured)))

    def price_at(self, seq: int, model: str, usage: Usage | None, prices_of: PricesOf) -> float | None:
        deployment, configured = self._at(seq)
        return self._cost(deployment, model or configured, usage, prices_of)

    def cost_usd(self, entry: Entry, usage: Usage, prices_of: PricesOf) -> float | None:
        deployment, configured = self._at(entry.seq)
        if isinstance(entry, Spent):
            deployment = entry.deployment or deployment
        return self._cost(deployment, getattr(entry, "model", "") or configured, usage, prices_of)

    def _cost(self, deployment: str, model: str, usage: Usage | None, prices_of: PricesOf) -> float | None:
        if usage is None or usage.is_unknown:
            return None
        prices = prices_of(deployment, model)
        return None if prices is None else prices.cost_usd(usage)

    def _change(self, seq: int, deployment: str, model: str) -> None:
        self._seqs.append(seq)
        self._models.append((deployment, model))

    def _at(self, seq: int) -> tuple[str, str]:
        place = bisect_right(self._seqs, seq)
        return self._models[place - 1] if place else ("", "")


def _stamped(step: Prompt | Reply) -> _Fields:
    return {"timestamp": utc_of(step.timestamp_ms)} if utc_of(step.timestamp_ms) else {}


def _filled(**fields: Any) -> _Fields:
    """Those that say something: the format has no nulls in its closed objects, and an empty list says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}
