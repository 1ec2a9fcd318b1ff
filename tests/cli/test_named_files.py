"""Files and folders that a prompt names with `@`, sent with it: with -p, line by line, and from whoever holds a Conversation."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.options import Options
from dragoman.conversation.conversation import Conversation
from dragoman.testing.mock.server import MockServer
from program import Place, Service
from terminals import terminal

Serve = Callable[..., Service]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
LINES = "".join(f"line {number}\n" for number in range(1, 61))


@pytest.fixture
def files(place: Place) -> Place:
    (place.work / "calc.py").write_text(LINES)
    (place.work / "src").mkdir()
    (place.work / "src" / "a.py").write_text("A = 1\n")
    (place.work / "my notes.md").write_text("a note\n")
    (place.work / "笔记.md").write_text("你好\n", encoding="utf-8")
    return place


def sent_with(service: Service) -> list[str]:
    """The texts of the last message that the model was sent, without the prompt."""
    said = service.requests[-1]["messages"][-1]["content"]
    texts = [part["text"] for part in said if part["type"] == "text"]
    return [text.strip("\n") for text in texts if text.startswith("\n\n--- ")]


@pytest.mark.parametrize(
    ("prompt", "shown", "holds"),
    [
        ("explain @calc.py", "calc.py", LINES.rstrip()),
        ("explain @calc.py:10-12, please", "calc.py, from line 10", "line 10\nline 11\nline 12\n[lines 10-12 of 60: go on with offset=13]"),
        ("what is (@calc.py#L59-)?", "calc.py, from line 59", "line 59\nline 60"),
        ("what is in @src/?", "src, a folder", "a.py  6 bytes"),
        ('sum up @"my notes.md".', "my notes.md", "a note"),
        ("看看@笔记.md的内容", "笔记.md", "你好"),
        ("看看@calc.py:3。", "calc.py, from line 3", "line 3"),
        ("compare @gone,@calc.py:1, please", "calc.py, from line 1", "line 1"),
    ],
    ids=["whole", "lines", "to the end", "folder", "quoted", "no blanks", "a line, and a Chinese stop", "after a comma"],
)
def test_what_is_named_goes_with_the_prompt(files: Place, serve: Serve, prompt: str, shown: str, holds: str) -> None:
    service = serve("text: ok")
    assert files.ask(prompt).code == 0
    [text] = sent_with(service)
    head, _, rest = text.partition("\n")
    assert head == f"--- {shown} ---"
    assert rest.startswith(holds)


def test_files_go_with_the_prompt_where_there_are_mcp_servers_too(files: Place, serve: Serve) -> None:
    """A server has names with a colon; the others are files'."""
    harbour = Path(__file__).resolve().parent.parent / "mcp_servers" / "harbour_server.py"
    files.run("mcp", "add", "harbour", "--", sys.executable, str(harbour))
    service = serve("text: ok")
    assert files.ask("compare @harbour:chart://muscat with @calc.py:3").code == 0
    assert [text.splitlines()[0] for text in sent_with(service)] == ["--- calc.py, from line 3 ---"]
    assert "Content of @harbour:chart://muscat" in json.dumps(service.requests[-1]["messages"])


def test_names_may_follow_one_another_without_a_blank(files: Place, serve: Serve) -> None:
    """Each goes with its prompt, with a line of its own, and is an item by its name: files, images, in the order they are named."""
    (files.work / "图@2x.png").write_bytes(PNG)
    service = serve("text: ok")
    with terminal(files) as pane:
        pane.prompt()
        pane.ask("看@笔记.md、@图@2x.png，@calc.py:2。@没有.py也行")
        said = pane.prompt()
    assert [line for line in said.splitlines() if line.startswith("@")] == [
        "@没有.py is no file here, so it was sent as it stands",
        "@笔记.md · 1 line",
        "@图@2x.png · image/png",
        "@calc.py:2 · 1 line",
    ]
    [*_, image, _] = service.requests[-1]["messages"][-1]["content"]
    assert image["type"] == "image"
    items = json.loads(files.run("context", "--output-format", "json").out)["items"]
    sizes = {item["name"]: item["tokens"] for item in items if item["kind"] == "attached"}
    assert list(sizes) == ["@笔记.md", "@图@2x.png", "@calc.py:2"]
    assert sizes["@图@2x.png"] > 200
    [prompt] = [item["tokens"] for item in items if item["kind"] == "prompt"]
    assert prompt < 100


def test_of_what_is_too_large_a_part_is_sent_and_told(files: Place, serve: Serve) -> None:
    (files.work / "big.txt").write_text("x\n" * 5_000)
    (files.work / "many").mkdir()
    for number in range(600):
        (files.work / "many" / f"{number}.txt").touch()
    serve("text: ok")
    with terminal(files) as pane:
        pane.prompt()
        pane.ask("sum up @big.txt @many/ @big.txt:3-5 @calc.py:50-")
        pane.expect("@big.txt · 2,000 of 5,000 lines", "@many/ · 500 of 600 entries", "@big.txt:3-5 · 3 lines", "@calc.py:50- · 11 lines")


def test_with_p_what_is_sent_in_part_is_told_beside_the_answer(files: Place, serve: Serve) -> None:
    (files.work / "big.txt").write_text("x\n" * 5_000)
    serve("text: ok")
    done = files.ask("sum up @big.txt and @calc.py:2-3")
    assert (done.code, done.out) == (0, "ok\n")
    assert done.err == "dragoman: @big.txt · 2,000 of 5,000 lines\n"


def test_what_is_no_file_is_left_as_it_stands(files: Place, serve: Serve) -> None:
    service = serve("text: ok")
    done = files.ask("ask ann@example.org about @dataclass, @types/node and @calk.py")
    assert done.code == 0
    assert sent_with(service) == []
    assert "@calk.py is no file here" in done.err
    assert "@types/node" not in done.err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe.txt", "FIFO"),
        ("secret.env", "rule"),
        ("secret.png", "rule"),
        ("../outside.txt", "outside the workspace"),
        ("link.txt", "outside the workspace"),
        ("link.png", "outside the workspace"),
        ("blob.bin", "binary"),
    ],
)
def test_what_may_not_be_read_is_refused_in_words_and_nothing_is_sent(files: Place, serve: Serve, name: str, reason: str) -> None:
    """A pipe is not waited for; a link, a rule and another name for a file hold as they do for the model."""
    os.mkfifo(files.work / "pipe.txt")
    (files.work / "secret.env").write_text("TOKEN=1")
    (files.work / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (files.work.parent / "outside.txt").write_text("elsewhere")
    (files.work / "link.txt").symlink_to(files.work.parent / "outside.txt")
    (files.work.parent / "outside.png").write_bytes(PNG)
    (files.work / "link.png").symlink_to(files.work.parent / "outside.png")
    (files.work / "blob.bin").write_bytes(bytes(range(256)) * 8)
    service = serve("text: ok")
    done = files.ask(f"look at @{name}", "--deny", "read_file secret.*")
    assert done.code == 42, done.err
    assert reason in done.err
    assert service.requests == []


def test_what_came_through_a_pipe_names_no_files(files: Place, serve: Serve) -> None:
    service = serve("text: ok")
    assert files.run("-m", "anthropic/claude-opus-5", "-p", "sum it up", stdin="mail from @calc.py").code == 0
    assert sent_with(service) == []


def test_it_is_an_item_of_its_own_in_the_record_and_counts_as_read(files: Place, serve: Serve) -> None:
    """The title is what the person wrote, the plan has the file by name, and the file may be written as a whole."""
    write = json.dumps({"file_path": "my notes.md", "content": "another\n"})
    service = serve(f"call: write_file {write}\n---\ntext: ok")
    assert files.ask('rewrite @"my notes.md" @calc.py:1-2', "--approval", "auto-edit").code == 0
    assert (files.work / "my notes.md").read_text() == "another\n"
    assert len(service.requests) == 2
    shown = json.loads(files.run("sessions", "show", "latest", "--output-format", "json").out)
    [prompt] = [step for step in shown["steps"] if step["type"] == "prompt"]
    assert (prompt["text"], prompt["attached"]) == ('rewrite @"my notes.md" @calc.py:1-2', ["@my notes.md", "@calc.py:1-2"])
    items = json.loads(files.run("context", "--output-format", "json").out)["items"]
    assert [item["name"] for item in items if item["kind"] == "attached"] == ["@my notes.md", "@calc.py:1-2"]
    export = files.run("sessions", "export", "latest").out
    assert "@calc.py:1-2" in export
    assert "line 1" not in export.partition("## ")[2].partition("write_file")[0]


def test_line_by_line(files: Place, serve: Serve) -> None:
    service = serve("text: ok")
    files.ui = "plain"
    with terminal(files) as pane:
        pane.prompt()
        pane.ask("explain @calc.py and @gone/pic.png")
        pane.expect("gone/pic.png", "@calc.py · 60 lines", "ok")
    assert sent_with(service)[0].startswith("--- calc.py ---\nline 1\n")


def test_whoever_holds_a_conversation_sends_them_too_also_while_it_works(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("alpha\n")
    (place.work / "b.txt").write_text("beta\n")

    async def scene() -> list[str]:
        async with MockServer('call: read_file {"file_path": "b.txt"}\n---\ntext: done') as server:
            env = place.env | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
            options = Options(model="anthropic/claude-opus-5", directory=str(place.work), sandbox="off")
            conversation = await Conversation.open(options, env)
            try:
                sent = conversation.send("look at @a.txt")
                while not conversation.can_steer:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                conversation.send("and @b.txt", when="steer")
                await sent.ended
            finally:
                await conversation.close()
            return [json.dumps(exchange.body["messages"]) for exchange in server.requests]

    first, second = asyncio.run(scene())
    assert "--- a.txt ---" in first
    assert "--- b.txt ---" in second
