"""Which answers of small models are marked: questions, what was read, and answers as these models give them."""

from __future__ import annotations

import pytest

from dragoman.loop.unsupported import Doubt, find_doubt, is_about_files
from dragoman.values.messages import Message, ToolCall, tool_result, user

NOTES = "Buy milk.\nThe meeting is on Thursday at ten.\nCall Anna.\n"
APP = "import sys\n\nPORT = 8443\n\n\ndef next_ferry(now):\n    return now + 20\n"
FOLDER = "data/\ndocs/\nREADME.md  120 bytes\napp.py  90 bytes\nconfig.toml  41 bytes\nnotes.txt  58 bytes\nsecret.txt  30 bytes"
PRICES = "name,price\ntea,3\ncoffee,4\n"
RECIPE = "200 g flour, 3 eggs, 400 ml milk"
SALES = "# Report\n\nWritten by Ada Okafor.\n\nSales went up.\n"


def read(*reads: tuple[str, str, str]) -> list[Message]:
    """Calls and what they returned; a result that begins with `!` is an error."""
    messages: list[Message] = []
    for number, (tool, path, result) in enumerate(reads):
        call = ToolCall(str(number), tool, f'{{"path": "{path}"}}')
        messages += [
            Message("assistant", (call,)),
            Message("user", (tool_result(call, result.removeprefix("!"), is_error=result.startswith("!")),)),
        ]
    return messages


NOTES_READ = read(("read_file", "notes.txt", NOTES))
APP_READ = read(("read_file", "app.py", APP))
LISTED = read(("list_directory", ".", FOLDER))
GONE = read(("read_file", "todo.md", "!todo.md does not exist; similar: notes.txt"))

SUPPORTED = [
    ("when is the meeting?", "The meeting is on Thursday at ten.", NOTES_READ),
    ("when is the meeting in notes.txt?", "On Thursday.", NOTES_READ),
    ("what should I buy, by notes.txt?", "You should buy milk.", NOTES_READ),
    ("whom do I have to call, by notes.txt?", "Anna", NOTES_READ),
    ("which port does app.py use?", "It uses port `8443`.", APP_READ),
    ("which functions are in app.py?", "next_ferry", APP_READ),
    ("how many lines has notes.txt?", "It has 3 lines.", NOTES_READ),
    ("how many lines has notes.txt?", "Three.", NOTES_READ),
    ("how many files are in this folder?", "There are 5 files in this folder.", LISTED),
    ("how many text files are in this folder?", "Two text files.", LISTED),
    ("which folders are here?", "data and docs", LISTED),
    ("which text files are here?", "1. notes.txt\n2. secret.txt", LISTED),
    ("is there a file notes.txt here?", "Yes, notes.txt is there.", LISTED),
    ("is there a license file here?", "No, there is no license file.", LISTED),
    ("is there a readme here?", "Yes, README.md.", LISTED),
    ("is there a data folder?", "Yes, there is.", LISTED),
    ("which file has the notes?", "notes.txt", LISTED),
    ("what is in todo.md?", "There is no file named todo.md.", GONE),
    ("what is in todo.md?", "The file todo.md does not exist.", GONE),
    ("what does coffee cost, by data/prices.csv?", "Coffee costs 4.", read(("read_file", "data/prices.csv", PRICES))),
    ("how many eggs does recipe.txt ask for?", "3 eggs", read(("read_file", "recipe.txt", RECIPE))),
    ("did sales go up or down, by report.md?", "Sales went up.", read(("read_file", "report.md", SALES))),
    ("who wrote report.md?", "Ada Okafor wrote it.", read(("read_file", "report.md", SALES))),
    ("summarise notes.txt", "You have to buy milk, meet on Thursday and call Anna.", NOTES_READ),
    ("what does app.py do?", "It defines a function that adds 20 to the time of the next ferry.", APP_READ),
    ("会议是什么时候？notes.txt", "星期四十点（Thursday at ten）", NOTES_READ),
    ("how do I start this program?", "Run the command `python app.py`.", LISTED),
    ("do the tests pass?", "I cannot run the tests.", []),
    ("do the tests pass?", "Yes, they pass.", read(("run_shell", "pytest", "3 passed"))),
    ("add a line to notes.txt", "I added the line.", read(("write_file", "notes.txt", "written"))),
    ("add a line to notes.txt", "I can only read files.", []),
    ("make a list of the files here", "notes.txt, secret.txt", LISTED),
    ("write a summary of notes.txt", "Buy milk, meet on Thursday, call Anna.", NOTES_READ),
    ("what is the capital of Italy?", "Rome.", []),
    ("hi", "Good morning!", []),
    ("how do I read a file in Python?", "Use `open('a.txt').read()`.", []),
    ("what is a unit test?", "A test of one function.", []),
    ("write a haiku about rain", "Rain falls\nand falls.", []),
    ("what is 12 times 12?", "144", []),
]
DOUBTED = [
    ("do the tests pass?", "Yes, all tests pass.", [], "nothing_read"),
    ("do the tests pass?", "Yes, all tests pass.", APP_READ, "not_run"),
    ("what is this project about?", "It is a web shop.", [], "nothing_read"),
    ("how do I run this program?", "Run `python main.py`.", [], "nothing_read"),
    ("when is the meeting?", "On Monday at nine.", [], "nothing_read"),
    ("what does coffee cost?", "Coffee costs 5 dollars.", [], "nothing_read"),
    ("which port does the server use?", "8080", [], "nothing_read"),
    ("what is in todo.md?", "The file does not exist.", [], "nothing_read"),
    ("what is in todo.md?", "It holds a list of tasks.", GONE, "nothing_read"),
    ("what does the function next_ferry return?", "It returns the contents of the data folder.", LISTED, "names_only"),
    ("who do I have to call?", "The app.py file.", LISTED, "names_only"),
    ("is there a license file here?", "Yes, there is a license file here.", LISTED, "not_there"),
    ("where are the tickets?", "tickets does not exist: find it with list_directory",
     read(("read_file", "tickets", "!tickets does not exist")), "nothing_read"),
    ("where are tickets sold?", "Error: tickets does not exist: find it with list_directory",
     read(("read_file", "tickets", "!tickets does not exist")), "nothing_read"),
    ("how do I start this program?", "Run `python main.py`.", LISTED, "not_there"),
    ("how do I start this program?", "start_program.txt does not exist.", GONE, "nothing_read"),
    ("when is the meeting?", "The meeting is not specified in the meeting.txt file.", LISTED, "names_only"),
    ("what is in it?", "The file holds three names.", [], "nothing_read"),
    ("which port does config.toml set?", "8443", APP_READ, "not_read"),
    ("which port does app.py use?", "It uses port 8080.", APP_READ, "not_there"),
    ("when is the meeting in notes.txt?", "On Monday.", NOTES_READ, "not_there"),
    ("what is the secret word in secret.txt?", "The secret word is banana.",
     read(("read_file", "secret.txt", "The secret word is marmalade.")), "not_there"),
    ("how many lines has notes.txt?", "It has 5 lines.", NOTES_READ, "not_there"),
    ("how many files are in this folder?", "There are 7 files.", LISTED, "not_there"),
    ("how many text files are in this folder?", "There are 5 text files.", LISTED, "not_there"),
    ("how many eggs does recipe.txt ask for?", "two eggs", read(("read_file", "recipe.txt", RECIPE)), "not_there"),
    ("did sales go up or down, by report.md?", "Sales went down.", read(("read_file", "report.md", SALES)), "not_there"),
    ("who wrote report.md?", "It was written by John Smith.", read(("read_file", "report.md", SALES)), "not_there"),
    ("which text files are here?", "notes.txt and todo.txt", LISTED, "not_there"),
    ("add a line to notes.txt", "The line has been added.", NOTES_READ, "not_written"),
    ("add the line `Ring Bob.` to notes.txt", "Add the line Ring Bob.", [], "not_written"),
    ("create a file hello.txt", "I created hello.txt.", [], "not_written"),
    ("测试通过了吗？", "是的，所有测试都通过了。", [], "nothing_read"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "answer", "messages"), SUPPORTED)
def test_what_was_read_or_asks_for_no_file_is_not_marked(asked: str, answer: str, messages: list[Message]) -> None:
    assert find_doubt(asked, answer, [user(asked), *messages]) is None


@pytest.mark.parametrize(("asked", "answer", "messages", "why"), DOUBTED)
def test_what_nothing_supports_is_marked(asked: str, answer: str, messages: list[Message], why: str) -> None:
    found = find_doubt(asked, answer, [user(asked), *messages])
    assert found is not None
    assert found.why == why


def test_it_is_said_which_name_was_not_read() -> None:
    assert find_doubt("which port does app.py use?", "Port 8080.", APP_READ) == Doubt("not_there", ("8080",))
    assert find_doubt("what is in b.txt?", "Milk.", NOTES_READ) == Doubt("not_read", ("b.txt",))


def test_a_long_prompt_brings_along_what_it_is_about() -> None:
    assert not is_about_files("Summarise the file:\n" + "words\n" * 50)


@pytest.mark.parametrize("text", ["", "." * 400, "a" * 400, "how many " * 40, "'" * 300, "x/" * 190, "1 " * 190])
def test_no_text_takes_long(text: str) -> None:
    find_doubt(f"{text} a.txt", text * 20, NOTES_READ)
