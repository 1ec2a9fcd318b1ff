"""The web through the program: what is declared, what is searched, what an answer rests on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from program import KEY, Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
GEMINI = "gemini/gemini-3.8-flash"
TAKES_TEMPERATURE = "gemini/gemini-3.1-pro-preview"
MISTRAL = "mistral/mistral-medium-latest"
GROUNDED = 'text: 今天北京天气晴朗。\ncite title="中国天气网" text="今天北京天气晴朗": https://weather.example/beijing'


def names(body: dict[str, list[dict[str, list[dict[str, str]]]]]) -> set[str]:
    return {each["name"] for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])}


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(text)


def test_a_search_is_a_request_of_its_own_and_is_paid_for(place: Place, serve: Serve) -> None:
    """SEARCH-2: the model calls google_web_search; the service searches; the answer and its sources go back to the model."""
    asked = serve(script(calls(("google_web_search", {"query": "北京天气"})), GROUNDED, "text: Sunny."))
    done = place.ask("Weather in Beijing?", "--output-format", "json", model=GEMINI)
    assert (done.code, done.json["response"]) == (0, "Sunny.")
    assert done.json["stats"]["requests"] == 3, "the search was asked of a model, too"
    first, search, last = asked.requests
    assert {"google_web_search", "web_fetch"} <= names(first)
    assert search["tools"] == [{"googleSearch": {}}]
    assert "晴朗[1]" in str(last)
    assert "[1] 中国天气网 (https://weather.example/beijing)" in str(last)
    entries = [line for log in (place.home / "dragoman").rglob("*.jsonl") for line in log.read_text().splitlines()]
    assert any('"kind":"spent"' in line and "google_web_search" in line for line in entries), "what the search used is on the bill"


@pytest.mark.parametrize("mode", ["plan", "default", "auto-edit", "auto"])
def test_the_service_of_the_conversation_searches_unasked_in_every_mode(place: Place, serve: Serve, mode: str) -> None:
    """In `auto` nothing was searched with -p, and nothing said how to allow it."""
    asked = serve(script(calls(("google_web_search", {"query": "北京天气"})), GROUNDED, "text: Sunny."))
    done = place.ask("Weather in Beijing?", "--approval", mode, model=GEMINI)
    assert (done.code, done.out) == (0, "Sunny.\n")
    assert asked.requests[1]["tools"] == [{"googleSearch": {}}]
    assert "晴朗[1]" in str(asked.requests[2])


@pytest.mark.parametrize("model", [GEMINI, "gemini/gemini-3.1-pro-preview", "anthropic/claude-opus-5"])
def test_in_auto_a_search_by_somebody_else_is_refused_with_its_remedy(place: Place, serve: Serve, model: str) -> None:
    """What is searched for would reach somebody who is not sent the conversation."""
    configure(place, '[web]\nsearch_model = "responses/gpt-6.1-sol"\n')
    search = calls(("google_web_search", {"query": "x"}))
    asked = serve(script(search, "text: Without."))
    done = place.ask("Weather?", "--approval", "auto", model=model)
    assert len(asked.requests) == 2
    assert "another service than that of the conversation would search" in str(asked.requests[1])
    assert "--allow web_search" in done.err
    asked = serve(script(search, GROUNDED, "text: Sunny."))
    done = place.ask("Weather?", "--approval", "auto", "--allow", "web_search", model=model)
    assert (done.out, len(asked.requests), done.err) == ("Sunny.\n", 3, "")


def test_searching_and_fetching_can_be_turned_off(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "off"\nfetch = false\n')
    asked = serve("text: ok")
    place.ask(model=GEMINI)
    assert not names(asked.requests[0]) & {"google_web_search", "web_fetch"}


def test_nothing_is_declared_where_nobody_can_search(place: Place, serve: Serve) -> None:
    """Keys are set for services behind another address: whether a gateway can search is not known."""
    asked = serve("text: ok")
    place.ask(model="openai/gpt-4.1")
    assert "google_web_search" not in declared_to_chat(asked)
    assert "web_fetch" in declared_to_chat(asked)


def declared_to_chat(asked: Service) -> set[str]:
    return {tool["function"]["name"] for tool in asked.requests[0]["tools"]}


def mistral_and_gemini(place: Place, asked: Service, more: str = "") -> dict[str, str]:
    """Both at the mock's address, by configuration. Returns an environment with their keys, and no other."""
    row = "[deployments.{0}]\nbase_url = {1!r}\n"
    configure(place, more + row.format("mistral", f"{asked.url}/v1") + row.format("gemini", asked.url))
    names = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
    return dict.fromkeys(names, "") | {"MISTRAL_API_KEY": KEY}


def test_another_service_searches_for_a_model_that_cannot(place: Place, serve: Serve) -> None:
    """SEARCH-10: over Chat Completions nobody can search, but a Gemini key is set. The result says who did, and it is paid for."""
    asked = serve(script(calls(("google_web_search", {"query": "北京天气"})), f"{GROUNDED}\nusage: fresh=1000000", "text: Sunny."))
    env = mistral_and_gemini(place, asked)
    done = place.ask("Weather in Beijing?", "--output-format", "json", model=MISTRAL, env=env)
    assert (done.code, done.json["response"]) == (0, "Sunny.")
    _, search, last = asked.requests
    assert search["tools"] == [{"googleSearch": {}}]
    assert f"searched by {GEMINI}" in str(last)
    assert done.json["stats"]["cost_usd"] > 0.7, "a million tokens at Gemini's prices, not at those of the chat model"
    [spent] = [line for log in (place.home / "dragoman").rglob("*.jsonl") for line in log.read_text().splitlines() if '"spent"' in line]
    assert '"deployment":"gemini"' in spent
    assert '"model":"gemini-3.8-flash"' in spent


def test_that_can_be_turned_off_and_is_not_done_for_a_model_of_this_machine(place: Place, serve: Serve) -> None:
    asked = serve("answer: times=2\ntext: ok")
    env = mistral_and_gemini(place, asked, '[web]\nsearch_model = "none"\n')
    place.ask(model=MISTRAL, env=env)
    assert "google_web_search" not in declared_to_chat(asked)

    here = serve("text: ok")
    (place.work / "none.toml").write_text("")
    place.run("--config", "none.toml", "-m", "vllm/some-model", "-p", "hi", env=env | {"VLLM_BASE_URL": f"{here.url}/v1"})
    assert "google_web_search" not in declared_to_chat(here)


def test_doctor_and_config_say_who_searches(place: Place) -> None:
    keys = {"MISTRAL_API_KEY": KEY, "GEMINI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    for command in (("doctor", "--offline"), ("config",)):
        done = place.run(*command, "-m", MISTRAL, env=keys)
        assert f"{GEMINI} (GEMINI_API_KEY is set), because {MISTRAL} cannot search" in done.out
        alone = place.run(*command, "-m", MISTRAL, env={"MISTRAL_API_KEY": KEY})
        assert f"nobody: {MISTRAL} cannot search" in alone.out
        assert "cannot search" not in place.run(*command, "-m", GEMINI, env=keys).out


def test_a_grounded_answer_has_its_markers_and_its_sources(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n')
    asked = serve(GROUNDED)
    done = place.ask("今天北京的天气怎么样？", model=GEMINI)
    assert done.out == "今天北京天气晴朗[1]。\n\nSources:\n[1] 中国天气网 (https://weather.example/beijing)\n"
    assert {"googleSearch": {}} in asked.requests[0]["tools"]
    assert "google_web_search" not in names(asked.requests[0])


def test_a_grounded_answer_is_sampled_as_a_search_is(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n')
    asked = serve(GROUNDED)
    place.ask("天气？", model=TAKES_TEMPERATURE)
    sampling = asked.requests[0]["generationConfig"]
    assert (sampling["temperature"], sampling["topP"]) == (0, 1)


def test_a_temperature_of_the_users_own_stands_for_grounded_answers_too(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n[settings]\ntemperature = 0.7\n')
    asked = serve(GROUNDED)
    place.ask("天气？", model=TAKES_TEMPERATURE)
    assert asked.requests[0]["generationConfig"]["temperature"] == 0.7


def test_a_search_that_was_cut_is_counted_and_its_usage_is_unknown(place: Place, serve: Serve) -> None:
    configure(place, "[retry]\nattempts = 1\n")
    search = calls(("google_web_search", {"query": "x"}))
    serve(script(f"usage: fresh=100 output=5\n{search}", "text: half\ncut: 60", "usage: fresh=200 output=7\ntext: Sorry."))
    stats = place.ask("Weather?", "--output-format", "json", model=GEMINI).json["stats"]
    assert (stats["requests"], stats["tokens"]["input"], stats["complete"]) == (3, 300, False)


def test_the_debug_log_names_the_prompt_of_each_request(place: Place, serve: Serve) -> None:
    serve(script(calls(("google_web_search", {"query": "x"})), GROUNDED, "text: Sunny."))
    done = place.ask("Weather?", "--debug", "--output-format", "json", model=GEMINI)
    begun = [line for line in done.err.splitlines() if "messages," in line]
    assert len(begun) == 3
    assert all(f"[{done.json['session_id']}#" in line for line in begun)


def test_sources_are_data_in_both_kinds_of_json(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n')
    serve(f"{GROUNDED}\n---\n{GROUNDED}")
    source = {"uri": "https://weather.example/beijing", "title": "中国天气网"}
    numbered = source | {"number": 1}
    whole = json.loads(place.ask("天气？", "--output-format", "json", model=GEMINI).out)
    assert whole["sources"] == [numbered | {"cited_text": ["今天北京天气晴朗"]}]
    lines = [json.loads(line) for line in place.ask("天气？", "--output-format", "stream-json", model=GEMINI).out.splitlines()]
    assert [line["citation"] for line in lines if "citation" in line] == [source | {"cited_text": "今天北京天气晴朗"}]
    assert lines[-1]["sources"] == whole["sources"]


def test_what_a_search_found_is_data_in_both_kinds_of_json(place: Place, serve: Serve) -> None:
    """SEARCH-2: not only the model reads the sources of google_web_search; a script does too. The text for a person stays the answer."""
    turns = (calls(("google_web_search", {"query": "北京天气"})), GROUNDED, "text: Sunny.")
    asked = serve(script(*turns, *turns, *turns))
    source = {"number": 1, "uri": "https://weather.example/beijing", "title": "中国天气网", "cited_text": ["今天北京天气晴朗"]}
    assert place.ask("Weather?", "--output-format", "json", model=GEMINI).json["sources"] == [source]
    lines = [json.loads(line) for line in place.ask("Weather?", "--output-format", "stream-json", model=GEMINI).out.splitlines()]
    assert [line["sources"] for line in lines if "sources" in line] == [[source], [source]], "of the call, and of the run"
    assert next(line for line in lines if "sources" in line)["type"] == "tool_result"
    assert place.ask("Weather?", model=GEMINI).out == "Sunny.\n"
    assert "groundingSupports" not in json.dumps(asked.requests)


# --- a search of one's own

SOURCE = {"number": 1, "uri": "https://weather.example/beijing", "title": "中国天气网", "cited_text": ["今天北京天气晴朗"]}
FOUND = """Web search results for "北京天气":

今天北京天气晴朗[1]。

Sources:
[1] 中国天气网 (https://weather.example/beijing)
"""


def test_a_person_searches_without_a_model_that_asks_for_it(place: Place, serve: Serve) -> None:
    """SEARCH-3: one request, its text as document 001 shows it, and the session keeps it for the next prompt."""
    asked = serve(f"{GROUNDED}\n---\ntext: It is sunny.")
    done = place.run("-p", "--search", "北京天气", "-m", GEMINI)
    assert (done.code, done.out, done.err) == (0, FOUND, "")
    assert [request["tools"] for request in asked.requests] == [[{"googleSearch": {}}]]
    assert "  北京天气  " in place.run("sessions", "list").out, "what was searched for, not what the model is told of it"
    assert place.run("-c", "-p", "Is it sunny?", "-m", GEMINI).out == "It is sunny.\n"
    assert FOUND.rstrip() in json.loads(json.dumps(asked.requests[-1]["contents"]))[-1]["parts"][-2]["text"]


def test_a_search_of_ones_own_is_data_in_both_kinds_of_json(place: Place, serve: Serve) -> None:
    serve(f"{GROUNDED}\n---\n{GROUNDED}")
    options = ("--search", "北京天气", "-m", GEMINI, "--output-format")
    whole = place.run(*options, "json").json
    assert (whole["response"], whole["sources"]) == (FOUND.rstrip(), [SOURCE])
    assert (whole["stats"]["requests"], whole["stats"]["tools"]["calls"], whole["stats"]["cost_usd"] > 0) == (1, 1, True)
    lines = [json.loads(line) for line in place.run(*options, "stream-json").out.splitlines()]
    assert [line["type"] for line in lines] == ["init", "message", "tool_use", "tool_result", "result"]
    assert lines[2]["args"] == {"query": "北京天气"}
    assert lines[3]["sources"] == lines[4]["sources"] == [SOURCE]


def test_what_to_search_for_may_come_from_standard_input(place: Place, serve: Serve) -> None:
    asked = serve(GROUNDED)
    assert place.run("--search", "-m", GEMINI, stdin="北京天气\n").out == FOUND
    assert asked.requests[0]["contents"][0]["parts"] == [{"text": "北京天气"}]
    nothing = place.run("--search", "-m", GEMINI, stdin=" ")
    assert (nothing.code, "say what to search for" in nothing.err) == (42, True)


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [("401", 41, "check GEMINI_API_KEY"), ("429", 57, "exceeded your current quota"), ('400 "Invalid request"', 57, "Invalid request")],
)
def test_a_search_that_is_refused_says_why(place: Place, serve: Serve, fault: str, code: int, words: str) -> None:
    configure(place, "[retry]\nattempts = 1\n")
    serve(f"error: {fault}")
    done = place.run("--search", "北京天气", "-m", GEMINI)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "{" not in done.err


def test_a_search_that_fails_has_an_end_too(place: Place, serve: Serve) -> None:
    serve("text: Nobody asks.")
    done = place.run("--search", "北京天气", "-m", "openai/gpt-4.1", "--output-format", "stream-json")
    call, end, error = (json.loads(line) for line in done.out.splitlines()[2:5])
    assert (call["type"], end["type"], error["type"]) == ("tool_use", "tool_result", "error")
    assert (end["id"], end["outcome"], end["is_error"], end["error_type"]) == (call["id"], "failed", True, "InputError")
    assert end["text"] == error["message"]
    assert "web.search_model" in end["text"], "it says what to do"


def test_how_the_model_searches_may_be_said_for_one_start(place: Place, serve: Serve) -> None:
    asked = serve(f"{GROUNDED}\n---\ntext: No.")
    done = place.ask("天气？", "--search", "grounding", model=GEMINI)
    assert (done.out.splitlines()[0], done.err) == ("今天北京天气晴朗[1]。", "")
    assert {"googleSearch": {}} in asked.requests[0]["tools"]
    place.ask("天气？", "--search=off", model=GEMINI)
    assert "google_web_search" not in names(asked.requests[1])


def test_a_person_searches_in_the_plain_conversation(place: Place, serve: Serve) -> None:
    asked = serve(f"usage: fresh=1500 output=40\n{GROUNDED}\n---\ntext: It is sunny.")
    with terminal(place, "-m", GEMINI, size=(60, 100)) as shown:
        shown.prompt()
        shown.ask("/search")
        assert "say what to search for" in shown.prompt()
        shown.ask("/search 北京天气")
        said = shown.prompt()
        assert all(line in said for line in FOUND.splitlines())
        assert f"searched by {GEMINI} · 1,500 tokens in" in said
        shown.ask("/usage")
        assert "1,500 tokens in" in shown.prompt()
        shown.ask("Is it sunny?")
        assert "It is sunny." in shown.prompt()
    assert "晴朗[1]" in json.dumps(asked.requests[1]["contents"], ensure_ascii=False)


def test_a_page_is_fetched_only_when_somebody_says_so(place: Place, serve: Serve) -> None:
    serve(script(calls(("web_fetch", {"url": "https://docs.example/"})), "text: I may not."))
    done = place.ask(model=GEMINI)
    assert done.code == 0
    assert "fetch https://docs.example/" in done.err


def test_a_folder_may_not_open_the_local_network(place: Place) -> None:
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('[web]\nallow_hosts = ["localhost"]\n')
    done = place.ask("hi", "--trust", env={"ANTHROPIC_API_KEY": "k" * 20})
    assert done.code == 52
    assert "web" in done.err
