"""A folder tree as text, and back: what the model was told about a folder can be compared with its current contents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

INDENT = "  "
_MORE = "… "
_CLOSED = " …"
_UNCOUNTED = "many more"


class Listing(msgspec.Struct, frozen=True):
    """The names in one folder, those of folders with a trailing `/`, and how many are not shown."""

    names: tuple[str, ...] = ()
    more: int = 0
    """-1: many, and not counted."""


Tree = Mapping[str, Listing]
"""Folders by their path from the top, each with a trailing `/`; the top itself is the empty path. A missing folder was not opened."""


def tree_lines(tree: Tree, folder: str = "") -> Iterator[str]:
    """One name per line, indented by depth. `name/ …` is a folder whose contents are not shown, `… 12 more` what one omits."""
    listing = tree[folder]
    indent = INDENT * (folder.count("/") + 1)
    for name in listing.names:
        inner = folder + name
        if not name.endswith("/"):
            yield indent + name
        elif inner in tree:
            yield indent + name
            yield from tree_lines(tree, inner)
        else:
            yield indent + name + _CLOSED
    if listing.more:
        yield f"{indent}{_MORE}{_UNCOUNTED if listing.more < 0 else f'{listing.more:,} more'}"


def read_tree(lines: Sequence[str]) -> dict[str, Listing]:
    """Parse the output of `tree_lines`. Never raises: any other line is skipped."""
    names: dict[str, list[str]] = {"": []}
    more: dict[str, int] = {}
    path: list[str] = []
    for line in lines:
        text = line.lstrip(" ")
        depth = (len(line) - len(text)) // len(INDENT)
        if not text or not 0 < depth <= len(path) + 1:
            continue
        del path[depth - 1 :]
        folder = "".join(path)
        if (count := _count_of(text)) is not None:
            more[folder] = count
        elif text.endswith("/"):
            names[folder].append(text)
            path.append(text)
            names.setdefault(folder + text, [])
        else:
            names[folder].append(text.removesuffix(_CLOSED) if text.endswith("/" + _CLOSED) else text)
    return {folder: Listing(tuple(found), more.get(folder, 0)) for folder, found in names.items()}


def escape_tree_name(name: str) -> str:
    """A name that cannot be mistaken for a line of ours. Tools read the escape back."""
    return f"\\u2026{name[1:]}" if name.startswith("…") else name


def diff_trees(before: Tree, now: Tree) -> tuple[list[str], list[str]]:
    """Paths that were added and paths that were removed, as far as both trees show. A name merely no longer shown was not removed."""
    added: list[str] = []
    removed: list[str] = []
    for folder, listing in now.items():
        if (old := before.get(folder)) is None:
            continue
        if not old.more:
            added += [folder + name for name in listing.names if name not in old.names]
        if not listing.more:
            removed += [folder + name for name in old.names if name not in listing.names]
    return added, removed


def apply_changes(before: Tree, added: Sequence[str], removed: Sequence[str]) -> dict[str, Listing]:
    """The tree as the model knows it after these changes. Of an added folder it knows only the name."""
    tree = dict(before)
    for path in removed:
        folder, name = _split_path(path)
        if folder in tree:
            tree[folder] = Listing(tuple(each for each in tree[folder].names if each != name), tree[folder].more)
        for inside in [each for each in tree if path.endswith("/") and each.startswith(path)]:
            del tree[inside]
    for path in added:
        folder, name = _split_path(path)
        if folder in tree and name not in tree[folder].names:
            tree[folder] = Listing((*tree[folder].names, name), tree[folder].more)
    return tree


def _split_path(path: str) -> tuple[str, str]:
    """The folder, with its `/`, and the name, with a folder's."""
    cut = path.rstrip("/").rfind("/") + 1
    return path[:cut], path[cut:]


def _count_of(text: str) -> int | None:
    if not text.startswith(_MORE):
        return None
    if text == _MORE + _UNCOUNTED:
        return -1
    digits = text.removeprefix(_MORE).removesuffix(" more").replace(",", "")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 16 else None
