"""The four modes of the documents as one table, read off real requests: docs/reference/four-modes.md and its Chinese twin.

The same conversation is held in each mode against the loopback service: a prompt, a call with its result, an answer, a second prompt.
Every cell says what stands in the requests that the service received. `python -m checks.marked four-modes` writes the tables.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import dragoman as dm
from checks.marked import REFERENCE, Part

PAGES = {"en": REFERENCE / "four-modes.md", "zh": REFERENCE / "four-modes.zh-CN.md"}

SYSTEM, PROMPT, BESIDE, RESULT, NEXT = (
    "You watch a harbour.",
    "How many ships lie in Muscat?",
    "I will look.",
    "seven ships",
    "Which leaves first?",
)
CALL = {"name": "count_ships", "arguments": {"harbour": "Muscat"}}
ABOUT = "How many ships lie in a harbour."


@dm.tool(read_only=True)
def count_ships(harbour: str) -> str:
    """How many ships lie in a harbour."""
    return RESULT


@dataclass(frozen=True)
class Mode:
    model: str
    path: str
    in_text: bool

    @property
    def script(self) -> str:
        fence = f"{BESIDE}\n```json\n{json.dumps({'tool_call': CALL})}\n```"
        native = f"text: {BESIDE}\ncall: {CALL['name']} {json.dumps(CALL['arguments'])}"
        return f"{'text: ' + json.dumps(fence) if self.in_text else native}\n---\ntext: Seven.\n---\ntext: The dhow."


MODES = {
    "gemini": Mode("gemini/gemini-3.8-flash", "", in_text=False),
    "openai": Mode("openai/gpt-4.1", "/v1", in_text=False),
    "gemini-text": Mode("gemini/gemini-3.8-flash", "", in_text=True),
    "openai-text": Mode("openai/gpt-4.1", "/v1", in_text=True),
}


@dataclass(frozen=True)
class Seen:
    """What the service received in one mode."""

    bodies: list[dict[str, Any]]
    """With the option at its default."""
    without: list[dict[str, Any]]
    """With `preserve_context=False`."""

    @property
    def last(self) -> dict[str, Any]:
        return self.bodies[-1]

    @property
    def form(self) -> str:
        """The field that holds the conversation."""
        return next(name for name in ("contents", "messages") if name in self.last)

    @property
    def conversation(self) -> list[dict[str, Any]]:
        return [each for each in self.last[self.form] if each["role"] != "system"]


async def converse(mode: Mode, *, preserve: bool) -> list[dict[str, Any]]:
    """The bodies of the conversation's three requests. Each is one that the service takes."""
    text = dm.options.TextOptions(dialect="fenced_json", preserve_context=preserve)
    tools = dm.ToolOptions(own=[count_ships], calling="text" if mode.in_text else "native", text=text)
    async with dm.testing.MockServer(mode.script) as server:
        model = dm.connect(mode.model, base_url=server.url + mode.path, key="any")
        async with dm.Agent(model, tools=tools, system=SYSTEM) as agent:
            await agent.run(PROMPT)
            await agent.run(NEXT)
        assert [each.violation for each in server.requests] == [None] * 3
        return [each.body for each in server.requests]


async def look() -> dict[str, Seen]:
    return {name: Seen(await converse(mode, preserve=True), await converse(mode, preserve=False)) for name, mode in MODES.items()}


# --- finding things in a request


def paths(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text in it, and where it stands: `contents[0].parts[0].text`."""
    match value:
        case str():
            yield where, value
        case dict():
            for key, each in value.items():
                yield from paths(each, f"{where}.{key}" if where else key)
        case list():
            for number, each in enumerate(value):
                yield from paths(each, f"{where}[{number}]")


def path_of(body: Any, text: str) -> str:
    """Where this text stands; it stands in one place."""
    [found] = [where for where, each in paths(body) if text in each]
    return found


def role_of(body: dict[str, Any], text: str) -> str:
    """The role of the message that holds this text; for a field beside the conversation, the field."""
    where = path_of(body, text)
    field, _, rest = where.partition("[")
    return body[field][int(rest.partition("]")[0])]["role"] if field in ("contents", "messages") else field.partition(".")[0]


def parts_of(message: dict[str, Any]) -> list[Any]:
    found = message.get("parts", message.get("content"))
    return found if isinstance(found, list) else [found]


# --- the cells


def context_format(seen: Seen, say: dict[str, str]) -> str:
    part = "parts" if "parts" in seen.last[seen.form][0] else "content"
    format_ = f"`{seen.form}[]`: `role`, `{part}`"
    return format_ if "tools" in seen.last else f"{format_}{say['; ']}{say['guidance']} `{path_of(seen.last, ABOUT)}`"


def definition(seen: Seen, say: dict[str, str]) -> str:
    where = path_of(seen.last, ABOUT)
    return f"`{where.removesuffix('.description')}`" if "tools" in seen.last else say["in words"]


def history(seen: Seen, say: dict[str, str]) -> str:
    roles = " → ".join(f"`{each['role']}`" for each in seen.conversation)
    grows = all(
        after[seen.form][: len(before[seen.form])] == before[seen.form] for before, after in zip(seen.bodies, seen.bodies[1:], strict=False)
    )
    return f"{roles}{say['; ']}{say['grows' if grows else 'changes']}"


def roles(seen: Seen, say: dict[str, str]) -> str:
    texts = {"system": SYSTEM, "prompt": PROMPT, "answer": "Seven.", "result": RESULT}
    return say["; "].join(f"{say[name]}{say[': ']}`{role_of(seen.last, text)}`" for name, text in texts.items())


def calls(seen: Seen, say: dict[str, str]) -> str:
    """How the call and its result look, as they are sent back. Ids and signatures differ from run to run."""
    call, result = seen.conversation[1], seen.conversation[2]
    if "tools" not in seen.last:
        [written], [told] = parts_of(call), parts_of(result)
        written, told = (each["text"] if isinstance(each, dict) else each for each in (written, told))
        return f"{say['text']}{say[': ']}{code(written.removeprefix(BESIDE))}{say['; ']}{say['result']}{say[': ']}{code(told)}"
    if "tool_calls" in call:
        [native] = call["tool_calls"]
        return f"`tool_calls`{say[': ']}{code(native['function'])}{say['; ']}`tool`{say[': ']}{code(result['content'])}"
    [native] = [part["functionCall"] for part in call["parts"] if "functionCall" in part]
    [answer] = [part["functionResponse"] for part in result["parts"]]
    return f"`functionCall`{say[': ']}{code(without_id(native))}{say['; ']}`functionResponse`{say[': ']}{code(without_id(answer))}"


def kept(seen: Seen, say: dict[str, str]) -> str:
    """Whether the words beside the call are sent back."""
    default, off = (any(BESIDE in text for _, text in paths(bodies[-1])) for bodies in (seen.bodies, seen.without))
    match default, off:
        case True, True:
            return say["always kept"]
        case True, False:
            return say["kept by default"]
        case _:
            return say["dropped"]


def without_id(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != "id"}


def code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()).replace("|", "\\|")
    return f"```` {text} ````" if "`" in text else f"`{text}`"


ROWS = {"format": context_format, "definition": definition, "history": history, "roles": roles, "calls": calls, "kept": kept}
SAY: dict[str, dict[str, str]] = {
    "en": {
        ": ": ": ",
        "; ": "; ",
        "head": "item | standard Gemini | OpenAI-compatible | tools as text (Gemini) | tools as text (OpenAI)",
        "format row": "context format (上下文格式)",
        "definition row": "tool definition (工具定义)",
        "history row": "history (历史传递)",
        "roles row": "roles (角色映射)",
        "calls row": "calls (工具调用)",
        "kept row": "context kept (上下文保持)",
        "guidance": "the guidance in",
        "in words": "in the guidance, as words; no `tools`",
        "grows": "each request begins with all of the one before",
        "changes": "earlier messages change",
        "system": "system prompt",
        "prompt": "prompt",
        "answer": "answer",
        "result": "result",
        "text": "as text",
        "always kept": "words beside a call are sent back",
        "kept by default": "words beside a call are sent back; not with `preserve_context = false`",
        "dropped": "words beside a call are not sent back",
    },
    "zh": {
        ": ": "：",
        "; ": "；",
        "head": "项目 | 标准 Gemini | OpenAI 兼容 | 文本劫持（Gemini） | 文本劫持（OpenAI）",
        "format row": "上下文格式",
        "definition row": "工具定义",
        "history row": "历史传递",
        "roles row": "角色映射",
        "calls row": "工具调用",
        "kept row": "上下文保持",
        "guidance": "工具指导在",
        "in words": "写在工具指导里；没有 `tools`",
        "grows": "每次请求都以上一次的全部内容开头",
        "changes": "之前的消息有改动",
        "system": "系统提示",
        "prompt": "用户输入",
        "answer": "回答",
        "result": "工具结果",
        "text": "写成文字",
        "always kept": "调用旁边的话会发回",
        "kept by default": "调用旁边的话会发回；`preserve_context = false` 时不发回",
        "dropped": "调用旁边的话不发回",
    },
}


def table(seen: dict[str, Seen], language: str) -> str:
    say = SAY[language]
    rows = [[say[f"{name} row"], *(cell(each, say) for each in seen.values())] for name, cell in ROWS.items()]
    return "\n".join([f"| {say['head']} |", "|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


@cache
def seen() -> dict[str, Seen]:
    return asyncio.run(look())


def made(language: str) -> str:
    return table(seen(), language)


PARTS = tuple(Part(page, "four-modes", partial(made, language)) for language, page in PAGES.items())
