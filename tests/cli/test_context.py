"""`dragoman context`, as a user runs it, over sessions as a run leaves them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.app.options import Options
from dragoman.app.setup import catalog_of, set_up
from dragoman.context.plan import Plan
from dragoman.conversation.pages.context import plan_now
from dragoman.conversation.pages.context_command import ContextCommand
from dragoman.loop.history import History
from dragoman.sessions.log import read_log
from dragoman.sessions.store import FileStore, StoredSession
from dragoman.values.messages import FinishReason, Response, Thought, ToolCall, ToolSpec, assistant, tool_result, user
from dragoman.values.record import Compressed, Pruned, Said
from dragoman.values.usage import Usage
from program import KEY, PROTOCOLS, Place, Service, calls, script, service

MINUTE_MS = 60_000
EVIL = "\x1b]0;owned\x07\x1b[2J\rover"
TOOLS = [ToolSpec.of(name, f"What {name} does. " * 8, {"type": "object", "properties": {}}) for name in ("run_shell", "read_file")]


class Kept:
    """A session in the making, with a clock that is set by hand: it ends now."""

    def __init__(self, place: Place, *, minutes: int = 60, model: str = "claude-opus-5", deployment: str = "anthropic") -> None:
        self.store = FileStore(place.home / "dragoman" / "data" / "sessions")
        self.session = self.store.create(place.work, versions=("dragoman test",))
        self.now_ms = time.time_ns() // 1_000_000 - minutes * MINUTE_MS
        self.history = History(self.session.journal, entries=self.session.loaded.entries, now_ms=lambda: self.now_ms)
        self.history.configure(model, "Be good. " * 40, TOOLS, session_id=self.session.session_id, deployment=deployment)
        self.input = 900

    def call(self, name: str = "run_shell", output: str = "output line\n" * 80, *, count: int = 1) -> None:
        for _ in range(count):
            call = ToolCall(f"c{len(self.history.entries)}", name, '{"command":"make test"}')
            usage = Usage(10, self.input, 400, 50)
            self.input += 400
            self.history.answer(Response(assistant(Thought("Hm."), "Running it.", call), FinishReason.TOOL_CALLS, usage=usage))
            self.history.start_tool(call)
            self.history.finish_tool(tool_result(call, output))
            self.now_ms += MINUTE_MS

    def closed(self) -> StoredSession:
        self.session.journal.close()
        return self.session


def worked(place: Place, *, count: int = 12, **options: Any) -> Kept:
    kept = Kept(place, **options)
    kept.history.say(user("Fix the parser"))
    kept.call(count=count)
    kept.history.answer(Response(assistant("Done."), FinishReason.STOP, usage=Usage(10, kept.input, 400, 20)))
    return kept


# --- looking


def test_what_is_outdated_and_waits_is_said_until_when_and_how_it_goes_now(place: Place) -> None:
    kept = Kept(place, minutes=22)
    kept.history.say(user("Work"))
    kept.input = 60_000
    kept.call(count=22, output="x" * 4_000)
    kept.history.answer(Response(assistant("Done."), FinishReason.STOP, usage=Usage(10, kept.input, 400, 20)))
    kept.closed()
    done = place.run("context")
    assert (done.code, done.err) == (0, "")
    words = " ".join(done.out.split())
    assert "results are outdated and stay for now" in words
    assert "of the request ($" in words
    assert re.search(r"they go when they make up 25% of the request, or the cache is cold, \d+[ms] from now if nothing is asked", words)
    assert "dragoman context prune" in words
    waiting = json.loads(place.run("context", "--output-format", "json").out)["next"]["waiting"]
    assert waiting["results"] > 0
    assert 0 < waiting["share"] <= 0.25
    assert place.run("context", "prune").code == 0
    assert "outdated and stay" not in place.run("context").out


def test_a_clock_behind_the_session_is_said(place: Place) -> None:
    kept = Kept(place, minutes=-90)
    kept.history.say(user("Work"))
    kept.closed()
    assert re.search(r"^Clock +this machine's clock says [-\d]+ [:\d]+, but the newest entry", place.run("context").out, re.M)


def test_a_page_with_bars_items_and_what_is_known(place: Place) -> None:
    kept = worked(place)
    kept.history.prune(["c3", "c6"], 400, "cold")
    session = kept.closed()
    done = place.run("context")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "Fix the parser"
    assert lines[1] == f"{session.session_id[-8:-4]} · anthropic/claude-opus-5 · as of entry 41"
    assert "of 1,000,000" in lines[3]
    [bar] = [line for line in lines if "run_shell results (12)" in line]
    assert "█" in bar
    assert "pruned" in bar
    assert any(line.split()[:1] == ["entry"] for line in lines)
    assert len([line for line in lines if "pruned by 41, was" in line]) == 2
    for word in ("Pruned    ", "Next      ", "Estimate  ", "Cache     ", "Cost      $"):
        assert any(line.startswith(word) for line in lines), word
    assert any("400 tokens (2 results), the cache was cold" in line for line in lines)
    assert "\x1b" not in done.out
    assert place.run("context", session.session_id).out.splitlines()[:2] == lines[:2]
    assert place.run("context", session.session_id[-8:-3]).out.splitlines()[:2] == lines[:2]


def test_what_the_next_request_would_prune_is_said_and_marked(place: Place) -> None:
    worked(place, count=9).closed()
    done = place.run("context", "--all").out
    assert "would be pruned" in done
    assert done.count("would be pruned next · ") == 4, "nine, and five of them stay"
    off = place.home / "dragoman" / "config.toml"
    off.write_text('[context.prune]\nschedule = "off"\n', encoding="utf-8")
    assert "nothing would be pruned" in place.run("context").out


def test_long_lists_are_shortened_unless_all_is_asked_for(place: Place) -> None:
    worked(place, count=40).closed()
    short, whole = place.run("context").out, place.run("context", "--all").out
    assert "more; --all shows them" in short
    assert "more; --all shows them" not in whole
    assert len(short.splitlines()) < 60 < 120 < len(whole.splitlines())
    newest = [line for line in short.splitlines() if line.strip().startswith("1") and "Done." in line]
    assert len(newest) == 1, "the newest is shown, and last"


def test_json_is_the_plan(place: Place) -> None:
    worked(place).closed()
    for option in (["--json"], ["--output-format", "json"]):
        plan = place.run("context", *option).json
        assert plan["tokens"] == sum(item["tokens"] for item in plan["items"])
        assert plan["model"] == "claude-opus-5"
        assert {item["kind"] for item in plan["items"]} >= {"system", "tools", "prompt", "answer", "thinking", "call", "result"}
        assert plan["costs"]["spent_usd"] > 0


def test_nothing_in_a_session_can_act_on_the_terminal(place: Place) -> None:
    kept = Kept(place)
    kept.history.say(user(f"Look {EVIL}"))
    kept.call(EVIL, EVIL)
    kept.closed()
    done = place.run("context", "--all")
    assert not any(char in done.out for char in "\x1b\x07\r")
    assert done.code == 0


def test_looking_changes_nothing(place: Place) -> None:
    session = worked(place).closed()
    before = Path(session.path).read_bytes(), sorted(os.listdir(os.path.dirname(session.path)))
    for arguments in (["context"], ["context", "--all", "--at", "9"], ["context", "--request"], ["context", "simulate"]):
        assert place.run(*arguments).code == 0
    after = Path(session.path).read_bytes(), sorted(os.listdir(os.path.dirname(session.path)))
    assert after == before


def test_an_imported_session_without_a_deployment_can_be_looked_at(place: Place) -> None:
    kept = Kept(place, model="some-model-nobody-knows", deployment="")
    kept.history.say(user("Hi"))
    kept.closed()
    done = place.run("context")
    assert done.code == 0
    assert "a guess: the model is not in the catalog" in done.out
    assert "the prices of some-model-nobody-knows are not known" in done.out


# --- --at


def command_for(place: Place, session: StoredSession, **options: Any) -> ContextCommand:
    setup = set_up(Options(command="context", directory=str(place.work), **options), place.env)
    store = FileStore(setup.places.sessions)
    return ContextCommand(setup, store, store.find(session.session_id, setup.workspace), catalog_of(setup))


def test_at_is_the_plan_of_what_had_happened_by_then(place: Place) -> None:
    kept = worked(place, count=3)
    kept.history.prune(["c4"], 100, "cold")
    kept.history.rewind(kept.history.entries[3])
    session = kept.closed()
    everything = read_log(session.path).entries
    for last in everything[::4]:
        entries = tuple(entry for entry in everything if entry.seq <= last.seq)
        command = command_for(place, session, at=last.seq)
        straight = plan_now(command, entries)
        assert msgspec.convert(place.run("context", "--at", str(last.seq), "--json").json, Plan) == straight
        view = History(entries=entries).view
        assert straight.seq == last.seq
        assert straight.tokens == view.tokens(command.find_model(view.deployment, view.model)[1].token_scale)


def test_at_goes_by_the_time_of_then(place: Place) -> None:
    worked(place, count=9).closed()
    now, then = place.run("context", "--json").json, place.run("context", "--at", "20", "--json").json
    assert (now["cache"]["warm"], now["next"]["prune"]) == (False, 4)
    assert (then["cache"]["warm"], then["next"]["prune"]) == (True, 0)


# --- --request


SCRIPT = script(
    ["thought: Let me see.", "text: Reading 读.", calls(("read_file", {"file_path": "a.txt"})), "usage: fresh=100 output=5"],
    calls(("read_file", {"file_path": "b.txt"}), ("list_directory", {"path": "."})),
    "text: Done.",
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_request_is_what_the_live_session_sent(protocol: str, place: Place, serve: Callable[..., Service]) -> None:
    (place.work / "a.txt").write_text("hello\nwörld 世界\n", encoding="utf-8")
    (place.work / "b.txt").write_text("b\n", encoding="utf-8")
    service = serve(SCRIPT)
    assert place.ask("Look at 它", model=PROTOCOLS[protocol]).code == 0
    sent = list(service.server.requests)
    assert len(sent) == 3
    [session] = FileStore(place.home / "dragoman" / "data" / "sessions").list(place.work)
    answers = [entry.seq for entry in read_log(session.path).entries if isinstance(entry, Said) and entry.message.role == "assistant"]
    for seq, exchange in zip(answers, sent, strict=True):
        process = place.start("context", "--request", "--at", str(seq - 1), env=dict.fromkeys(("GEMINI_API_KEY", "OPENAI_API_KEY"), ""))
        body, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        assert exchange.headers["content-length"] == str(len(body))
        assert json.loads(body, object_pairs_hook=list) == json.loads(json.dumps(exchange.body), object_pairs_hook=list)
        assert told.decode().splitlines()[0] == f"POST {service.url}{exchange.path}"
        assert KEY not in told.decode()
    assert (
        place.run("context", "--request", protocol, "--at", str(answers[0] - 1)).out
        == place.run("context", "--request", "--at", str(answers[0] - 1)).out
    )


def test_request_for_any_other_service(place: Place) -> None:
    worked(place, count=2).closed()
    bodies = {protocol: json.loads(place.run("context", "--request", protocol).out) for protocol in PROTOCOLS}
    assert set(bodies["gemini"]) >= {"contents", "systemInstruction"}
    assert set(bodies["anthropic"]) >= {"messages", "system", "max_tokens"}
    assert "input" in bodies["openai_responses"]
    assert bodies["openai_chat"]["messages"][0]["role"] in ("system", "developer")
    assert bodies["anthropic"]["model"] == "claude-opus-5", "its own, where that speaks the protocol"
    assert json.loads(place.run("context", "--request", "deepseek").out)["model"] == "deepseek-v4-pro"
    told = place.run("context", "--request", "openai/gpt-4.1", "--json").json
    assert (told["method"], told["body"]["model"]) == ("POST", "gpt-4.1")
    assert "authorization" not in {name.lower() for name in told["headers"]}


def test_a_header_of_the_users_own_is_not_shown(place: Place) -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    text = '[deployments.anthropic]\nbase_url = "https://me:hunter22@llm.example/v1?key=hunter22"\n'
    (place.home / "dragoman" / "config.toml").write_text(text + '[deployments.anthropic.headers]\nX-Corp = "hunter22"\n', encoding="utf-8")
    worked(place, count=1).closed()
    for option in ([], ["--json"]):
        done = place.run("context", "--request", *option)
        assert done.code == 0
        assert "hunter22" not in done.out + done.err
        assert "REDACTED" in done.out + done.err


# --- what is wrong


def test_before_the_first_prompt_it_shows_what_a_conversation_begins_with(place: Place) -> None:
    (place.work / "log.txt").write_text("Muscat")
    for words in ((), ("new",)):
        done = place.run("context", *words, env={"ANTHROPIC_API_KEY": KEY})
        assert done.code == 0
        assert "What a new conversation here begins with" in done.out
        assert "log.txt" in done.out
        assert done.out.endswith("My setup is complete. I will provide my first command in the next turn.\n")
    assert not (place.home / "dragoman" / "data").exists(), "looking makes nothing"


def test_what_it_shows_is_what_is_sent(place: Place) -> None:
    """With `-p` nobody can answer, and the model is told so: but for these lines it is the same."""
    with service("text: Hello.") as made:
        shown = json.loads(place.run("context", "new", "--request", "anthropic/claude-opus-5", env=made.env).out)
        assert place.ask("hi", env=made.env).code == 0
        [sent] = made.requests
        assert "What a new conversation here begins with" in place.run("context", "new", env=made.env).out, "also where there are sessions"
    assert _text(shown["system"]) == _text(sent["system"])
    differing = ("Approval mode: ", "Questions: ", "Commands run ")
    told = [_text(each["messages"][0]["content"]) for each in (shown, sent)]
    lines = [[line for line in text.splitlines() if not line.startswith(differing)] for text in told]
    assert "\n".join(lines[1]) == "\n".join(lines[0]) + "hi"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_it_is_about_no_session_and_the_model_may_be_named(place: Place) -> None:
    place.run("context", "new", "latest").complaint(42, "leave 'latest' out")
    place.run("context", "new", "--request", "nosuch").complaint(52, "no model is called 'nosuch'")
    body = json.loads(place.run("context", "new", "--request", "gemini", env={"GEMINI_API_KEY": KEY}).out)
    assert body["contents"][0]["role"] == "user"
    whole = place.run("context", "new", "--json", "--lang", "zh", env={"ANTHROPIC_API_KEY": KEY}).json
    assert whole["messages"][0]["parts"][0]["text"].startswith("This is Dragoman")


def test_no_session_yet(place: Place) -> None:
    for action in (["latest"], ["simulate"], ["prune"], ["compress"]):
        place.run("context", *action).complaint(42, "this folder has no session yet", "dragoman sessions list --all")
    assert not (place.home / "dragoman" / "data").exists(), "looking makes nothing"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], ["nonsense", "dragoman sessions list"]),
        (["deadbeef"], ["there is no session"]),
        (["--at", "99"], ["--at 99", "the first is 1, the last ", "dragoman sessions show"]),
        (["--at", "none"], ["--at", "'none'"]),
        (["--request", "gemni"], ["'gemni'", "openai_responses", "dragoman models", "did you mean gemini?"]),
        (["--request", "3"], ["name a session before --request"]),
        (["latest", "1"], ["unexpected argument '1'"]),
        (["simulate", "latest", "1"], ["dragoman context simulate takes one session"]),
        (["simulate", "--request"], ["--request does not work with dragoman context simulate"]),
        (["compress", "--at", "3"], ["--at does not work with dragoman context compress"]),
        (["--focus", "x"], ["--focus does not work with dragoman context;"]),
        (["--output-format", "stream-json"], ["text and json"]),
        (["--max-turns", "3"], ["--max-turns does not work with dragoman context"]),
    ],
)
def test_a_mistake_is_named_with_what_to_do(arguments: list[str], words: list[str], place: Place) -> None:
    worked(place, count=1).closed()
    place.run("context", *arguments).complaint(42, *words)


def test_a_mistake_is_told_as_json_where_that_is_asked_for(place: Place) -> None:
    worked(place, count=1).closed()
    done = place.run("context", "--at", "99", "--json")
    assert (done.code, done.err) == (42, "")
    assert "--at 99" in done.json["error"]["message"]


def test_a_session_that_holds_nothing(place: Place) -> None:
    Kept(place).closed()
    assert place.run("context").code == 0
    place.run("context", "--request").complaint(42, "has nothing to send")
    place.run("context", "simulate").complaint(42, "no answers yet")
    assert "Nothing is outdated" in place.run("context", "prune").out


def test_a_session_of_a_service_that_is_gone(place: Place) -> None:
    kept = Kept(place, deployment="gone")
    kept.history.say(user("Hi"))
    kept.closed()
    assert place.run("context").code == 0
    done = place.run("context", "--request")
    assert done.code == 52
    assert "--request NAME" in done.err
    assert place.run("context", "--request", "gemini").code == 0


# --- simulate


def test_simulate_tells_what_other_ways_would_have_cost(place: Place) -> None:
    worked(place, count=30).closed()
    done = place.run("context", "simulate")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("31 requests, ")
    [never] = [line for line in lines if line.startswith("never")]
    assert never.split()[1] == "100%"
    assert never.split()[2].startswith("$")
    assert {"request", "turn", "cold", "economic", "auto", "hindsight"} <= {line.split()[0] for line in lines if line}
    assert any(line.startswith("auto *") for line in lines), "as configured"
    told = place.run("context", "simulate", "--json").json
    assert told["requests"] == 31
    never_usd = {cost["prices"]: cost["cost_usd"] for cost in told["costs"] if cost["policy"] == "none"}
    for cost in told["costs"]:
        assert cost["percent"] == pytest.approx(100 * cost["cost_usd"] / never_usd[cost["prices"]])
        if cost["policy"] == "optimum":
            assert cost["percent"] <= 100.0001


def test_simulate_says_how_to_get_what_it_shows(place: Place) -> None:
    """It said what pruning the results of all tools would save, and not what to write for it."""
    worked(place, count=30).closed()
    config = place.home / "dragoman" / "config.toml"
    out = " ".join(place.run("context", "simulate").out.split())
    found = re.search(rf"write under \[context.prune\] in {re.escape(str(config))}, one to a line: (.*?); schedule = one of", out)
    assert found is not None, out
    before = place.run("context", "simulate", "--json").json
    assert before["settings"]["all"] == {"tools": ["*"], "age_minutes": 0.0, "keep": 5}
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[context.prune]\n" + found[1].replace("; ", "\n"), encoding="utf-8")
    shares = lambda told, rule: [each["percent"] for each in told["costs"] if (each["rule"], each["policy"]) == (rule, "auto")]  # noqa: E731
    assert shares(place.run("context", "simulate", "--json").json, "terminal") == shares(before, "all")
    assert "To prune like this" not in place.run("context", "simulate").out, "it is configured already"


def test_simulate_says_what_letting_files_go_that_were_read_again_would_have_saved(place: Place) -> None:
    kept = Kept(place)
    kept.history.say(user("Mend it"))
    for _ in range(8):
        call = ToolCall(f"c{len(kept.history.entries)}", "read_file", '{"file_path": "a.py"}')
        kept.history.answer(Response(assistant(call), FinishReason.TOOL_CALLS, usage=Usage(10, kept.input, 3_000, 50)))
        kept.input += 3_000
        kept.history.finish_tool(tool_result(call, "a line\n" * 1_000), saw=("/work/a.py",))
        kept.now_ms += MINUTE_MS
    kept.history.answer(Response(assistant("Done."), FinishReason.STOP, usage=Usage(10, kept.input, 400, 20)))
    kept.closed()
    out = " ".join(place.run("context", "simulate").out.split())
    assert "files that were read again since (the latest reading stays)" in out
    assert "write superseded = true under [context.prune] in" in out
    told = place.run("context", "simulate", "--json").json
    assert told["settings"]["superseded"]["superseded"] is True
    tokens = {each["rule"]: each["tokens"] for each in told["costs"] if each["policy"] == "optimum"}
    assert tokens["superseded"] <= tokens["terminal"]
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[context.prune]\nsuperseded = true\n", encoding="utf-8")
    assert "write superseded = true" not in place.run("context", "simulate").out, "it is configured already"
    done = place.run("context", "prune")
    assert done.out.startswith("Pruned 3 results: "), "of eight, but the five newest"


def test_simulate_without_prices_of_its_own_shows_others(place: Place) -> None:
    worked(place, count=3, model="unknown", deployment="ollama").closed()
    done = place.run("context", "simulate")
    assert done.code == 0
    assert "The prices of unknown are not known." in done.out
    assert "anthropic 1h" in done.out


# --- changing


def test_prune_lets_go_what_is_outdated_and_needs_no_key(place: Place) -> None:
    session = worked(place, count=9).closed()
    before = read_log(session.path).entries
    done = place.run("context", "prune")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Pruned 4 results: about ")
    *same, pruned = read_log(session.path).entries
    assert tuple(same) == before
    assert isinstance(pruned, Pruned)
    assert len(pruned.call_ids) == 4
    again = place.run("context", "prune", "--json").json
    assert again["pruned"] == 0
    assert again["original_tokens"] == again["new_tokens"]
    assert place.run("context", "--json").json["savings"]["results"] == 4


def test_prune_asks_for_no_schedule(place: Place) -> None:
    """The cache is warm, and what has only just become outdated would not go by itself yet."""
    worked(place, count=17, minutes=17).closed()
    assert place.run("context", "--json").json["next"]["prune"] == 0
    assert place.run("context", "prune", "--json").json["pruned"] >= 1


def test_prune_waits_for_nobody_who_has_the_session_open(place: Place) -> None:
    kept = worked(place, count=9)
    done = place.run("context", "prune")
    assert done.code == 42
    assert "is in use" in done.err
    kept.closed()


SNAPSHOT = "text: <state_snapshot><goal>Fix the parser</goal><done>Ran make.</done></state_snapshot>"


def test_compress_asks_the_model_and_tells_the_sizes(place: Place, serve: Callable[..., Service]) -> None:
    session = worked(place, count=30).closed()
    service = serve(SNAPSHOT)
    done = place.run("context", "compress", "--focus", "the tokenizer")
    assert (done.code, done.err) == (0, ""), done
    assert done.out.startswith("Summarised: about ")
    assert len(service.requests) == 1
    assert "the tokenizer" in json.dumps(service.requests[0])
    [compressed] = [entry for entry in read_log(session.path).entries if isinstance(entry, Compressed)]
    assert compressed.new_tokens < compressed.original_tokens
    page = place.run("context").out
    assert "summarised by" in page
    assert "summary" in page


def test_compress_is_forced_and_says_that_a_short_conversation_grew(place: Place, serve: Callable[..., Service]) -> None:
    kept = Kept(place)
    kept.history.say(user("Hi"))
    kept.history.answer(Response(assistant("Hello."), FinishReason.STOP))
    session = kept.closed()
    serve(SNAPSHOT)
    done = place.run("context", "compress")
    assert (done.code, done.err) == (0, ""), done
    assert done.out.startswith("Summarised: about ")
    assert "longer than what it stands for" in done.out
    [compressed] = [entry for entry in read_log(session.path).entries if isinstance(entry, Compressed)]
    assert compressed.new_tokens > compressed.original_tokens


def test_compress_says_why_it_was_of_no_use(place: Place, serve: Callable[..., Service]) -> None:
    kept = Kept(place)
    kept.history.say(user("Hi"))
    session = kept.closed()
    service = serve("text: I would rather not.")
    done = place.run("context", "compress")
    assert (done.code, service.requests) == (0, [])
    assert done.out.startswith("Nothing was summarised: ")
    assert place.run("context", "compress", "--json").json["status"] == "noop"
    kept.store.open(session.path).journal.close()


def test_a_summary_that_is_none_fails(place: Place, serve: Callable[..., Service]) -> None:
    worked(place, count=30).closed()
    serve("text: I would rather not.")
    done = place.run("context", "compress")
    assert done.code == 57
    assert done.out.startswith("Not summarised (empty): ")
    assert "unchanged" not in done.out, "the attempt is recorded, and was paid for"


def test_compress_needs_a_key_and_says_which(place: Place) -> None:
    worked(place, count=30).closed()
    place.run("context", "compress").complaint(41, "ANTHROPIC_API_KEY")


# --- the words in a pruned result's place


def test_a_session_says_what_stands_for_a_pruned_result(place: Place, serve: Callable[..., Service]) -> None:
    """PRUNE-5: the founding words are Chinese; an agent says it in the language that was chosen, fixed when the session starts."""
    serve(script("text: one", "text: two", "text: three"))
    assert place.ask("hi").code == 0
    config = place.home / "dragoman" / "config.toml"
    config.write_text('[context.prune]\nplaceholder = "(gone)"\n', encoding="utf-8")
    assert place.ask("more", "--resume", model="anthropic/claude-sonnet-5-5").code == 0
    assert place.ask("another").code == 0
    store = FileStore(place.home / "dragoman" / "data" / "sessions")
    new, old = (History(entries=read_log(each.path).entries).view.placeholder for each in store.list(place.work))
    assert (old, new) == ("(outdated output, removed to save room)", "(gone)")


def test_in_chinese_the_words_are_the_librarys(place: Place, serve: Callable[..., Service]) -> None:
    serve("text: one")
    assert place.ask("hi", "--lang", "zh").code == 0
    [found] = FileStore(place.home / "dragoman" / "data" / "sessions").list(place.work)
    assert History(entries=read_log(found.path).entries).view.placeholder == "此命令返回内容已过时"
