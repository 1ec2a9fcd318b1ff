"""The documentation as a site: every page is there, and every link on it leads to one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from checks import site, twins

import dragoman


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(site, "PAGES", tmp_path)
    site.make_pages()
    return tmp_path


def test_every_link_of_the_site_leads_somewhere(pages: Path) -> None:
    lost: list[str] = []
    for page in pages.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^()\s]+)\)", text):
            path, _, place = target.partition("#")
            named = page.parent / path if path else page
            if not re.match(r"[a-z]+:", target) and not (named.is_file() and (not place or place in anchors(named))):
                lost.append(f"{page.relative_to(pages)}: {target}")
    assert lost == []


@cache
def anchors(page: Path) -> set[str]:
    """Places on a page of the site; mkdocs.yml has them made as GitHub makes them."""
    return {twins.anchor(words) for _, words in twins.headings(page.read_text(encoding="utf-8"))}


def test_every_page_and_public_module_is_there_in_both_languages(pages: Path) -> None:
    for page in (each.relative_to(site.DOCS) for each in site.DOCS.rglob("*.md")):
        if page.name.startswith("README") and not page.parent.parts:
            page = Path(page.name.replace("README", site.INDEX))
        is_chinese = page.name.endswith(".zh-CN.md")
        assert (pages / "zh" / site.chinese_name(page) if is_chinese else pages / page).is_file(), page
        if not is_chinese and "decisions" not in page.parts:
            assert (pages / "zh" / page).is_file(), page
    for name in dragoman._MODULES:
        assert f"::: dragoman.{name}" in (pages / "reference" / "python" / f"dragoman.{name}.md").read_text()


def test_a_page_without_a_chinese_twin_says_so(pages: Path) -> None:
    assert (pages / "zh" / "extend" / "hooks.md").read_text(encoding="utf-8").startswith(site.FALLS_BACK)
    assert not (pages / "zh" / "reference" / "documents.md").read_text(encoding="utf-8").startswith(site.FALLS_BACK)


def test_lines_of_a_chinese_paragraph_are_shown_without_a_space_between_them() -> None:
    text = "# 标题。\n\n第一句。\n第二句，\n`code` 在这里\n继续。\nEnglish\n\n- 一项。\n  接着说。\n- 另一项：\n"
    apart = "\n| 列： |\n|---|\n\n```\n行。\n行。\n```\n"
    joined = "# 标题。\n\n第一句。第二句，`code` 在这里继续。English\n\n- 一项。接着说。\n- 另一项：\n"
    assert site.without_gaps(text + apart) == joined + apart
