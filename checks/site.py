"""`make site`: the documentation as a site with search, in build/site.

The pages are those of docs/, as they are: what GitHub shows is what the site shows. Beside them come a page for each public module, made of
its docstrings, and for each page that has no Chinese twin the English one, which says so. Nothing is fetched when the site is looked at.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import dragoman
from checks import twins
from checks.prose import CHINESE, CHINESE_MARKS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "site-pages"
REPOSITORY = os.environ.get("DRAGOMAN_REPOSITORY", "")
"""The address below which files of the repository are shown. Without one, a link to a file that is no page is just its words."""
INDEX = "pages"
"""What the list of all pages (docs/README.md) is called on the site, whose first page is the README at the top."""
TABLES = """\
// A table that is wider than the window is scrolled with the keyboard too.
new MutationObserver(() => {
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) each.tabIndex = 0
}).observe(document.documentElement, {childList: true, subtree: true})
"""
FALLS_BACK = "> 本页尚无中文版，以下为英文原文。\n\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages-only", action="store_true", help="put the pages together and build nothing")
    parser.add_argument("--builder", default="zensical", choices=("zensical", "mkdocs"))
    chosen = parser.parse_args()
    count = make_pages()
    print(f"{count} pages in {PAGES.relative_to(ROOT)}")
    if chosen.pages_only:
        return
    program = Path(sys.executable).with_name(chosen.builder)
    # Zensical brings the theme that mkdocs.yml names; where mkdocs does not have it (mkdocs-material), it builds with its own.
    theme = ["--theme", "readthedocs"] if chosen.builder == "mkdocs" and find_spec("material") is None else []
    done = subprocess.run([program, "build", *theme], cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    if done.returncode:
        raise SystemExit(done.returncode)


def make_pages() -> int:
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in sorted(DOCS.rglob("*")):
        if page.is_file() and page.suffix in (".md", ".svg", ".png"):
            put(page.relative_to(DOCS), page)
    write("index.md", with_links(readme("README.md"), Path("README.md")))
    write("zh/index.md", without_gaps(with_links(readme("README.zh-CN.md"), Path("README.zh-CN.md"), up="../")))
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        write(f"{name}.md", with_links((ROOT / f"{name}.md").read_text(encoding="utf-8"), Path(f"{name}.md")))
    write("tables.js", TABLES)
    for name in sorted({"dragoman", *(f"dragoman.{each}" for each in dragoman._MODULES)}):
        write(f"reference/python/{name}.md", f"# {name}\n\n::: {name}\n")
    return sum(1 for _ in PAGES.rglob("*.md"))


def put(name: Path, page: Path) -> None:
    """A page where it stands in docs/; a Chinese one at the same place under zh/, with the English one until there is a Chinese."""
    if name.stem.partition(".")[0] == "README" and not name.parent.parts:
        name = Path(name.name.replace("README", INDEX))
    if page.suffix != ".md":
        for folder in (PAGES, PAGES / "zh"):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)
        return
    text = page.read_text(encoding="utf-8")
    if name.name.endswith(".zh-CN.md"):
        write(str(Path("zh") / chinese_name(name)), without_gaps(with_links(text, Path("docs") / name, up="../")))
        return
    write(str(name), with_links(text, Path("docs") / name))
    if not page.with_name(f"{page.stem}.zh-CN.md").exists() and "decisions" not in name.parts:
        write(str(Path("zh") / name), FALLS_BACK + with_links(text, Path("docs") / name, up="../"))


def without_gaps(text: str) -> str:
    """A Chinese page with the lines of each paragraph joined: a browser shows the end of a line as a space, and Chinese has none there."""
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    begins_block = r"(?:[-*+>|#]|\d+\.) |\||```|!\[|<"
    either = rf"(?<=[{CHINESE_MARKS}])\n {{0,3}}(?! |\n|{begins_block})|(?<=[{CHINESE}])\n {{0,3}}(?=[{CHINESE}])"
    return "".join(part if part.lstrip().startswith("```") else re.sub(either, "", part) for part in parts)


def chinese_name(name: Path) -> Path:
    return name.with_name(name.name.replace(".zh-CN.md", ".md"))


def readme(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def with_links(text: str, source: Path, *, up: str = "") -> str:
    """Links as they lead on the site: to pages, to pages at the top of the repository, and to files there."""

    def changed(match: re.Match[str]) -> str:
        bang, label, target = match.groups()
        if re.match(r"[a-z]+:|#|/", target):
            return match.group(0)
        path, hash, place = target.partition("#")
        found = Path(os.path.normpath(source.parent / path))
        here = Path(os.path.normpath(Path(up.count("../") * "zh/") / placed(source).parent))
        if found.parts[:1] == ("docs",) or str(found) in ("README.md", "README.zh-CN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
            if found.is_dir() or (ROOT / found).is_dir():
                found = found / "README.md"
            there = site_path(found, is_chinese=bool(up))
            if there.parts[0] == "zh" and place and (twin := twins.chinese_of(ROOT / found)).is_file():
                place = twins.anchor_in(twin, place)
            target = os.path.relpath(there, here)
            return f"{bang}[{label}]({target}{hash}{place})"
        return f"{bang}[{label}]({REPOSITORY.rstrip('/')}/{found}{hash}{place})" if REPOSITORY else label

    return re.sub(r"(!?)\[([^\]\n]*)\]\(([^()\s]+)\)", changed, text)


def placed(source: Path) -> Path:
    """Where a page of the repository stands on the site."""
    return Path(*source.parts[1:]) if source.parts[0] == "docs" else source


def site_path(found: Path, *, is_chinese: bool) -> Path:
    name = placed(found)
    if found.parent == Path("docs") and found.stem.partition(".")[0] == "README":
        return Path("zh" if name.name.endswith(".zh-CN.md") else "", f"{INDEX}.md")
    if str(name) == "README.zh-CN.md":
        return Path("zh/index.md")
    if str(name) == "README.md":
        return Path("index.md")
    if name.name.endswith(".zh-CN.md"):
        return Path("zh") / chinese_name(name)
    has_twin = is_chinese and found.parts[0] == "docs" and "decisions" not in name.parts
    return Path("zh") / name if has_twin else name


def write(name: str, text: str) -> None:
    path = PAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
