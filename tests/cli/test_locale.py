"""The program speaks the language of the system, unless something names another."""

from __future__ import annotations

import pytest

from program import Place, service


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "用法"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "用法"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "usage"),
        ({"LANG": "zh_TW.UTF-8"}, "usage"),
        ({"LANG": "zh_CN.UTF-8", "DRAGOMAN_LANG": "en"}, "usage"),
    ],
)
def test_the_locale_chooses_the_language(place: Place, env: dict[str, str], shown: str) -> None:
    assert place.run("--help", env=env).out.startswith(shown)
    assert ("会话" in place.run("sessions", "show", "nothing", env=env).err) == (shown == "用法")


def test_the_configuration_goes_before_the_locale(place: Place) -> None:
    env = {"LANG": "zh_CN.UTF-8"}
    told = place.run("config", "--output-format", "json", env=env).json["values"]["lang"]
    assert (told["value"], told["source"]["name"]) == ("zh", "LANG")
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('lang = "en"\n')
    assert place.run("config", "--output-format", "json", env=env).json["values"]["lang"]["value"] == "en"


def test_a_wrong_option_is_named_in_the_language_that_an_option_names(place: Place) -> None:
    done = place.run("--approval", "much", "--lang", "zh", "-p", "hi")
    assert (done.code, done.err) == (42, "dragoman：--approval：'much' 不是有效的值；可选 plan, default, auto-edit 或 auto\n")


def test_a_refused_key_is_said_in_chinese_throughout(place: Place) -> None:
    with service('error: 401 "invalid x-api-key"') as place.service:
        done = place.ask("hi", "--lang", "zh")
    assert "请检查 ANTHROPIC_API_KEY 或 ANTHROPIC_AUTH_TOKEN" in done.err
    assert " or " not in done.err
