"""Parameter names that models use interchangeably. Each row is a set of synonyms, without case and punctuation."""

from __future__ import annotations

WRAPPERS = frozenset(
    (
        "arguments",
        "args",
        "parameters",
        "params",
        "input",
        "inputs",
        "toolinput",
        "kwargs",
        "properties",
        "data",
        "body",
        "payload",
        "request",
    )
)
"""Keys that some models put around all the arguments."""

GROUPS: tuple[frozenset[str], ...] = tuple(
    frozenset(row.split())
    for row in (
        "path filepath absolutepath abspath file filename targetfile targetpath pathname relativeworkspacepath",
        "path directory dir dirpath directorypath folder folderpath targetdirectory absolutepath root",
        "paths files filepaths filenames",
        "command cmd commandline shellcommand shell bashcommand script",
        "content contents text filecontent filecontents filetext data body",
        "oldstring oldstr oldtext search searchtext find original",
        "newstring newstr newtext replace replacement replacewith replacetext",
        "pattern regex regexp query search searchpattern searchquery glob globpattern",
        "query q question prompt searchterm searchquery keywords",
        "url uri link href address",
        "limit maxresults maxlines maxcount maxentries maxmatches headlimit count numresults topk n num",
        "offset start startline fromline begin linenumber line",
        "end endline toline",
        "cwd workdir workingdir workingdirectory workdirectory currentdirectory directory dir folder path",
        "timeout timeouts timeoutsecs timeoutseconds timeoutsec",
        "include includes includepattern includeglob fileglob filepattern globfilter glob files",
        "question prompt message text",
        "location city place address",
        "name title label",
        "description summary explanation reason",
        "language lang locale",
        "email mail emailaddress",
        "message msg body text content",
        "todos items tasks todolist",
        "replaceall all allowmultiple isglobal",
        "context contextlines linesaround linesofcontext c",
        "hidden includehidden showhidden",
        "casesensitive matchcase",
        "background isbackground runinbackground",
    )
)


def _by_name() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for group in GROUPS:
        for name in group:
            table.setdefault(name, set()).update(group - {name})
    return {name: frozenset(others) for name, others in table.items()}


SYNONYMS = _by_name()
"""Folded name → its folded synonyms."""
