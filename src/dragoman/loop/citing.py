"""The sources that an answer rests on."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.values.messages import Citation, Response, Source


def each_once(sources: Iterable[Source], *, numbered: int = 0) -> tuple[Source, ...]:
    """The sources without repeats of one page. The first `numbered` stay where they are, because an answer refers to them by number."""
    kept: list[Source] = []
    seen: set[str] = set()
    for source in sources:
        name = source.uri or source.title
        if len(kept) < numbered or name not in seen:
            kept.append(source)
        seen.add(name)
    return tuple(kept)


def citations_of(answer: Response) -> tuple[str, tuple[Source, ...]]:
    """The text with its numbered markers, and the sources they stand for; nothing where the service named none."""
    if not any(isinstance(part, Citation) for part in answer.message.parts):
        return "", ()
    from dragoman.tools.web.grounding import cite_message

    cited = cite_message(answer.message)
    return (cited.text, cited.sources) if cited.sources else ("", ())
