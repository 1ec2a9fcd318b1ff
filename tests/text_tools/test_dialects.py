"""Each dialect as its model's template and its servers define it, in the variants models write: several calls, text around them, thinking,
other scripts, nested and empty arguments, odd white space, a missing end."""

# ruff: noqa: E501 - what models and prompts say stands as they say it

from __future__ import annotations

from typing import Any

import pytest

from dragoman.text_tools import dialects, parse
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.lookahead import FIXED
from text_tools.reading import TOOLS, cuts, read

PARIS = ("get_weather", {"city": "Paris"})
OSLO = ("get_weather", {"city": "Oslo", "days": 3})
FULL = ("get_weather", {"city": "北京", "days": 3, "exact": True, "tags": ["a", "b"], "options": {"unit": "°C", "deep": {"x": [1, None]}}})
NOW = ("now", {})
CODE = ("read_file", {"path": "a.py", "content": 'if a < b:\n    print("<ok>")\n'})

FULL_JSON = '{"city": "北京", "days": 3, "exact": true, "tags": ["a", "b"], "options": {"unit": "°C", "deep": {"x": [1, null]}}}'
CODE_JSON = '{"path": "a.py", "content": "if a < b:\\n    print(\\"<ok>\\")\\n"}'
M3 = "]<]minimax[>["


def _json(name: str, args: str, name_key: str = "name", args_key: str = "arguments") -> str:
    return f'{{"{name_key}": "{name}", "{args_key}": {args}}}'


PARIS_JSON, OSLO_JSON = _json("get_weather", '{"city": "Paris"}'), _json("get_weather", '{"city": "Oslo", "days": 3}')
NOW_JSON, WHOLE_JSON = _json("now", "{}"), _json("get_weather", FULL_JSON)

CASES: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    # Hermes and Qwen
    ("hermes", f"<tool_call>\n{PARIS_JSON}\n</tool_call>", [PARIS]),
    ("hermes", f"<tool_call>{PARIS_JSON}</tool_call><tool_call>{NOW_JSON}</tool_call>", [PARIS, NOW]),
    ("hermes", f"Let me look.\n<tool_call>\n{WHOLE_JSON}\n</tool_call>\nThat was it.", [FULL]),
    ("hermes", f"<think>\nI could call <tool_call>{NOW_JSON}</tool_call>\n</think>\n\n<tool_call>\n{PARIS_JSON}\n</tool_call>", [PARIS]),
    ("hermes", f"<tool_call>\n{PARIS_JSON}", [PARIS]),
    ("hermes", f"<tool_call>\n{PARIS_JSON}\n<tool_call>\n{OSLO_JSON}\n</tool_call>", [PARIS, OSLO]),
    ("hermes", f"<tool_call>\n{PARIS_JSON}}}\n</tool_call>", [PARIS]),
    ("hermes", f"<tool_call>\n{PARIS_JSON[:-1]}\n</tool_call>", [PARIS]),
    ("hermes", f"<tool_call>\n{PARIS_JSON}\n{NOW_JSON}\n</tool_call>", [PARIS, NOW]),
    ("hermes", f"<tool_call>\n```json\n{PARIS_JSON}\n```\n</tool_call>", [PARIS]),
    ("hermes", '<tool_call>\n{"arguments": {"city": "Paris"}, "name": "get_weather"}\n</tool_call>', [PARIS]),
    ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}\n</tool_call>', [PARIS]),
    ("hermes", "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris'}}\n</tool_call>", [PARIS]),
    ("hermes", '<tool_call>\n{"name": "now", "arguments": null}\n</tool_call>', [NOW]),
    (
        "hermes",
        "<tool_call>{'name': 'get_weather', 'arguments': {'city': 'it's l'Aquila' , 'days': 3}}</tool_call>",
        [("get_weather", {"city": "it's l'Aquila", "days": 3})],
    ),
    ("step3p5", "<tool_call>\n<function get_weather>\n<parameter city>\nParis\n</parameter>\n</function>\n</tool_call>", [PARIS]),
    ("hermes", f'<tool_call>\n{{"type": "function", "function": {PARIS_JSON}}}\n</tool_call>', [PARIS]),
    ("hermes", f"<tool_call>\n{_json('read_file', CODE_JSON)}\n</tool_call>", [CODE]),
    (
        "dragoman",
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n<raw name="content">\n'
        + CODE[1]["content"]
        + "\n</raw>\n</tool_call>",
        [CODE],
    ),
    # JSON behind other markers
    ("granite3", f"<|tool_call|>[{PARIS_JSON}, {NOW_JSON}]", [PARIS, NOW]),
    ("granite3", f"<tool_call>[{PARIS_JSON}]", [PARIS]),
    ("granite_20b", f"<function_call> {PARIS_JSON} <function_call> {NOW_JSON}", [PARIS, NOW]),
    ("granite_20b", f"Sure.\n<function_call>\n{WHOLE_JSON}\n", [FULL]),
    ("jamba", f"Of course.<tool_calls>[\n    {PARIS_JSON},\n    {NOW_JSON}\n]</tool_calls>", [PARIS, NOW]),
    ("jamba", f"<tool_calls>[{PARIS_JSON}]", [PARIS]),
    ("minimax_m1", f"<tool_calls>\n{PARIS_JSON}\n{OSLO_JSON}\n</tool_calls>", [PARIS, OSLO]),
    ("mistral", f"[TOOL_CALLS][{PARIS_JSON}]", [PARIS]),
    ("mistral", f"Now [TOOL_CALLS] [{PARIS_JSON}, {NOW_JSON}]</s>", [PARIS, NOW]),
    ("mistral", f"[TOOL_CALLS]{PARIS_JSON}", [PARIS]),
    ("mistral_v11", '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]now[ARGS]{}', [PARIS, NOW]),
    ("mistral_v11", '[TOOL_CALLS]get_weather{"city": "Paris"}', [PARIS]),
    ("mistral_v11", '[THINK]hm[/THINK]Yes.[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris"}', [PARIS]),
    ("llama3_json", _json("get_weather", '{"city": "Paris"}', args_key="parameters"), [PARIS]),
    ("llama3_json", f"<|python_tag|>{PARIS_JSON}; {NOW_JSON}<|eom_id|>", [PARIS, NOW]),
    ("llama3_json", f"<|python_tag|>{PARIS_JSON}; <|python_tag|>{NOW_JSON}", [PARIS, NOW]),
    ("llama3_json", '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}', [PARIS]),
    ("llama3_json", '<|python_tag|>get_weather.call(city="Paris")', [PARIS]),
    ("llama3_json", f"Here: {PARIS_JSON} and then {NOW_JSON}.", [PARIS, NOW]),
    ("internlm2", f"Let me.<|action_start|> <|plugin|>\n{_json('get_weather', FULL_JSON, args_key='parameters')}<|action_end|>\n", [FULL]),
    ("phi4mini", f"functools[{PARIS_JSON}, {NOW_JSON}]", [PARIS, NOW]),
    ("phi4", f"<|tool_call|>[{PARIS_JSON}]<|/tool_call|>", [PARIS]),
    (
        "longcat",
        f"<longcat_tool_call>\n{PARIS_JSON}\n</longcat_tool_call>\n<longcat_tool_call>{NOW_JSON}</longcat_tool_call>",
        [PARIS, NOW],
    ),
    ("xlam", f"[{PARIS_JSON}, {NOW_JSON}]", [PARIS, NOW]),
    ("xlam", f"I will look.\n```json\n[{PARIS_JSON}]\n```", [PARIS]),
    ("xlam", f"<think>two</think>[{PARIS_JSON}]", [PARIS]),
    ("xlam", f"Sure. [{PARIS_JSON}]", [PARIS]),
    (
        "cohere",
        '<|START_THINKING|>so<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}\n]<|END_ACTION|>',
        [PARIS],
    ),
    (
        "cohere_action",
        'Action: ```json\n[\n    {\n        "tool_name": "get_weather",\n        "parameters": {"city": "Paris"}\n    }\n]```',
        [PARIS],
    ),
    ("gigachat3", f"Wait.<|message_sep|>\n\nfunction call<|role_sep|>\n{PARIS_JSON}</s>", [PARIS]),
    ("gigachat3", f"<|function_call|>{WHOLE_JSON}", [FULL]),
    ("apertus", '<|tools_prefix|>[{"get_weather": {"city": "Paris"}}, {"now": {}}]<|tools_suffix|>', [PARIS, NOW]),
    ("nemotron", f"<think>\nso\n</think>\n\n<TOOLCALL>[{PARIS_JSON}, {NOW_JSON}]</TOOLCALL>", [PARIS, NOW]),
    (
        "inkling",
        '<|message_model|>get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Paris"}}<|end_message|><|message_model|>now<|content_invoke_tool_json|>{"name":"now","args":{}}<|end_message|>',
        [PARIS, NOW],
    ),
    # a name, then JSON
    (
        "kimi_k2",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>',
        [PARIS, NOW],
    ),
    (
        "kimi_k2",
        'On it.<|tool_calls_section_begin|>\n<|tool_call_begin|> functions.get_weather:12 <|tool_call_argument_begin|> {"city": "Paris"} <|tool_call_end|>\n',
        [PARIS],
    ),
    (
        "kimi_k2",
        '<think>so<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        [PARIS],
    ),
    (
        "deepseek_v3",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [PARIS, NOW],
    ),
    (
        "deepseek_v31",
        f"Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{FULL_JSON}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [FULL],
    ),
    (
        "harmony",
        '<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
        [PARIS],
    ),
    (
        "harmony",
        '<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city":"Paris"}<|call|><|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}',
        [PARIS, NOW],
    ),
    ("functionary32", '>>>all\nLet me look.>>>get_weather\n{"city": "Paris"}', [PARIS]),
    ("functionary32", '>>>all\nLet me look.\n>>>get_weather\n{"city": "Paris"}\n>>>now\n{}', [PARIS, NOW]),
    ("functionary32", 'get_weather\n{"city": "Paris"}\n>>>now\n{}', [PARIS, NOW]),
    ("functionary31", '<function=get_weather>{"city": "Paris"}</function><function=now>{}</function>', [PARIS, NOW]),
    ("qwen_agent", 'Sure.\n✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Paris"}\n✿RESULT✿', [PARIS]),
    ("qwen_agent", '✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Paris"}\n✿FUNCTION✿: now\n✿ARGS✿: {}\n', [PARIS, NOW]),
    ("solar", '<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|>', [PARIS]),
    # tags
    ("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>", [PARIS]),
    (
        "qwen3_coder",
        '<tool_call>\n<function=get_weather>\n<parameter=city>\n北京\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=tags>\n["a", "b"]\n</parameter>\n<parameter=options>\n{"unit": "°C", "deep": {"x": [1, null]}}\n</parameter>\n</function>\n</tool_call>',
        [FULL],
    ),
    (
        "qwen3_coder",
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>\nand\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        [PARIS, NOW],
    ),
    (
        "qwen3_coder",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\n"
        + CODE[1]["content"]
        + "\n</parameter>\n</function>\n</tool_call>",
        [CODE],
    ),
    ("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</function>\n</tool_call>", [PARIS]),
    ("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</tool_call>", [PARIS]),
    ("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>", [PARIS]),
    (
        "seed_oss",
        "<seed:think>so</seed:think>\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>",
        [PARIS],
    ),
    (
        "deepseek_dsml",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        [OSLO, NOW],
    ),
    (
        "deepseek_v4",
        'so</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [PARIS],
    ),
    (
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
        [OSLO, NOW],
    ),
    (
        "glm",
        "Let me.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call><tool_call>now</tool_call>",
        [PARIS, NOW],
    ),
    ("glm", "<think>hm\n<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>", [PARIS]),
    ("glm", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value>", [PARIS]),
    (
        "hunyuan",
        "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\n<tool_call>now<tool_sep>\n</tool_call>\n</tool_calls>",
        [PARIS, NOW],
    ),
    (
        "hunyuan",
        "<think:opensource>so</think:opensource><tool_calls:opensource><tool_call:opensource>get_weather<tool_sep:opensource><arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Paris</arg_value:opensource></tool_call:opensource></tool_calls:opensource>",
        [PARIS],
    ),
    (
        "minimax_m2",
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n<parameter name="days">3</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        [OSLO, NOW],
    ),
    (
        "minimax_m2",
        "so\n</think>\n\n<minimax:tool_call>\n<invoke name=get_weather>\n<parameter name=city>Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        [PARIS],
    ),
    (
        "minimax_m3",
        f'{M3}<tool_call>\n{M3}<invoke name="get_weather">{M3}<city>北京{M3}</city>{M3}<days>3{M3}</days>{M3}<exact>true{M3}</exact>{M3}<tags>{M3}<item>a{M3}</item>{M3}<item>b{M3}</item>{M3}</tags>{M3}<options>{{"unit": "°C", "deep": {{"x": [1, null]}}}}{M3}</options>{M3}</invoke>\n{M3}</tool_call>',
        [FULL],
    ),
    (
        "anthropic_xml",
        'Fine.\n<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</function_calls>',
        [PARIS],
    ),
    (
        "dots",
        "<dots_function_call><invoke name='get_weather'><parameter name='city'>Paris</parameter></invoke></dots_function_call>",
        [PARIS],
    ),
    ("dots", f"<dots_function_call>{PARIS_JSON}</dots_function_call>", [PARIS]),
    (
        "muse_glimmer",
        ' to=self<|message|>hm<|eom|><|start|>assistant to=get_weather.get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather.get_weather">\n<atem:parameter name="city">Paris</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eom|>',
        [PARIS],
    ),
    (
        "step3",
        '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">\n<steptml:parameter name="city">Oslo</steptml:parameter>\n<steptml:parameter name="days">3</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>',
        [OSLO],
    ),
    (
        "minicpm5",
        '<function name="get_weather"><param name="city">Oslo</param><param name="days">3</param></function>\n<function name="now"></function>',
        [OSLO, NOW],
    ),
    (
        "minicpm5",
        '<function name="read_file"><param name="path">a.py</param><param name="content"><![CDATA['
        + CODE[1]["content"]
        + "]]></param></function>",
        [CODE],
    ),
    (
        "kimi_k3",
        '<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>',
        [OSLO],
    ),
    ("cline", "I read it.\n<read_file>\n<path>a.py</path>\n<content>\n" + CODE[1]["content"] + "\n</content>\n</read_file>", [CODE]),
    ("cline", "<now></now> and <get_weather><city>Paris</city></get_weather>", [NOW, PARIS]),
    # code
    ("gorilla", "<<function>>get_weather(city='Paris')<<function>>now()", [PARIS, NOW]),
    ("gorilla", 'I look.\n<<function>>get_weather(city="Oslo", days=3)', [OSLO]),
    ("pythonic", "[get_weather(city='Paris'), now()]", [PARIS, NOW]),
    (
        "pythonic",
        "[get_weather(city='北京', days=3, exact=True, tags=['a', 'b'], options={'unit': '°C', 'deep': {'x': [1, None]}})]",
        [FULL],
    ),
    ("pythonic", 'Sure: [get_weather(city="Paris")] is what I run.', [PARIS]),
    ("llama4", "<|python_start|>[get_weather(city='Oslo', days=3)]<|python_end|>", [OSLO]),
    ("llama4", "<|python_start|>get_weather(city='Paris')<|python_end|>", [PARIS]),
    ("olmo3", "<function_calls>get_weather(city='Paris')\nnow()</function_calls>", [PARIS, NOW]),
    (
        "olmo3",
        '<function_calls>\nget_weather(city="北京", days=3, exact=true, tags=["a", "b"], options={"unit": "°C", "deep": {"x": [1, null]}})\n</function_calls>',
        [FULL],
    ),
    ("lfm2", '<|tool_call_start|>[get_weather(city="Paris"), now()]<|tool_call_end|>Looking.', [PARIS, NOW]),
    (
        "lfm2",
        "<|tool_call_start|>[get_weather(city='It\\'s Oslo', days=-3)]<|tool_call_end|>",
        [("get_weather", {"city": "It's Oslo", "days": -3})],
    ),
    ("lfm2", f"<|tool_call_start|>[{PARIS_JSON}]<|tool_call_end|>", [PARIS]),
    (
        "gemma4",
        '<|tool_call>call:get_weather{city:<|"|>北京<|"|>,days:3,exact:true,tags:[<|"|>a<|"|>,<|"|>b<|"|>],options:{unit:<|"|>°C<|"|>,deep:{x:[1,null]}}}<tool_call|>',
        [FULL],
    ),
    (
        "gemma4",
        '<|channel>thought\nhm<channel|>Yes.<|tool_call>call:now{}<tool_call|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        [NOW, PARIS],
    ),
    ("functiongemma", "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:3}<end_function_call>", [OSLO]),
]


@pytest.mark.parametrize(("dialect", "text", "expected"), CASES, ids=[f"{case[0]}-{at}" for at, case in enumerate(CASES)])
def test_a_dialect_is_read_as_it_is_defined(dialect: str, text: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    parsed, _ = read([text], TOOLS, dialect=dialect)
    assert [(call.name, call.args) for call in parsed.calls] == expected, parsed.rejected
    assert all(call.trust == "negotiated" for call in parsed.calls)
    for parts in cuts(text, 20, seed=len(text)):
        assert read(parts, TOOLS, dialect=dialect)[0] == parsed


WITHOUT_MARKER = {"llama3_json", "xlam", "pythonic"}


@pytest.mark.parametrize(("dialect", "text", "expected"), CASES, ids=[f"{case[0]}-{at}" for at, case in enumerate(CASES)])
def test_it_is_recognised_when_no_dialect_was_agreed(dialect: str, text: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    parsed = parse(text, TOOLS)
    if dialect in WITHOUT_MARKER and not parsed.calls:
        return  # in the middle of prose nothing says that it is a call
    assert [(call.name, call.args) for call in parsed.calls] == expected, parsed.rejected


def test_every_dialect_is_tried_here() -> None:
    assert {find_dialect(case[0]).name for case in CASES} | {"fenced_json"} == set(dialects())


def test_every_marker_that_begins_a_call_is_known_to_the_reader() -> None:
    markers = {marker for name in dialects() for marker in find_dialect(name).openers}
    assert sorted(markers - FIXED) == [], "text_tools/openers.py has a row for each"


@pytest.mark.parametrize("dialect", sorted({case[0] for case in CASES}))
def test_with_tool_choice_none_nothing_is_a_call(dialect: str) -> None:
    for name, text, _ in CASES:
        if name == dialect:
            assert parse(text, TOOLS, dialect=dialect, tool_choice="none").calls == ()


def test_a_dialect_is_found_by_the_names_it_goes_by() -> None:
    assert find_dialect("Qwen2.5").name == "hermes"
    assert find_dialect("gpt-oss").name == "harmony"
    assert find_dialect("glm_xml").name == "glm"
    with pytest.raises(ValueError, match="did you mean hermes"):
        find_dialect("hermse")
