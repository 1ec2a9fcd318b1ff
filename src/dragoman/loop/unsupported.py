"""What of a small model's answer about files nothing supports: nothing was read, or it names what stands in nothing that was read.

A judgement by words alone, of a conversation's messages: no file is opened for it and no model asked. It errs to the side of silence where
an answer paraphrases, so an answer without a mark is not thereby right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from dragoman.values.messages import Message, ToolCall

MAX_ASKED_CHARS = 400
"""A longer prompt, or one with a fence, brings along what it is about."""
MAX_ANSWER_WORDS = 40
"""The plain words of a longer answer are its own: names, numbers and what it quotes are looked up all the same."""
SHOWN_NAMES = 3

_THINGS = (
    "files? folders? director(?:y|ies) tests? code codebase repo repository project functions? class(?:es)? modules? packages? scripts? "
    "readme config configuration makefile commits? branch branches diff changes build errors? settings? notes? report host port server "
    "database timeout version dependenc(?:y|ies) licen[cs]e author program documents? docs table column rows? lines? todo log"
).replace(" ", "|")
_POINTING = "the|this|my|our|these|those|all|each|every|which|what|any|how many|run|read|list|open|show|find|count|fix|check"
_FILE = r"(?:[\w.-]+/)*(?:[\w-]{2,}\.[A-Za-z]\w{0,4}|[\w-]\.[A-Za-z]\w{1,4}|Makefile|Dockerfile|LICENSE|README)"
_NAMED_FILE = rf"(?:^|(?<=[\s'\"`(]))({_FILE})(?=$|[\s'\"`),:;?!]|\.(?:\s|$))"
_ABOUT_FILES = (
    rf"\b(?:{_POINTING})\b(?:\s+[\w.-]+){{0,2}}?\s+(?:{_THINGS})\b"  # do the tests pass, list all files
    rf"|{_NAMED_FILE}"
    r"|\bhere\b|\b(?:who|whom|what|where|when|which \w+) (?:do|should|must|am) i\b"
    r"|\b(?:when|where) (?:is|are|was|were|does|do) (?:the|my|our) \w+(?: \w+)?\s*\?"  # when is the meeting?
    r"|\b(?:this|my|our) \w+|\b(?:costs?|prices?)\b"
    r"|文件|目录|文件夹|测试|代码|项目|仓库|函数|脚本|运行|这里|端口|配置|版本"
)
_HOW_TO = (
    r"^\s*(?:how (?:do|can|could|would|should) (?:i|you|one|we)|how to|what (?:is|are) (?:an? )?\w+\??$|what is an? |explain what"
    r"|怎么|如何|什么是)"
)
_RUNS = r"\b(?:pass(?:es|ing)?|compiles?|builds?|works?|fail(?:s|ing|ed)?|green)\b|^\s*(?:please )?run\b|^\s*运行|通过了?吗"
_PLEASE = r"^\s*(?:please |can you |could you |请)?"
_CHANGES = rf"{_PLEASE}(?:(?:add|append|delete|remove|rename|move|change|edit|fix|replace|update)\b|修改|删除|替换|添加|重命名)"
_MAKES = rf"{_PLEASE}(?:(?:create|write|make|put|save)\b|创建|新建|写入|写|保存)"
"""What is made may be the answer itself: a list, a summary."""
_CLAIMS_CHANGE = (
    r"\b(?:created|written|wrote|added|appended|deleted|removed|renamed|moved|changed|edited|fixed|replaced|updated|saved|done)\b"
    r"|已|完成|成功"
)
_ABSENT = (
    r"\b(?:do|does|did)(?: not|n[o'’]t) exist|\bno such\b|\bthere (?:is|are) no\b|\bnot (?:been )?found\b"
    r"|\b(?:could|can)(?: not|n['’]t|not) (?:be )?f(?:ind|ound)\b"
    r"|不存在|没有找到|找不到"
)
_UNABLE = (
    r"\b(?:can(?: ?not|['’]t)|could(?: not|n['’]t)|(?:am|are|was) (?:not able|unable)|do(?: not|n['’]t) (?:know|have|see)"
    r"|can only|have no|need to (?:read|see|look)"
    r"|not (?:sure|possible|provided|specified|mentioned|stated|given|available)|no information)\b"
    r"|无法|不能|不知道|没有权限|未提及|没有说明"
)
_WRITTEN = ("zero one two three four five six seven eight nine ten eleven twelve", "零一二三四五六七八九十")
_NUMBER_WORDS = {word: str(number) for words in (_WRITTEN[0].split(), _WRITTEN[1]) for number, word in enumerate(words)} | {"两": "2"}
_COUNTED = {
    "txt": r"text|txt", "py": r"python|py", "md": r"markdown|md", "csv": r"csv|spreadsheet", "json": r"json", "js": r"javascript|js",
    "png": r"images?|pictures?|png", "toml": r"toml", "sh": r"shell|sh",
}  # fmt: skip
_PLAIN_WORDS = """
a an the this that these those it its is are was were be been being am do does did done has have had will would can could may
might must shall should not no yes and or but if then than so as at by for from in into of off on onto out over to under up down
with without within about after before between during i you he she we they me him her us them my your his our their mine yours who
whom whose which what when where why how there here all any both each few more most other some such only own same too very just
also named called contains contain containing contained content contents file files folder folders directory says say said saying
states stated shows show shown lists list listed listing found one name names value set according given follows following located
inside currently respectively word line lines text number answer
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words that say nothing of their own."""


_EXISTENCE = r"\b(?:is|are) there\b|\bexists?\b|\bhave an?\b|有没有"
_OF_NAMES = (
    rf"{_EXISTENCE}|\b(?:files?|folders?|director(?:y|ies)|here|list|named?|called|how (?:many|large|big)|size|start|run)\b"
    r"|\b(?:scripts?|images?|pictures?|modules?|tests)\b|文件|目录|这里|多少|几个|名|启动|运行|图片|脚本"
)
"""What the names of files can answer."""


class Doubt(NamedTuple):
    """Why an answer is not supported, and by what names it shows."""

    why: Literal["nothing_read", "not_read", "names_only", "not_run", "not_written", "not_there"]
    names: tuple[str, ...] = ()


class _Evidence(NamedTuple):
    texts: tuple[str, ...]
    """What tools returned."""
    lists: tuple[str, ...]
    """Of these, what list_directory returned."""
    calls: tuple[ToolCall, ...]
    """The calls that went well."""
    failed: tuple[str, ...]
    """What calls that failed were about, and how they failed."""

    @property
    def whole(self) -> str:
        return "\n".join((*self.texts, *(call.arguments for call in self.calls)))


def find_doubt(asked: str, answer: str, messages: Sequence[Message]) -> Doubt | None:
    """Why this answer to a question about files is not supported by what tools have returned in the conversation; None where it is, or
    where it claims nothing about files."""
    seen = _gather(messages)
    is_about = is_about_files(asked) or _speaks_of_files(asked, answer) or _has_looked_in_vain(asked, messages)
    if not answer.strip() or not is_about:
        return None
    if (invented := _invented_files(asked, answer, seen)) and not seen.texts:
        return Doubt("nothing_read")
    if re.search(_ABSENT, answer, re.IGNORECASE) and not invented:
        # That a name which the model has thought of is not there says nothing.
        is_looked_up = seen.failed and (re.search(_NAMED_FILE, asked) or re.search(_EXISTENCE, asked, re.IGNORECASE))
        return None if seen.texts or is_looked_up else Doubt("nothing_read")
    if re.search(_UNABLE, answer, re.IGNORECASE) and not invented:
        return None
    is_change = re.search(_CHANGES, asked, re.IGNORECASE) is not None
    if is_change or re.search(_MAKES, asked, re.IGNORECASE):
        has_changed = any(call.name not in ("read_file", "list_directory", "read_many_files", "glob", "grep") for call in seen.calls)
        is_claimed = re.search(_CLAIMS_CHANGE, answer, re.IGNORECASE) is not None
        if has_changed:
            return None
        if is_change or is_claimed:
            return Doubt("not_written")
    if re.search(_RUNS, asked, re.IGNORECASE) and not any(call.name.startswith(("run_", "shell")) for call in seen.calls):
        return Doubt("not_run") if seen.texts else Doubt("nothing_read")
    if not seen.texts:
        return Doubt("nothing_read")
    if unread := _unread_files(asked, seen):
        return Doubt("not_read", unread)
    if len(seen.lists) == len(seen.texts) and re.search(_OF_NAMES, asked, re.IGNORECASE) is None:
        return Doubt("names_only")
    if wrong := _wrong_existence(asked, answer, seen):
        return Doubt("not_there", wrong)
    names = _unsupported(asked, answer, seen)
    return Doubt("not_there", names[:SHOWN_NAMES]) if names else None


def is_about_files(asked: str) -> bool:
    """Whether a prompt asks about what is in the workspace: its files, tests and commands, or a file by its name."""
    if len(asked) > MAX_ASKED_CHARS or "```" in asked or asked.count("\n") > 3 or _is_how_to(asked):
        return False
    return re.search(_ABOUT_FILES, asked, re.IGNORECASE) is not None


def _is_how_to(asked: str) -> bool:
    """Whether it asks how something is done anywhere, rather than here."""
    return re.search(_HOW_TO, asked, re.IGNORECASE) is not None and re.search(r"\b(?:this|my|our|these)\b|这", asked) is None


def _speaks_of_files(asked: str, answer: str) -> bool:
    """Whether the answer names a file, or says what is in one, though nobody had asked in such words."""
    if len(asked) > MAX_ASKED_CHARS or "```" in asked + answer or _is_how_to(asked):
        return False
    return (
        re.search(rf"{_NAMED_FILE}|\b(?:the|this|your) (?:file|folder|directory|project|repository)\b|文件", answer, re.IGNORECASE)
        is not None
    )


def _has_looked_in_vain(asked: str, messages: Sequence[Message]) -> bool:
    """Whether the model took the prompt for one about files, and no call of it went well."""
    since = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].text == asked), len(messages))
    results = [result for message in messages[since:] for result in message.results]
    return bool(results) and all(result.is_error for result in results)


def _gather(messages: Sequence[Message]) -> _Evidence:
    calls = {call.id: call for message in messages for call in message.calls}
    texts: list[str] = []
    lists: list[str] = []
    went_well: list[ToolCall] = []
    failed: list[str] = []
    for result in (each for message in messages for each in message.results):
        call = calls.get(result.call_id)
        if result.is_error:
            failed.append(f"{call.arguments if call else ''} {result.text}")
            continue
        texts.append(result.text)
        if result.name == "list_directory":
            lists.append(result.text)
        if call is not None:
            went_well.append(call)
    return _Evidence(tuple(texts), tuple(lists), tuple(went_well), tuple(failed))


def _wrong_existence(asked: str, answer: str, seen: _Evidence) -> tuple[str, ...]:
    """What is said to be there though no name that was listed is like it."""
    if re.search(r"\b(?:is|are) there an?y?\b", asked, re.IGNORECASE) is None:
        return ()
    wanted = tuple(word for word in re.findall(r"[\w'’.-]+", asked) if word.lower().strip(".") not in _PLAIN)
    found = _flat("\n".join(seen.texts))
    says_so = re.match(r"\s*(?:yes|there (?:is|are)(?! no))\b", answer, re.IGNORECASE) is not None
    return wanted if says_so and not any(_stem(word.lower()) in found for word in wanted) else ()


def _invented_files(asked: str, answer: str, seen: _Evidence) -> tuple[str, ...]:
    """Files that the answer names, and neither the question nor anything that was read."""
    known = f"{asked}\n" + "\n".join(seen.texts)
    return tuple(match.group(1) for match in re.finditer(_NAMED_FILE, answer) if match.group(1).lower() not in known.lower())


def _unread_files(asked: str, seen: _Evidence) -> tuple[str, ...]:
    """Files that the question names, and whose content no call has returned. Whether one is there, a list says as well."""
    if seen.lists and re.search(rf"{_EXISTENCE}|\bhow (?:large|big)\b|\bsize\b|多大", asked, re.IGNORECASE):
        return ()
    read = " ".join(call.arguments for call in seen.calls if call.name != "list_directory").lower()
    named = dict.fromkeys(match.group(1) for match in re.finditer(_NAMED_FILE, asked))
    return tuple(name for name in named if name.rpartition("/")[2].lower() not in read)


def _unsupported(asked: str, answer: str, seen: _Evidence) -> tuple[str, ...]:
    """What the answer names that stands neither in the question nor in what was read."""
    known = _flat(f"{seen.whole}\n{asked}")
    if (wrong := _wrong_count(asked, answer, seen)) is not None:
        return wrong
    if wrong := _wrong_choice(asked, answer, seen):
        return wrong
    strange = [name for name in _names_in(answer) if not _is_known(_flat(name), known)]
    if strange:
        return tuple(dict.fromkeys(strange))
    return _strange_words(asked, answer, known)


def _is_known(name: str, known: str) -> bool:
    """Of several words, such as a command, one that was read is enough: the others are looked up by themselves if they are names."""
    return name in known or name.rstrip("s") in known or (" " in name and any(len(word) > 3 and word in known for word in name.split()))


def _names_in(answer: str) -> Iterable[str]:
    """Numbers, quotations, file names and proper names."""
    bare = re.sub(r"(?m)^\s*(?:\d+[.)]|[-*])\s+", "", answer)
    yield from re.findall(r"[`\"“‘']([^`\"“”‘’'\n]{2,60})[`\"”’']", bare)
    yield from re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?![\w])", bare)
    yield from (match.group(1) for match in re.finditer(_NAMED_FILE, bare))
    for sentence in re.split(r"(?<=[.!?:])\s+|\n+", bare):
        yield from (word for word in re.findall(r"(?<!^)(?<=\s)[A-Z][\w'’-]+", sentence) if word.lower() not in _PLAIN)


def _flat(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d)|[*`]", "", text).lower()


def _wrong_choice(asked: str, answer: str, seen: _Evidence) -> tuple[str, ...]:
    """Of "up or down", the one that was said though what was read has only the other."""
    choice = re.search(r"\b(\w+) or (\w+)\b", asked)
    if choice is None:
        return ()
    read, words = _words(seen.whole), _words(answer)
    said = [each for each in choice.groups() if each.lower() in words]
    other = [each for each in choice.groups() if each.lower() not in words]
    if len(said) == len(other) == 1 and said[0].lower() not in read and other[0].lower() in read:
        return (said[0],)
    return ()


def _wrong_count(asked: str, answer: str, seen: _Evidence) -> tuple[str, ...] | None:
    """Of "how many": the number that was said, if it is neither counted nor written beside what was asked for; None where the question is
    none of number."""
    wanted = re.search(r"\bhow many\s+((?:\w+\s+)?\w+)|有(?:几|多少)个?(\w+)", asked, re.IGNORECASE)
    if wanted is None:
        return None
    said = [_NUMBER_WORDS.get(word, word) for word in _flat(answer).replace("*", "").split()]
    said = [word.strip(".,;:!?") for word in said]
    said = [_NUMBER_WORDS.get(word, word) for word in said if word.isdigit() or word in _NUMBER_WORDS]
    said = said or [_NUMBER_WORDS[sign] for sign in answer if sign in _NUMBER_WORDS]
    if not said:
        return None
    what = (wanted.group(1) or wanted.group(2)).lower()
    counted = _counts(what, seen)
    if counted is None:
        stem = what.split()[-1].rstrip("s")[:6]
        beside = [_flat(line) for text in seen.texts for line in text.splitlines() if stem in line.lower()]
        counted = {number for line in beside or [_flat(seen.whole)] for number in re.findall(r"\d+(?:\.\d+)?", line)}
        counted |= {_NUMBER_WORDS[word] for line in beside for word in line.split() if word in _NUMBER_WORDS}
    return () if any(number in counted for number in said) else (said[0],)


def _counts(what: str, seen: _Evidence) -> set[str] | None:
    """How many lines, files or folders the results show; None where something else is counted."""
    if "line" in what or "行" in what:
        return {str(len(text.strip("\n").splitlines())) for text in seen.texts}
    entries = [[entry for entry in text.splitlines() if entry.strip()] for text in seen.lists]
    if re.search(r"folder|director|文件夹|目录", what):
        return {str(sum(entry.rstrip().endswith("/") for entry in each)) for each in entries} or None
    if re.search(r"file|image|picture|script|文件|图片|脚本", what) and entries:
        names = [[entry.split("  ")[0].strip() for entry in each if not entry.rstrip().endswith("/")] for each in entries]
        for ending, words in _COUNTED.items():
            if re.search(rf"\b(?:{words})\b", what):
                return {str(sum(name.lower().endswith(f".{ending}") for name in each)) for each in names}
        return {str(len(each)) for each in names}
    return None


def _strange_words(asked: str, answer: str, known: str) -> tuple[str, ...]:
    """The words of a short answer that are new, where not one of them was read: it says something else than the file."""
    new = _words(answer) - _words(asked) - _PLAIN
    if not new or len(answer.split()) > MAX_ANSWER_WORDS or not answer.isascii():
        return ()
    if any(_stem(word) in known for word in new):
        return ()
    return tuple(word for word in re.findall(r"[\w'’-]+", answer) if word.lower() in new)


def _words(text: str) -> set[str]:
    return {word.strip("'’-_").lower() for word in re.findall(r"[\w'’-]+", text)}


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 3)] if len(word) > 5 else word
