"""Which session is meant, by `latest` or by the beginning of an id: the same in every store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dragoman.base.ids import is_beginning, named_by, short_ids
from dragoman.base.text import one_line
from dragoman.sessions.projects import quote_typed
from dragoman.sessions.summary import Summary
from dragoman.values.errors import InputError, NoSession
from dragoman.words import say

_NAMED = 6
"""How many of the sessions that may have been meant are named."""


def find_session(
    which: str,
    list_here: Callable[[], Iterable[Summary]],
    places: Callable[[], Mapping[str, str]],
    list_named: Callable[[Sequence[str]], Sequence[Summary]],
) -> Summary:
    """`places` has the path of every session by its id; `list_here` lists those that `latest` may be, `list_named` those with these ids.

    Raises NoSession if none matches, InputError if more than one does.
    """
    which = which.strip().lower()
    if which in ("", "latest"):
        latest = next((summary for summary in list_here() if summary.entries > 1 and not summary.parent), None)
        if latest is None:  # a log that holds only its head is nothing to go on with
            raise NoSession(say("sessions.none_here"))
        return latest
    if not is_beginning(which):
        raise InputError(say("sessions.no_number" if _is_number(which) else "sessions.not_a_choice", session=quote_typed(which)))
    paths = places()
    named = named_by(which, paths)
    found = list_named(named)
    if not found and named:  # it is there, and not listed
        raise InputError(say("sessions.nothing_readable", session=named[0], path=paths[named[0]]))
    if not found:
        raise NoSession(say("sessions.no_number" if _is_number(which) else "sessions.not_found", session=quote_typed(which)))
    if len(found) > 1:
        some = _name_some(found, short_ids([*paths, *(each.session_id for each in found)]))
        raise InputError(say("sessions.ambiguous", name=quote_typed(which), count=len(found), some=some))
    return found[0]


def short_ids_of(session_ids: Iterable[str], known: Iterable[str]) -> Mapping[str, str]:
    """What these sessions are called on the screen: each by a beginning of its random part that no other session has."""
    asked = list(session_ids)
    short = short_ids([*known, *asked])  # one of them may be deleted just now, or not stored yet
    return {each: short[each] for each in asked}


def _name_some(summaries: Sequence[Summary], short: Mapping[str, str]) -> str:
    """The sessions that may have been meant, with their titles."""
    some = [say("sessions.named", id=short[each.session_id], title=one_line(each.title, 60)) for each in summaries[:_NAMED]]
    return "; ".join(some) + ("; …" if len(summaries) > _NAMED else "")


def _is_number(which: str) -> bool:
    """Sessions had numbers once, and someone may still type one."""
    return which.isascii() and which.isdecimal() and len(which) < 6
