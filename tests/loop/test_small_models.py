"""What a small model is given by its profile: a short prompt, few tools, answers under a grammar, and an end to calling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.loop.guard import LoopGuard
from dragoman.loop.small_model import advise_only, shorten
from dragoman.loop.unsupported import is_about_files
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools.constrained import read_constrained
from dragoman.text_tools.examples import examples
from dragoman.values.events import NoticeGiven, TurnStarted
from dragoman.values.messages import ToolCall, ToolSpec
from dragoman.values.notes import ANSWER_NOTE, ASKED_AGAIN, GREETING
from dragoman.values.parts import text_of
from dragoman.values.profile import Profile, SmallModel
from dragoman.values.record import AnswerUnchecked

FEW_TOOLS = {"read_file": ("file_path",), "list_directory": ("path",)}
SMALL = Profile(
    tools="text",
    small=SmallModel(
        bound_calls=True,
        short_prompt=True,
        few_tools=FEW_TOOLS,
        answer_after_calls=1,
    ),
)
UNBOUND_FEW = Profile(tools="text", small=SmallModel(answer_after_calls=1, short_prompt=True, few_tools=FEW_TOOLS))
UNBOUND = Profile(tools="text", small=SmallModel(answer_after_calls=1, short_prompt=True))
HELLO = 'text: {"reply": {"answer": "Hello."}}'
QUESTION = "what is the word?"
READ = 'text: {"reply": {"name": "read_file", "arguments": {"file_path": "a.txt"}}}'


def run(script: str, folder: Path, profile: Profile = SMALL, **options: Any) -> tuple[Agent, ScriptedProvider, str]:
    (folder / "a.txt").write_text("The word is marmalade.\n")
    provider = ScriptedProvider(script, profile=profile)
    agent = make_agent(provider, workspace=folder, **options)
    return agent, provider, asyncio.run(_ran(agent)).text


def results_of(agent: Agent) -> list[str]:
    return [text_of(result.content) for message in agent.history.view.messages for result in message.results]


async def _ran(agent: Agent) -> Any:
    async with agent:
        return await agent.run(QUESTION)


def test_every_answer_is_bound_to_one_call_or_words_until_it_must_answer(tmp_path: Path) -> None:
    agent, provider, text = run(f'{READ}\n---\ntext: {{"reply": {{"answer": "It is marmalade."}}}}', tmp_path)
    assert text == "It is marmalade."
    first, last = provider.requests
    assert '"read_file"' in first.settings.response_schema
    assert '"answer"' in last.settings.response_schema
    assert '"read_file"' not in last.settings.response_schema
    assert last.messages[-1].text == ASKED_AGAIN + QUESTION, "what it has read last is what it answers"
    assert [item.about for item in agent.history.view.items if item.message == last.messages[-1]] == ["answer_now"], "not a prompt"
    assert first.system == last.system, "the prefix that the engine has read stays"
    assert [message.text for message in agent.history.view.messages].count(ASKED_AGAIN + QUESTION) == 1, (
        "what the model is told is on the record"
    )


def test_a_question_asked_while_it_works_is_the_one_it_answers_next(tmp_path: Path) -> None:
    """It may call again for it, is not reminded of the question before, and its answer is judged by the new one."""
    (tmp_path / "a.txt").write_text("The word is marmalade.\n")
    answer = 'text: {"reply": {"answer": "It is marmalade."}}'
    provider = ScriptedProvider(f"{READ}\n---\nwait: 0.1\n{answer}\n---\n{answer}", profile=SMALL)

    async def go() -> tuple[str, list[str]]:
        async with make_agent(provider, workspace=tmp_path) as agent:
            asking = agent.run(QUESTION)
            marks: list[str] = []
            async for event in asking:
                if isinstance(event, TurnStarted) and event.turn == 2:
                    asking.steer("do the tests pass?")
                elif isinstance(event, NoticeGiven) and event.about == "answer":
                    marks.append(event.message)
            return asking.result.unchecked, marks

    unchecked, marks = asyncio.run(go())
    last = provider.requests[-1]
    assert last.messages[-1].text == "do the tests pass?"
    assert '"read_file"' in last.settings.response_schema
    assert unchecked
    assert marks == [unchecked]


def test_where_nothing_binds_it_is_told_to_answer(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "read_file", "arguments": {"file_path": "a.txt"}}</tool_call>'
    _, provider, text = run(f"text: {call}\n---\ntext: Marmalade.", tmp_path, UNBOUND)
    assert (text, provider.requests[-1].messages[-1].text) == ("Marmalade.", ANSWER_NOTE)


def test_it_is_told_the_form_it_is_bound_to_and_shown_to_have_kept_it(tmp_path: Path) -> None:
    _, provider, _ = run(f"{READ}\n---\ntext: Marmalade.", tmp_path)
    last = provider.requests[-1]
    assert '{"reply": {"answer": "words"}}' in last.system
    assert "<tool_call>" not in last.system
    assert last.messages[1].text == READ.removeprefix("text: ")


def test_words_that_no_grammar_held_are_words_where_words_are_due(tmp_path: Path) -> None:
    """A server that binds nothing."""
    assert run(f"{READ}\n---\ntext: It is marmalade.", tmp_path)[2] == "It is marmalade."


def test_examples_stand_before_the_first_message_and_on_no_record(tmp_path: Path) -> None:
    profile = Profile(tools="text", small=SmallModel(bound_calls=True, short_prompt=True, examples=True, few_tools=FEW_TOOLS))
    agent, provider, _ = run(HELLO, tmp_path, profile)
    *shown, asked = provider.requests[0].messages
    assert provider.requests[0].example_count == len(shown), "so many are the same in every conversation, and may be kept"
    assert asked.text == QUESTION
    assert [message.role for message in shown] == ["user", "assistant"] * (len(shown) // 2) != []
    assert all(read_constrained(message.text) is not None for message in shown if message.role == "assistant")
    assert [message.text for message in agent.history.view.messages] == [QUESTION, "Hello."]
    told = provider.requests[0].system + "".join(message.text for message in shown)
    assert len(told) < 900 * 3, "900 tokens, and a token is three characters or more"


def test_only_examples_of_tools_it_has_are_shown() -> None:
    listing = examples({"list_directory"})
    assert {call.name for message in listing for call in message.calls} == {"list_directory"}
    assert examples({"grep"}) == ()


def test_a_call_that_failed_does_not_end_the_calling(tmp_path: Path) -> None:
    wrong = READ.replace("a.txt", "b.txt")
    _, provider, text = run(f"{wrong}\n---\n{READ}\n---\ntext: Marmalade.", tmp_path)
    assert (len(provider.requests), text) == (3, "Marmalade.")
    assert ['"read_file"' in request.settings.response_schema for request in provider.requests] == [True, True, False]


def test_a_call_made_twice_ends_the_calling(tmp_path: Path) -> None:
    wrong = READ.replace("a.txt", "b.txt")
    _, provider, text = run(f"{wrong}\n---\n{wrong}\n---\ntext: There is none.", tmp_path)
    assert (len(provider.requests), text) == (3, "There is none.")


def test_a_call_that_is_written_where_words_are_due_is_not_run(tmp_path: Path) -> None:
    agent, _, _ = run(f'{READ}\n---\ntext: <tool_call>{{"name": "list_directory", "arguments": {{"path": "."}}}}</tool_call>', tmp_path)
    assert sum(len(message.calls) for message in agent.history.view.messages) == 1


def test_a_result_leaves_room_in_a_small_window_and_a_larger_one_gets_more(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("".join(f"line number {number}\n" for number in range(40_000)))
    read = READ.replace("a.txt", "big.txt")
    small = msgspec.structs.replace(SMALL, context_window=8_192)
    first, _, text = run(f"{read}\n---\ntext: Numbers.", tmp_path, small)
    assert text == "Numbers."
    [shown] = results_of(first)
    agent = make_agent(first.provider, workspace=tmp_path, history=first.history)
    assert 8_000 < len(shown) < 8_192 + agent._harness.outputs.note_chars
    assert "line number 0\n" in shown

    async def with_another() -> int:
        larger = ScriptedProvider(f"{read}\n---\ntext: More.", profile=msgspec.structs.replace(SMALL, context_window=32_768))
        agent.change_model(larger)
        await agent.run("again")
        await agent.aclose()
        return len(results_of(agent)[-1])

    assert 32_000 < asyncio.run(with_another()) < 32_768 + agent._harness.outputs.note_chars


def test_it_is_told_little(tmp_path: Path) -> None:
    agent, provider, text = run(HELLO, tmp_path)
    assert text == "Hello."
    assert [spec.name for spec in agent.history.view.tools] == ["read_file", "list_directory"]
    assert all(list(spec.schema["properties"]) == list(FEW_TOOLS[spec.name]) for spec in agent.history.view.tools)
    assert not any(message.text.startswith(GREETING) for message in provider.requests[0].messages)
    assert len(provider.requests[0].system) < 900 * 3, "900 tokens, and a token is three characters or more"


def test_another_model_is_told_everything(tmp_path: Path) -> None:
    agent, provider, _ = run("text: Hello.", tmp_path, Profile())
    assert len(agent.history.view.tools) > 5
    assert provider.requests[0].messages[0].text.startswith(GREETING)
    assert provider.requests[0].settings.response_schema == ""


def test_what_somebody_chose_is_offered_whole(tmp_path: Path) -> None:
    agent, provider, _ = run(HELLO, tmp_path, builtin=("grep",), system="Mine.")
    assert [spec.name for spec in agent.history.view.tools] == ["grep"]
    assert len(agent.history.view.tools[0].schema["properties"]) > 2
    assert provider.requests[0].system.startswith("Mine.")


def test_native_calls_are_not_bound(tmp_path: Path) -> None:
    """A service that knows calls has a grammar of its own for them."""
    _, provider, _ = run("text: Hello.", tmp_path, msgspec.structs.replace(SMALL, tools="native"))
    assert provider.requests[0].settings.response_schema == ""


def test_a_tool_in_short_keeps_what_it_needs() -> None:
    properties = {name: {"type": "string"} for name in ("path", "limit", "offset")}
    spec = shorten(ToolSpec.of("x", "Reads a file. At most ten lines.", {"type": "object", "properties": properties}), ("path",))
    assert (spec.description, spec.schema["required"], list(spec.schema["properties"])) == ("Reads a file", ["path"], ["path"])


def test_the_guard_counts_what_went_well_and_knows_a_repetition() -> None:
    guard = LoopGuard()
    guard.check_call(ToolCall("1", "a", '{"x": 1, "y": 2}'), failed=True)
    assert (guard.successes, guard.has_repeated) == (0, False)
    guard.check_call(ToolCall("2", "a", '{"y":2,"x":1}'), failed=False)
    assert (guard.successes, guard.has_repeated) == (1, True)


# --- an answer for which nothing was read


def notices(script: str, prompts: list[str], folder: Path, profile: Profile = UNBOUND, **options: Any) -> list[list[str]]:
    """What the user is told beside each answer."""
    (folder / "a.txt").write_text("The word is marmalade.\n")

    async def go() -> list[list[str]]:
        async with make_agent(ScriptedProvider(script, profile=profile), workspace=folder, **options) as agent:
            return [
                [event.message async for event in agent.run(prompt) if isinstance(event, NoticeGiven) and event.about == "answer"]
                for prompt in prompts
            ]

    return asyncio.run(go())


def test_an_answer_about_files_for_which_nothing_was_read_says_so(tmp_path: Path) -> None:
    """The smallest model answered "The tests pass." and had run nothing."""
    ((told,),) = notices("text: The tests pass.", ["Do the tests pass?"], tmp_path)
    assert told == "not checked: no file was read and no command was run for this answer, so what scripted says is a guess"


def test_nothing_is_said_where_something_was_read_now_or_before(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "read_file", "arguments": {"file_path": "a.txt"}}</tool_call>'
    script = f"text: {call}\n---\ntext: Marmalade.\n---\ntext: One line."
    assert notices(script, ["What is in the file a.txt?", "How many lines has the file?"], tmp_path) == [[], []]


def test_nothing_is_said_of_larger_models_and_where_there_are_no_tools(tmp_path: Path) -> None:
    assert notices("text: They do.", ["Do the tests pass?"], tmp_path, Profile()) == [[]]
    assert notices("text: They do.", ["Do the tests pass?"], tmp_path, builtin=False) == [[]]


def test_an_answer_that_nothing_supports_is_marked_in_the_result_and_on_the_record(tmp_path: Path) -> None:
    async def go() -> tuple[str, list[AnswerUnchecked]]:
        async with make_agent(ScriptedProvider("text: Port 8080.", profile=UNBOUND), workspace=tmp_path) as agent:
            result = await agent.run("Which port does app.py use?")
            return result.unchecked, [entry for entry in agent.history.entries if isinstance(entry, AnswerUnchecked)]

    told, marked = asyncio.run(go())
    assert told.startswith("not checked: no file was read")
    assert [entry.reason for entry in marked] == [told]


def test_a_refusal_advises_only_tools_that_the_model_is_told_of(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "read_file", "arguments": {"file_path": "qqqqqqqq.cfg"}}</tool_call>'
    agent, _, _ = run(f"text: {call}\n---\ntext: It is not there.", tmp_path, UNBOUND_FEW)
    [result] = results_of(agent)
    assert "qqqqqqqq.cfg does not exist" in result
    assert "list_directory" in result
    assert "glob" not in result


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a does not exist: find it with glob or list_directory", "a does not exist: find it with list_directory"),
        ("a is binary: use run_shell to look at it (file, strings)", "a is binary"),
        ("a is too large; read a part. Or use grep", "a is too large; read a part"),
        ("The tools are: edit, read_file, glob, list_directory, grep.", "The tools are: read_file, list_directory."),
        ("a is a directory: list it with list_directory", "a is a directory: list it with list_directory"),
        ("grep failed: no pattern", "grep failed: no pattern"),
    ],
)
def test_advice_without_tools_that_are_missing(text: str, wanted: str) -> None:
    tools = ("read_file", "list_directory", "glob", "grep", "edit", "run_shell")
    assert advise_only(text, FEW_TOOLS, tools) == wanted


@pytest.mark.parametrize(
    "asked",
    [
        "Do the tests pass?",
        "do our unit tests pass",
        "What does src/main.py do?",
        "Summarise README.md.",
        "List all files",
        "How many Python files are here?",
        "fix this build",
        "Explain the code.",
        "测试通过了吗？",
        "这个项目是做什么的？",
        "read `setup.cfg`",
    ],
)
def test_questions_about_the_workspace(asked: str) -> None:
    assert is_about_files(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "hi",
        "What is a unit test?",
        "Write a haiku about rain.",
        "What is 3.5 times 2?",
        "Translate: good morning",
        "Who are you?",
        "Is Paris the capital of France?",
        "e.g. what is a monad?",
        "Explain this code:\n```\nx = 1\n```",
        "Summarise the file:\n" + "words of the file\n" * 50,
        "",
    ],
)
def test_questions_about_anything_else(asked: str) -> None:
    assert not is_about_files(asked)
