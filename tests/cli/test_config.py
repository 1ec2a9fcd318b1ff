"""Configuration: later wins, every value knows where it came from, and a mistake is named with file, line and key."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest
from checks import configuration

from dragoman.app.config import FLAGS, FOR_PROJECTS, VARIABLES, load
from dragoman.app.config_tables import AnswersTable, Config, ConfigSource, LoadedConfig, LoopGuardTable, RetryTable, keys, value_of
from dragoman.app.options import Options
from dragoman.app.settings import limits_of, settings_of
from dragoman.app.setup import Setup, catalog_of, set_up
from dragoman.base.places import find_places
from dragoman.base.toml_lines import line_of
from dragoman.loop.options import AnswerPolicy, Limits, LoopLimits
from dragoman.providers.retry import RetryPolicy
from dragoman.values.errors import ConfigError
from dragoman.values.messages import Settings, Thinking
from dragoman.words import choose_language

DOCS = Path(__file__).resolve().parents[2] / "docs" / "configure" / "configuration.md"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / ".dragoman").mkdir(parents=True)
    return tmp_path


def loaded(home: Path, user: str = "", project: str = "", env: dict[str, str] | None = None, **options: Any) -> LoadedConfig:
    if user:
        (home / "home" / "config.toml").write_text(user, encoding="utf-8")
    if project:
        (home / "work" / ".dragoman" / "config.toml").write_text(project, encoding="utf-8")
    env = {"DRAGOMAN_HOME": str(home / "home")} | (env or {})
    return load(Options(**options), env, find_places(env), str(home / "work"), trusted=options.get("trust", False))


def complaint(home: Path, user: str = "", project: str = "", env: dict[str, str] | None = None, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(home, user, project, env, **options)
    assert caught.value.exit_code == 52
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- later wins


def test_without_anything_everything_is_the_default(home: Path) -> None:
    found = loaded(home)
    assert found.config == Config()
    assert {found.source(key) for key in keys()} == {ConfigSource()}
    assert [(file.kind, file.state) for file in found.files] == [("user", "absent"), ("project", "absent")]


def test_later_wins(home: Path) -> None:
    user = 'model = "gemini/a"\nmax_turns = 1\nlang = "zh"\ncolor = "always"\n[settings]\ntemperature = 0.5\ntop_p = 1\n'
    project = 'model = "gemini/b"\nmax_turns = 2\n[settings]\ntemperature = 1\n'
    env = {"DRAGOMAN_MODEL": "gemini/c", "NO_COLOR": "1"}
    found = loaded(home, user, project, env, trust=True, model="gemini/d")
    assert found.config.model == "gemini/d"
    assert found.source("model") == ConfigSource("flag", "--model")
    assert found.config.max_turns == 2
    assert found.source("max_turns").kind == "project"
    assert found.config.lang == "zh"
    assert found.source("lang").kind == "user"
    assert found.config.color == "never"
    assert found.source("color") == ConfigSource("env", "NO_COLOR")
    assert found.config.settings.temperature == 1.0
    assert found.source("settings.temperature").kind == "project"
    assert found.source("settings.top_p").kind == "user"
    assert found.source("settings.top_k").kind == "default"
    assert loaded(home, env={"DRAGOMAN_MODEL": "gemini/c"}, trust=True).config.model == "gemini/c"


def test_an_empty_variable_is_not_set(home: Path) -> None:
    found = loaded(home, 'model = "gemini/a"', env=dict.fromkeys([*VARIABLES, "NO_COLOR"], ""))
    assert found.config.model == "gemini/a"
    assert found.config.color == "auto"


def test_every_flag_and_variable_reaches_its_key(home: Path) -> None:
    values: dict[str, Any] = {"model": "x/y", "fallback": ("a/b", "c/d"), "approval": "plan", "max_turns": 7, "lang": "zh"}
    assert set(VARIABLES.values()) == set(FLAGS) == set(values)
    written = {key: ", ".join(value) if isinstance(value, tuple) else str(value) for key, value in values.items()}
    by_env = loaded(home, env={name: written[key] for name, key in VARIABLES.items()})
    by_flag = loaded(home, **values)
    for key, value in values.items():
        assert value_of(by_env.config, key) == value_of(by_flag.config, key) == value


def test_config_names_another_file(home: Path) -> None:
    (home / "work" / "other.toml").write_text("max_turns = 3", encoding="utf-8")
    assert loaded(home, "max_turns = 2", config="other.toml").config.max_turns == 3


# --- the project's file


def test_a_project_is_not_believed_unless_trusted(home: Path) -> None:
    found = loaded(home, project='model = "evil/model"')
    assert found.config.model == ""
    assert found.files[1].state == "ignored"


def test_not_even_its_mistakes_are_looked_at(home: Path) -> None:
    assert loaded(home, project="this is no toml").config == Config()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[deployments.gemini]\nbase_url = "http://evil"', "deployments"),
        ('[deployments.x]\nkey_command = ["touch", "PWN"]', "deployments"),
        ('max_turns = 3\nsystem_file = "/etc/passwd"', "system_file"),
        ('[tools]\ndiscover = ["touch", "PWN"]', "tools.discover"),
    ],
)
def test_a_project_never_says_where_requests_go_or_what_runs(home: Path, text: str, key: str) -> None:
    """TR01: a project sets no base URL, key, header or command, trusted or not."""
    told = complaint(home, project=text, trust=True)
    assert key in told
    assert "config.toml:" in told


SAMPLES = ["1", "0.5", "5000", '"x"', "true", "[]", '"plan"', '"auto"', '"en"', '"low"', '"/no_think"', '"own"', '"no"', '"off"']


def a_value(key: str, home: Path) -> str:
    """Some valid value for any key, as TOML."""
    tables = {
        "mcp.servers": '{x = {command = "y"}}',
        "deployments": '{corp = {protocol = "openai_chat", base_url = "http://127.0.0.1"}}',
        "hooks": '{Stop = [{command = "true"}]}',
        "ui.keys": '{"ctrl-e" = "editor"}',
        "text_tools.mapping": '{x = {y = "z"}}',
        "text_tools.model_mapping": '{m = {x = {y = "z"}}}',
    }
    for text in [tables[key]] if key in tables else SAMPLES:
        with contextlib.suppress(ConfigError):
            loaded(home, f"{key} = {text}")
            return text
    raise AssertionError(f"no sample fits {key}")


@pytest.mark.parametrize("key", list(keys()))
def test_a_project_sets_what_is_listed_and_nothing_else(home: Path, key: str) -> None:
    """Every key there is: a new one is not for projects until it is listed."""
    value = a_value(key, home)
    (home / "home" / "config.toml").write_text("")
    if any(key == allowed or key.startswith(f"{allowed}.") for allowed in FOR_PROJECTS):
        sources = loaded(home, project=f"{key} = {value}", trust=True).sources
        assert any(name.startswith(key) and source.kind == "project" for name, source in sources.items())
    else:
        assert f"{key} cannot be set by a project" in complaint(home, project=f"{key} = {value}", trust=True)


@pytest.mark.parametrize(
    "key",
    [
        "deployments",
        "system_file",
        "tools.discover",
        "tools.call",
        "tools.load",
        "sessions.keep",
        "web.searxng",
        "http.client",
        "budget.usd",
    ],
)
def test_what_would_send_run_store_or_spend_is_not_listed(key: str) -> None:
    """Whoever adds to FOR_PROJECTS decides for every repository from the internet."""
    assert not any(key == allowed or key.startswith(f"{allowed}.") for allowed in FOR_PROJECTS)


@pytest.mark.parametrize("name", ["os:system/touch PWN", "nobody/knows", "local//tmp/evil.gguf", "local/evil.gguf", "local/../evil"])
@pytest.mark.parametrize("key", ["model", "fallback"])
def test_a_project_names_no_model_that_is_code_or_a_file(home: Path, name: str, key: str) -> None:
    value = f'["{name}"]' if key == "fallback" else f'"{name}"'
    assert "a project may not name the model" in complaint(home, project=f"{key} = {value}", trust=True)


def test_a_project_names_a_model_of_the_users_own_service(home: Path) -> None:
    user = '[deployments.corp]\nprotocol = "openai_chat"\nbase_url = "http://127.0.0.1"\n'
    assert loaded(home, user, 'model = "corp/big"', trust=True).config.model == "corp/big"


def test_a_project_may_tighten_approval_and_not_loosen_it(home: Path) -> None:
    assert loaded(home, project='approval = "plan"', trust=True).config.approval == "plan"
    assert loaded(home, 'approval = "auto-edit"', 'approval = "default"', trust=True).config.approval == "default"
    (home / "home" / "config.toml").unlink()
    assert "loosen" in complaint(home, project='approval = "auto-edit"', trust=True)


def test_your_own_file_is_yours_even_where_it_lies_in_the_workspace(home: Path) -> None:
    (home / "work" / ".dragoman" / "config.toml").write_text("max_turns = 3", encoding="utf-8")
    env = {"DRAGOMAN_HOME": str(home / "work" / ".dragoman")}
    found = load(Options(), env, find_places(env), str(home / "work"))
    assert found.config.max_turns == 3
    assert found.files[1].state == "absent"


# --- mistakes


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("max_turn = 3", 1, ["unknown key max_turn", "did you mean max_turns?"]),
        ("\n\n[settings]\n# a comment\ntemprature = 1", 5, ["settings.temprature", "did you mean settings.temperature?"]),
        ("temperature = 1", 1, ["unknown key temperature", "settings.temperature"]),
        ("[setings]\ntemperature = 1", 1, ["unknown key setings"]),
        ("settings.temprature = 1", 1, ["did you mean settings.temperature?"]),
        ("settings = {temprature = 1}", 1, ["settings.temprature"]),
        ('max_turns = "many"', 1, ["max_turns", "a whole number", "text in quotes"]),
        ("max_turns = 0", 1, ["max_turns", ">= 1"]),
        ("max_turns = true", 1, ["max_turns", "true or false"]),
        ("model = 3", 1, ["model", "text in quotes"]),
        ('approval = "yolo"', 1, ["approval must be one of plan, default, auto-edit"]),
        ('[settings]\nthinking = "hard"', 2, ["settings.thinking must be one of off, low, medium, high, max"]),
        ("[settings]\ntemperature = 3", 2, ["settings.temperature", "<= 2"]),
        ("[settings]\ntemperature = nan", 2, ["settings.temperature"]),
        ("settings = 3", 1, ["settings", "a table"]),
        ('[sandbox]\nlevel = "2"', 2, ['sandbox.level must be one of "auto", 1, 2, 3, "off"']),
        ('[tools]\ndisabled = "run_shell"', 2, ["tools.disabled", "a list"]),
        ("[tools]\ndisabled = [\n  1,\n]", 2, ["tools.disabled"]),
        ("[retry]\nattempts = 0", 2, ["retry.attempts"]),
        ("deployments = 3", 1, ["deployments", "a table"]),
        ("[deployments]\ncorp = 3", 2, ["deployments"]),
        ('[[rules.rule]]\ndecision = "maybe"\npattern = "x"', 2, ["rules.rule.decision must be one of allow, ask, deny"]),
        ('[[rules.rule]]\npattern = "x"', 1, ["rules.rule: decision is missing; it must be one of allow, ask, deny"]),
        ('[network]\nhosts = ["a.org", "https://b.org/page"]', 2, ["network.hosts: 'https://b.org/page' is not a host"]),
        ('[network]\nhosts = [""]', 2, ["network.hosts: '' is not a host"]),
        ("max_turns = \nmodel = 3", 1, ["not valid TOML"]),
        ("a\nb", 1, ["not valid TOML"]),
        ('model = "unclosed', 1, ["not valid TOML"]),
        ("[settings]\n[settings]\n", 2, ["not valid TOML"]),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(home: Path, text: str, line: int, words: list[str]) -> None:
    told = complaint(home, text)
    assert told.startswith(f"{home / 'home' / 'config.toml'}:{line}:"), told
    assert all(word in told for word in words), told


def test_a_value_of_the_wrong_kind_is_named_in_chinese(home: Path) -> None:
    choose_language("zh")
    try:
        assert "model：应为引号中的文本，而不是整数" in complaint(home, "model = 3")
        assert "max_turns：应为整数 >= 1" in complaint(home, "max_turns = 0")
    finally:
        choose_language("en")


def test_a_wrong_variable_is_named(home: Path) -> None:
    assert complaint(home, env={"DRAGOMAN_MAX_TURNS": "many"}).startswith("DRAGOMAN_MAX_TURNS: ")
    assert "auto-edit" in complaint(home, env={"DRAGOMAN_APPROVAL": "yolo"})


@pytest.mark.parametrize("what", ["missing", "directory", "binary", "huge", "fifo"])
def test_a_file_that_cannot_be_read_is_named(home: Path, what: str) -> None:
    import os

    path = home / "work" / "c.toml"
    match what:
        case "directory":
            path.mkdir()
        case "binary":
            path.write_bytes(b"model = '\xff\xfe'")
        case "huge":
            path.write_bytes(b"#" * 1_000_001)
        case "fifo":
            os.mkfifo(path)
    told = complaint(home, config="c.toml")
    assert str(path) in told
    assert "cannot be read" in told


def test_a_dangling_link_is_no_absent_file(home: Path) -> None:
    (home / "home" / "config.toml").symlink_to(home / "nowhere")
    assert "cannot be read" in complaint(home)


# --- rows of one's own


def catalog_complaint(home: Path, text: str) -> str:
    found = loaded(home, text)
    with pytest.raises(ConfigError) as caught:
        catalog_of(Setup(Options(), {}, find_places({}), str(home), found))
    return str(caught.value)


def test_rows_of_ones_own(home: Path) -> None:
    text = '[deployments.corp]\nprotocol = "openai_chat"\nbase_url = "https://llm.example.com"\n'
    text += "[deployments.corp.models.big]\ncontext_window = 9"
    found = loaded(home, text)
    catalog = catalog_of(Setup(Options(), {}, find_places({}), str(home), found))
    assert catalog["corp"].models["big"].context_window == 9
    assert "gemini" in catalog.deployments
    assert found.source("deployments.corp").kind == "user"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('\n[deployments.corp]\nprotocol = "openai_chat"\nbase_ulr = "x"', 4, "base_url"),
        ('[deployments.corp]\nprotocol = "smtp"\nbase_url = "x"', 2, "protocol"),
        ("[deployments.gemini.models.new]\n\ncontext_window = 'big'", 3, "context_window"),
        ("[deployments.corp]\ntitle = 'x'", 1, "protocol"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(home: Path, text: str, line: int, word: str) -> None:
    told = catalog_complaint(home, text)
    assert told.startswith(f"{home / 'home' / 'config.toml'}:{line}: "), told
    assert word in told


# --- what becomes of it


def test_the_defaults_are_those_of_the_rooms() -> None:
    retry, answers = RetryPolicy(), AnswerPolicy()
    assert RetryTable() == RetryTable(retry.attempts, retry.first_delay_s, retry.max_delay_s, retry.deadline_s)
    assert AnswersTable() == AnswersTable(answers.attempts, answers.delay_s, answers.temperature, answers.max_chars, answers.max_events)
    assert msgspec.to_builtins(LoopGuardTable()) == msgspec.to_builtins(LoopLimits())
    assert limits_of(Config()) == Limits()
    assert settings_of(Config()) == Settings()


def test_every_setting_reaches_the_agent(home: Path) -> None:
    text = """
max_turns = 5
[settings]
temperature = 0.1
top_p = 0.2
top_k = 3
max_output_tokens = 4
thinking = "high"
[answers]
attempts = 6
delay_s = 7
temperature = 0.8
[loop_guard]
same_call = 9
cycle_length = 10
cycle_repeats = 11
failing_call = 12
text_window = 13
text_repeats = 14
[tools]
max_output_chars = 1500
shell_timeout_s = 16
"""
    config = loaded(home, text).config
    assert settings_of(config) == Settings(0.1, 0.2, 3, 4, Thinking("high"))
    assert limits_of(config) == Limits(5, AnswerPolicy(6, 7.0, 0.8), LoopLimits(9, 10, 11, 12, 13, 14), 1500, 16.0)


# --- the page that documents it


def test_the_tables_of_keys_are_those_of_the_structs() -> None:
    page = configuration.PAGE.read_text(encoding="utf-8")
    assert configuration.filled(page) == page, "run python -m checks.configuration"


def test_every_key_is_read_somewhere() -> None:
    """By the last word of its name: a new one that sets nothing is found, unless another thing is called the same."""
    source = Path(__file__).parents[2] / "src" / "dragoman"
    read: set[str] = set()
    for path in source.rglob("*.py"):
        if path.name != "config_tables.py":
            read |= set(re.findall(r"\.([a-z]\w*)", path.read_text(encoding="utf-8")))
    assert {key for key in keys() if key.rpartition(".")[2] not in read} == set(), "the setting changes nothing: see app/settings.py"


def test_every_key_is_documented_with_its_default() -> None:
    page = configuration.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_.]+)` \|([^|]*)\|([^|]*)\| (yes|no) \|([^|]*)\|$", page, re.MULTILINE)
    assert sorted(key for key, *_ in rows) == sorted(keys())
    for key, kind, default, project, about in rows:
        value = value_of(Config(), key)
        shown = "" if value in ("", None, {}) else f"`{value if isinstance(value, str) else json.dumps(value)}`"
        assert default.strip() == shown, key
        assert kind.strip(), key
        assert about.strip(), key
        assert (project == "yes") == any(key == allowed or key.startswith(f"{allowed}.") for allowed in FOR_PROJECTS)


def test_the_documented_examples_are_valid(home: Path) -> None:
    examples = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) > 2
    for example in examples:
        found = loaded(home, example)
        catalog = catalog_of(Setup(Options(), {}, find_places({}), str(home), found))
        assert "[deployments.corp]" not in example or catalog.find("corp/big")[1] == "big"


def test_what_projects_may_set_is_valid_there(home: Path) -> None:
    page = DOCS.read_text(encoding="utf-8")
    [example] = re.findall(r"```toml\n(.*?)```", page.partition("## What a project may set")[2].partition("\n## ")[0], re.DOTALL)
    assert loaded(home, project=example, trust=True).sources


# --- finding lines


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2", ["b"], 2),
        ("[t]\na = 1", ["t", "a"], 2),
        ("[t]\na = 1\n[u]\na = 2", ["u", "a"], 4),
        ("t.a = 1", ["t", "a"], 1),
        ('[t."x y"]\n"a b" = 1', ["t", "x y", "a b"], 2),
        ("[t.u]\na = 1", ["t"], 1),
        ("[t]\na = { b = 1 }", ["t", "a", "b"], 2),
        ('s = """\n[t]\na = 1\n"""\n[t]\na = 2', ["t", "a"], 6),
        ("  [ t ] # comment\n  a=1", ["t", "a"], 2),
        ("a = 1", ["z"], 0),
        ("", ["z"], 0),
    ],
)
def test_the_line_of_a_key(text: str, path: list[str], line: int) -> None:
    assert line_of(text, path) == line


@hypothesis.given(st.text(alphabet="ab[]=.\"'# \n\\"), st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3))
def test_a_line_is_always_one_of_the_text(text: str, path: list[str]) -> None:
    assert 0 <= line_of(text, path) <= len(text.splitlines())


def test_a_file_that_cannot_be_reached_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that refuse may stand in it. As root, which tests may run as, every folder can be entered."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    config_file, lstat = find_places(os.environ).config_file, os.lstat

    def refuse(path: Any, **options: Any) -> os.stat_result:
        if path == config_file:
            raise PermissionError(13, "Permission denied", path)
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", refuse)
    setup = set_up(Options(directory=str(tmp_path)))
    assert setup.loaded.files[0].state == "unreachable"
    assert any(config_file in notice and "do not apply" in notice for notice in setup.notices)
