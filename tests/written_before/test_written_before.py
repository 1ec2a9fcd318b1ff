"""What was written before opens as it did: session logs, exports, the configuration and the grants of an earlier version.

Everything goes through the command line, whose words and files outlive the inside. README.md says what the fixtures are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from program import service
from written_before.desk import HERE, NAMES, SETTINGS, VOYAGE, Desk, log_of

# --- the one function that knows the inside


def next_request(log: Path) -> dict[str, Any]:
    """The request that would be sent next, as JSON. When the inside moves, this changes and nothing else here does."""
    import msgspec

    from dragoman.loop.history import History
    from dragoman.sessions.log import read_log

    return json.loads(msgspec.json.encode(History(entries=read_log(log).entries).request))


# --- what is in the fixtures

EXPORTED = ("compressed", "model-changed")
"""Those whose exports are kept as files, too."""
FORMS = {"markdown": "md", "json": "json", "record": "record.json"}
"""As HTML a session is the page of the viewer by now (viewer/test_export.py), and no longer what it was."""
SERVICES = ("voyage-gemini/big", "voyage-chat/big", "voyage-responses/big", "voyage-anthropic/big")
ANSWERS = {"asked-again": 'text: "{\\"reply\\": {\\"answer\\": \\"Done.\\"}}"'}
"""What a service says to a session that goes on, where the form of answers is bound."""
KINDS = (
    "started configured said answer_rejected tool_started tool_finished files_changed files_restored pruned compressed not_compressed"
    " spent model_changed rewound titled sung"
)
"""Every kind of entry there was, and one of a later version."""
NOTES = (
    "This is Dragoman. We are setting up the context for our chat.",
    "This is Dragoman. Something in the context of our chat has changed:\\n\\nToday's date is",
    "This is Dragoman. Something in the context of our chat has changed:\\n\\nI'm working in these directories:",
    "Your last answer was cut off at the output limit.",
    "Your last answer held a tool call that could not be read (",
    "You seem to be going in circles: ",
    "Answer my question now, in a short sentence,",
    "My question was: ",
    "A tool call in your last answer could not be read",
    "[A summary, and not a new message from the person.]",
)
"""How everything begins that the program told the model, as it stands in a log."""


# --- how a session opens: all of it is in expected/, written by write_expected.py


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def as_opened(desk: Desk, name: str) -> dict[str, Any]:
    """What there is to see of a session without changing it."""
    session_id = NAMES[name]
    desk.configure(SETTINGS.get(name, ""))
    shown = json.loads(desk.dragoman("sessions", "show", session_id, "--output-format", "json"))
    (row,) = (row for row in rows(desk) if row["session_id"] == session_id)
    request = next_request(log_of(name, desk.home / "data" / "sessions"))
    return {
        "row": row,
        "shown": shown | {"steps": [step_line(step) for step in shown["steps"]]},
        "prompts": [step["seq"] for step in shown["steps"] if step["type"] == "prompt"],
        "plan": plan(desk, session_id),
        "request": request | {"tools": [f"{tool['name']} {sha256(json.dumps(tool))}" for tool in request.get("tools", ())]},
        "bodies": {service: sha256(desk.dragoman("context", session_id, *which)) for service, which in SENT_TO.items()},
        "exports": {form: sha256(exported(desk, name, form)) for form in FORMS},
    }


SENT_TO = {"its own service": ("--request",)} | {service: ("--request", service) for service in SERVICES}


def rows(desk: Desk) -> list[dict[str, Any]]:
    return desk.at_voyage(json.loads(desk.dragoman("sessions", "list", "--all", "--output-format", "json"))["sessions"])


def plan(desk: Desk, session_id: str) -> list[str]:
    """A line for each thing in the context, at the moment of the last entry: then it does not depend on the clock."""
    last_seq = max(entry["seq"] for entry in entries(desk.home / "data" / "sessions", session_id))
    found = json.loads(desk.dragoman("context", session_id, "--at", str(last_seq), "--json"))
    return [" ".join(str(item.get(key, "-")) for key in ("seq", "kind", "state", "tokens", "by_seq")) for item in found["items"]]


def entries(sessions: Path, session_id: str) -> list[dict[str, Any]]:
    (log,) = sessions.glob(f"*/{session_id}.jsonl")
    return [json.loads(line) for line in log.read_bytes().splitlines() if line.endswith(b'"}')]


SOUGHT = ("muscat", "days of the voyage", "dragoman", "going in circles", "日記")


def found(desk: Desk, words: str) -> list[str]:
    """A line for each session in which these words are found."""
    hits = json.loads(desk.dragoman("sessions", "search", words, "--all", "--output-format", "json"))["hits"]
    return [f"{hit['session']['session_id']} {hit['matches']} {hit['seq']} {hit['role']}" for hit in hits]


def step_line(step: Mapping[str, Any]) -> str:
    """`12 prompt`, `15 call finished, taken back`."""
    marks = [step[key] for key in ("outcome", "kind", "rejected", "broken_off") if step.get(key)]
    return ", ".join([" ".join([str(step["seq"]), step["type"], *marks]), *(["taken back"] if step["taken_back"] else [])])


def exported(desk: Desk, name: str, form: str) -> str:
    text = desk.dragoman("sessions", "export", NAMES[name], "--as", form)
    if form == "json":  # entries say more than they did: who speaks, what about, and which files a result shows
        text = re.sub(r',"(?:by|about)":"\w+"|,"(?:saw|wrote)":\[[^]]*\]', "", text)
    return text


def configured(desk: Desk) -> dict[str, dict[str, Any]]:
    """Every key of config.toml with its value and source. In a process of its own, because it chooses another language."""
    return desk.run_apart("", "config", "--config", str(HERE / "config.toml"), "--output-format", "json").json["values"]


def as_undone(desk: Desk, name: str) -> list[dict[str, Any]]:
    """What each `undo` says and leaves in the workspace, until there is nothing to undo or it is refused."""
    desk.take(name)
    seen: list[dict[str, Any]] = []
    before, after = None, files_in(desk.work)
    while before != after:
        done = desk.run("sessions", "undo", NAMES[name])
        before, after = after, files_in(desk.work)
        seen.append(desk.at_voyage({"code": done.code, "out": done.out, "err": done.err, "files": after}))
    return seen


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def as_rewound(desk: Desk, name: str) -> dict[str, Any]:
    """What would be sent after going back to before the last prompt."""
    log = desk.take(name)
    shown = json.loads(desk.dragoman("sessions", "show", NAMES[name], "--output-format", "json"))
    to_seq = max(step["seq"] for step in shown["steps"] if step["type"] == "prompt" and not step["taken_back"]) - 1
    desk.dragoman("sessions", "rewind", NAMES[name], "--to", str(to_seq))
    messages = desk.at_voyage(next_request(log)["messages"]) if to_seq > 2 else []
    return {"to_seq": to_seq, "messages": len(messages), "sha256": sha256(json.dumps(messages))}


def as_compressed(desk: Desk, name: str) -> dict[str, Any]:
    """What comes of a compression: with the summary stand the person's own words, and none of the program's."""
    desk.take_all()
    desk.configure(SETTINGS.get(name, ""))
    with service('text: "<snapshot>We reached Muscat.</snapshot>"') as served:
        desk.env["SERVICE_URL"] = served.url
        desk.run("context", "compress", NAMES[name])
    last = entries(desk.home / "data" / "sessions", NAMES[name])[-1]
    kept = ("kind", "after_seq", "through_seq", "summary") if last["kind"] == "compressed" else ("kind", "status")
    return {key: last[key] for key in kept if key in last}


def as_resumed(desk: Desk, name: str) -> dict[str, Any]:
    """What the service is sent when somebody goes on with a session; but not what the program says of itself, its tools and the conditions
    of work today. Of the latter a session is told that began elsewhere, when it is first continued here; others are not."""
    log = desk.take(name)
    before = log.read_bytes()
    before = before[: before.rindex(b"\n") + 1]
    with service(ANSWERS.get(name, "text: Done.")) as served:
        done = desk.run_apart(served.url, "--resume", NAMES[name], "-p", "Go on from here.")
        assert (done.code, done.out) == (0, "Done.\n"), done
        (body,) = served.requests
    assert log.read_bytes().startswith(before), "a log only grows"
    ours = {"system", "systemInstruction", "instructions", "tools", "response_format"}
    kept = {key: value for key, value in body.items() if key not in ours}
    if "messages" in kept:
        kept["messages"] = [message for message in kept["messages"] if message["role"] != "system"]
    return desk.at_voyage(without_conditions(kept))


def without_conditions(value: Any) -> Any:
    """Without the paragraph of a first message about the mode, the boundary around commands and who can answer."""
    match value:
        case str() if value.startswith(NOTES[0]):
            return "\n\n".join(part for part in value.split("\n\n") if not part.startswith("Approval mode: "))
        case dict():
            return {key: without_conditions(each) for key, each in value.items()}
        case list():
            return [without_conditions(each) for each in value]
        case _:
            return value


# --- the tests


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """All sessions, to be looked at."""
    made = Desk(tmp_path_factory.mktemp("desk"))
    made.take_all()
    yield made
    made.place.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Desk]:
    """A desk for one session, which may be changed."""
    made = Desk(tmp_path / "own")
    yield made
    made.place.close()


def expected(name: str) -> dict[str, Any]:
    found = json.loads((HERE / "expected" / f"{name}.json").read_text())
    if isinstance(found, dict) and isinstance(exports := found.get("exports"), dict):
        exports.pop("html", None)
    return found


def test_the_fixtures_hold_every_kind_of_entry_and_of_note() -> None:
    logs = [log_of(name, HERE / "sessions").read_text() for name in NAMES]
    found = {entry["kind"] for session_id in NAMES.values() for entry in entries(HERE / "sessions", session_id)}
    assert found == set(KINDS.split())
    assert [note for note in NOTES if not any(f'"text":"{note}' in log for log in logs)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_session_opens_as_it_did(name: str, desk: Desk) -> None:
    wanted = expected(name)
    for key, value in as_opened(desk, name).items():
        assert value == wanted[key], key


@pytest.mark.parametrize("name", NAMES)
def test_a_session_is_shown_as_it_was(name: str, desk: Desk) -> None:
    assert desk.dragoman("sessions", "show", NAMES[name]) == (HERE / "expected" / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_session_goes_on_as_it_did(name: str, own: Desk) -> None:
    resumed = as_resumed(own, name)
    assert resumed == expected(name)["resumed"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_files_are_put_back(name: str, own: Desk) -> None:
    assert as_undone(own, name) == expected(name)["undone"]


@pytest.mark.parametrize("name", NAMES)
def test_going_back_leads_to_the_same_place(name: str, own: Desk) -> None:
    assert as_rewound(own, name) == expected(name)["rewound"]


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_keeps_the_same_words(name: str, own: Desk) -> None:
    assert as_compressed(own, name) == expected(name)["compressed"]


def test_the_same_is_found(desk: Desk) -> None:
    assert {words: found(desk, words) for words in SOUGHT} == expected("search")


@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("form", FORMS)
def test_an_export_is_what_it_was(name: str, form: str, desk: Desk) -> None:
    desk.configure("")
    assert exported(desk, name, form) == (HERE / "exports" / f"{name}.{FORMS[form]}").read_text()


@pytest.mark.parametrize("name", EXPORTED)
def test_an_export_can_be_taken_in_again(name: str, own: Desk) -> None:
    said = own.dragoman("sessions", "import", str(HERE / "exports" / f"{name}.json"))
    (row,) = rows(own)
    assert row["session_id"] in said
    shown = own.dragoman("sessions", "show", row["session_id"])
    shown = shown.replace(row["session_id"], NAMES[name])
    assert own.at_voyage(shown) == (HERE / "expected" / f"{name}.txt").read_text()


def test_a_session_of_another_program_is_taken_in_as_it_was(own: Desk) -> None:
    own.dragoman("sessions", "import", str(HERE / "foreign-pi.jsonl"))
    (row,) = rows(own)
    (log,) = (own.home / "data" / "sessions").glob(f"*/{row['session_id']}.jsonl")
    assert next_request(log)["messages"] == expected("imported")["request"]["messages"][:4]


def test_the_configuration_is_read_as_it_was(own: Desk) -> None:
    values, wanted = configured(own), expected("config")
    assert {key: values[key]["value"] for key in wanted} == wanted
    assert {values[key]["source"]["kind"] for key in wanted} == {"user"}


def test_the_configuration_still_has_its_effect(own: Desk) -> None:
    with service("text: Done.") as served:
        done = own.run_apart(served.url, "--config", str(HERE / "config.toml"), "-p", "Who is the cook?")
        assert (done.code, done.out) == (0, "Done.\n"), done
        (body,) = served.requests
    sent = {key: body[key] for key in ("model", "temperature", "top_p", "max_tokens")}
    assert sent == {"model": "big", "temperature": 0.25, "top_p": 0.5, "max_tokens": 900}
    system = body["messages"][0]["content"]
    assert system.startswith("You keep the books of the ship Halcyon.")
    assert 'respond with JSON in this exact format:\n\n```json\n{\n  "tool_call": {' in system
    assert "**read_file**" in system
    assert "**run_shell**" not in system


def test_what_was_granted_runs_unasked(own: Desk) -> None:
    own.take("program-native")
    grants = (HERE / "grants.jsonl").read_text().replace(VOYAGE, os.path.realpath(own.work))
    (own.home / "data" / "grants.jsonl").write_text(grants)
    script = 'call id=a: run_shell {"command": "wc -l log.txt"}\ncall id=b: run_shell {"command": "touch log.txt"}\n---\ntext: Done.'
    with service(script) as served:
        done = own.run_apart(served.url, "-m", "voyage-chat/big", "-p", "How long is the log?")
        assert (done.code, done.out) == (0, "Done.\n"), done
        results = [message["content"] for message in served.requests[-1]["messages"] if message["role"] == "tool"]
    assert results[0] == "2 log.txt"
    assert "a person's approval" in results[1]
    with service(script) as served:
        assert "the command: wc -l log.txt" in own.run_apart(served.url, "approvals").out
