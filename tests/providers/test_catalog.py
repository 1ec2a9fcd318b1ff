"""The catalog is data: whole, dated, open to the user's own rows, and honest about what it does not know."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest

from dragoman import ConfigError, Settings, Thinking, build_request, builtin_catalog, connect
from dragoman.providers import catalog as module
from dragoman.providers.catalog import Catalog, filled, from_toml, profile_for
from dragoman.values.profile import UNKNOWN_CONTEXT_WINDOW, Deployment

SOURCE = Path(module.__file__).parent
ASKED_FOR = {
    *("gemini", "vertex", "openai", "responses", "azure", "anthropic", "qwen", "deepseek", "kimi", "glm", "mistral", "groq"),
    *("openrouter", "ollama", "llamacpp", "lmstudio", "vllm"),
}


def every_model() -> list[tuple[str, str]]:
    return [(name, model) for name, deployment in builtin_catalog().deployments.items() for model in deployment.models]


def test_what_is_read_is_what_was_written() -> None:
    """catalog.json is made from catalog.toml by `make catalog`."""
    written = from_toml((SOURCE / "catalog.toml").read_text(encoding="utf-8"))
    assert builtin_catalog() == written, "run `make catalog`"


def test_every_deployment_asked_for_is_there() -> None:
    assert set(builtin_catalog().deployments) >= ASKED_FOR


@pytest.mark.parametrize("name", builtin_catalog().deployments)
def test_a_deployment_can_be_used_as_it_stands(name: str) -> None:
    deployment = builtin_catalog()[name]
    assert deployment.name == name
    assert deployment.title
    assert deployment.in_process or deployment.base_url.startswith(("https://", "http://127.0.0.1:", "{"))
    assert deployment.local or deployment.default_model in deployment.models
    assert deployment.key_env or deployment.auth in ("none", "vertex")
    assert not deployment.profile.known
    assert deployment.profile.context_window <= UNKNOWN_CONTEXT_WINDOW, "a stranger never gets a large window"


@pytest.mark.parametrize(("name", "model"), every_model())
def test_a_models_figures_make_sense(name: str, model: str) -> None:
    profile = builtin_catalog()[name].models[model]
    assert profile.known
    assert 0 < profile.max_output_tokens < profile.context_window or profile.max_output_tokens == profile.context_window
    assert (profile.reasoning_back == "never") or profile.reasoning_field
    keeps = profile.reasoning_back == "given" and profile.thinking_switch == "thinking.type"  # GLM: the field also keeps earlier thinking
    assert (profile.thinking == "switch") == bool(profile.thinking_switch) or keeps
    if (prices := profile.prices) is not None:
        datetime.date.fromisoformat(prices.taken)
        assert prices.cache_read is None or prices.cache_read <= prices.input
        assert (prices.above is None) == (prices.above_tokens == 0)


def test_hosted_models_have_prices() -> None:
    hosted = [deployment for deployment in builtin_catalog().deployments.values() if not deployment.local]
    priced = [profile.prices is not None for deployment in hosted for profile in deployment.models.values()]
    assert sum(priced) / len(priced) > 0.9


def test_a_model_is_found_by_deployment_and_name() -> None:
    catalog = builtin_catalog()
    deployment, model = catalog.find("anthropic/claude-opus-5")
    assert (deployment.name, model) == ("anthropic", "claude-opus-5")
    deployment, model = catalog.find("gemini")
    assert (deployment.name, model) == ("gemini", deployment.default_model)
    deployment, model = catalog.find("openrouter/some-vendor/some-model")
    assert (deployment.name, model) == ("openrouter", "some-vendor/some-model")
    deployment, model = catalog.find("claude-opus-5")
    assert deployment.name == "anthropic"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("antropic/claude-opus-5", "no model is called 'antropic/claude-opus-5'.*did you mean anthropic/claude-opus-5"),
        ("gemni", "did you mean gemini"),
        ("gpt-5.4", "served by several deployments; choose one: openai/gpt-5.4, responses/gpt-5.4"),
        ("ollama", "ollama has no default model; name one, as ollama/MODEL"),
        ("", "no model is called ''"),
    ],
)
def test_a_model_that_is_not_found_says_what_would_be(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        builtin_catalog().find(name)


def test_an_unknown_model_gets_a_small_window_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """It never silently gets a million tokens"""
    with caplog.at_level("INFO", "dragoman"):
        provider = connect("anthropic/claude-of-tomorrow", key="k")
    profile = provider.profile(provider.model)
    assert not profile.known
    assert profile.context_window == 200_000
    assert "claude-of-tomorrow is not in the catalog" in caplog.text


def test_a_dated_name_is_the_model_it_dates() -> None:
    anthropic = builtin_catalog()["anthropic"]
    assert profile_for(anthropic, "claude-haiku-4-5-20251001") == anthropic.models["claude-haiku-4-5"]
    assert not profile_for(anthropic, "claude-haiku-9-20251001").known


def test_a_user_adds_rows_without_code() -> None:
    rows = {
        "corp": {
            "protocol": "openai_chat",
            "base_url": "https://llm.example.com/v1",
            "key_env": ["CORP_KEY"],
            "models": {"big": {"context_window": 500_000, "max_output_tokens": 9000}},
        },
        "anthropic": {"models": {"claude-opus-5": {"max_output_tokens": 1234}, "mine": {"images": True}}},
    }
    catalog = builtin_catalog().with_rows(rows)
    deployment, model = catalog.find("corp/big")
    assert profile_for(deployment, model).context_window == 500_000
    assert not deployment.profile.known
    changed = catalog["anthropic"].models["claude-opus-5"]
    before = builtin_catalog()["anthropic"].models["claude-opus-5"]
    assert changed == msgspec.structs.replace(before, max_output_tokens=1234)
    assert catalog["anthropic"].models["mine"].images
    provider = connect("corp/big", catalog=catalog, env={"CORP_KEY": "secret"})
    assert provider.prepare.__self__.name == "corp"


def test_rows_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('theme = "dark"\n[deployments.corp]\nprotocol = "gemini"\nbase_url = "https://x.example.com"\nauth = "none"\n')
    assert builtin_catalog().with_file(path)["corp"].protocol == "gemini"
    path.write_text("deployments = 3")
    with pytest.raises(ConfigError, match=r"config\.toml: deployments must be a table of tables"):
        builtin_catalog().with_file(path)
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"config\.toml: Expected .=. after a key"):
        builtin_catalog().with_file(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        builtin_catalog().with_file(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"protocol": "openai_chat", "base_url": "x", "key_enf": ["A"]},
            "deployments.corp.*unknown field `key_enf`.*mean key_env",
        ),
        ({"protocol": "chat", "base_url": "x"}, r"Invalid protocol 'chat', expected one of .* - at `\$.protocol`"),
        ({"base_url": "x"}, "missing required field `protocol`"),
        ({"protocol": "gemini", "base_url": "x", "models": {"m": {"context_window": "big"}}}, r"context_window"),
        ("text", "must be a table"),
    ],
)
def test_a_bad_row_names_place_and_remedy(row: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Catalog({}).with_rows({"corp": row}, "my.toml")


def test_toml_that_does_not_parse_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"my\.toml: Expected \'\]\'"):
        from_toml("[broken", "my.toml")


def test_a_url_is_filled_from_the_environment() -> None:
    assert filled("https://{REGION:eu}.example.com/{PROJECT}", {"PROJECT": "p"}, "x") == "https://eu.example.com/p"
    assert filled("{ENDPOINT}/openai/v1", {"ENDPOINT": "https://a.example.com/ "}, "x") == "https://a.example.com/openai/v1"
    with pytest.raises(ConfigError, match="x needs PROJECT; set it in the environment"):
        filled("https://{PROJECT}", {}, "x")


def test_the_environment_may_move_a_deployment() -> None:
    provider = connect("openai/gpt-4.1", env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1/"})
    from dragoman import build_request

    assert provider.prepare(build_request(provider.model, "hi")).url == "http://127.0.0.1:1/v1/chat/completions"


def test_prepare_shows_everything_but_the_key() -> None:
    from dragoman import build_request

    provider = connect("gemini", env={"GEMINI_API_KEY": "very-secret-key"})
    prepared = provider.prepare(build_request(provider.model, "hi"))
    assert "very-secret-key" not in repr(prepared)
    assert prepared.url.endswith(":streamGenerateContent?alt=sse")
    assert prepared.headers["user-agent"].startswith("Dragoman/")


def test_deployments_are_plain_values() -> None:
    assert isinstance(builtin_catalog()["gemini"], Deployment)
    assert (
        msgspec.json.decode(msgspec.json.encode(builtin_catalog().deployments), type=dict[str, Deployment]) == builtin_catalog().deployments
    )


@pytest.mark.parametrize("name", builtin_catalog()["local"].models)
def test_a_small_model_is_as_small_behind_serve_local(name: str) -> None:
    rows = builtin_catalog()
    assert rows["llamacpp"].models[name] == rows["local"].models[name]


# --- Gemini and Vertex ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gemini/gemini-3.8-flash", False),
        ("gemini/gemini-3.5-flash-lite", False),
        ("gemini/gemini-4-helium", False),
        ("gemini/gemini-3.9-flash", False),
        ("gemini/gemini-3-flash-preview", True),
        ("gemini/gemini-3.1-pro-preview", True),
        ("gemini/gemini-3.1-pro-preview-customtools", True),
        ("gemini/gemini-2.5-flash-preview-09-2025", True),
        ("gemini/gemma-4-31b-it", True),
        ("vertex/gemini-3.5-flash", True),
        ("vertex/gemini-3-flash-preview", True),
        ("vertex/gemini-3.7-flash", False),
    ],
)
def test_temperature_goes_to_gemini_models_that_heed_it(model: str, takes: bool) -> None:
    """Since 3.5 Flash-Lite and 3.6 the service ignores it; a name that nobody knows is taken for a newer model."""
    deployment, name = builtin_catalog().find(model)
    assert profile_for(deployment, name).temperature is takes


@pytest.mark.parametrize("deployment", ["vertex", "vertex_region"])
def test_vertex_lists_no_model_that_has_ended(deployment: str) -> None:
    rows = builtin_catalog()[deployment]
    assert rows.default_model in rows.models
    assert not [name for name in rows.models if name.startswith(("gemini-2", "gemini-3.6"))]


def test_vertex_region_serves_the_two_jurisdictions() -> None:
    """No Gemini model since 3 is served in a single region; us and eu have host names of their own."""
    row = builtin_catalog()["vertex_region"]
    env = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "eu"}
    path = "/v1/projects/p/locations/eu/publishers/google"
    assert filled(row.base_url, env, row.name) == f"https://aiplatform.eu.rep.googleapis.com{path}"
    assert filled(row.base_url, {"GOOGLE_CLOUD_PROJECT": "p"}, row.name).startswith("https://aiplatform.us.rep.googleapis.com/")
    worldwide = builtin_catalog()["vertex"].models
    for name, profile in row.models.items():
        here, there = profile.prices, worldwide[name].prices
        assert here is not None
        assert there is not None
        assert here.input == pytest.approx(there.input * 1.1)
        assert here.output == pytest.approx(there.output * 1.1)


def test_gemini_4_caches_and_answers_as_its_guide_says() -> None:
    for deployment in ("gemini", "vertex", "vertex_region"):
        argon = builtin_catalog()[deployment].models["gemini-4-argon"]
        assert (argon.cache_min_tokens, argon.unstreamed_output_tokens) == (6_144, 32_768)


@pytest.mark.parametrize(
    ("model", "effort", "level"),
    [
        ("gemini-3.8-flash", "off", "low"),
        ("gemini-3.8-flash", "max", "high"),
        ("gemini-3.5-flash-lite", "off", "minimal"),
        ("gemini-3.5-flash-lite", "low", "low"),
        ("gemini-3.1-flash-lite", "medium", "medium"),
        ("gemini-4-argon", "off", "low"),
    ],
)
def test_a_thinking_level_is_one_the_model_takes(model: str, effort: str, level: str) -> None:
    provider = connect(f"gemini/{model}", key="k")
    request = build_request(provider.model, "hi", settings=Settings(thinking=Thinking(effort)))  # type: ignore[arg-type]
    config = msgspec.json.decode(provider.prepare(request).body)["generationConfig"]["thinkingConfig"]
    assert config == {"includeThoughts": effort != "off", "thinkingLevel": level}
