"""A folder for our own files that no command can write to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import mounts
from dragoman.base.mounts import lies_in_any
from dragoman.base.private import find_safe_folder


def test_the_first_folder_that_is_in_no_writable_one_is_taken(tmp_path: Path) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    for folder in (workspace / "tmp", elsewhere):
        folder.mkdir(parents=True)
    candidates = ["", "relative", str(workspace / "tmp"), str(workspace), str(elsewhere), str(tmp_path)]
    assert find_safe_folder(candidates, [str(workspace)]) == str(elsewhere)
    assert find_safe_folder(candidates[:4], [str(workspace)]) is None
    assert find_safe_folder(candidates, []) == str(workspace / "tmp")
    assert find_safe_folder([str(tmp_path / "workspace-2")], [str(workspace)]) == str(tmp_path / "workspace-2")


def test_a_folder_around_the_workspace_is_safe_and_one_that_is_missing_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    assert find_safe_folder([str(tmp_path)], [str(tmp_path / "workspace")]) == str(tmp_path)
    assert find_safe_folder([str(tmp_path / "new" / "er")], [str(tmp_path / "workspace")]) == str(tmp_path / "new" / "er")
    assert find_safe_folder([str(tmp_path / "workspace" / "new" / "er")], [str(tmp_path / "workspace")]) is None


def test_the_root_as_workspace_leaves_no_folder(tmp_path: Path) -> None:
    assert find_safe_folder([str(tmp_path), "/tmp", "/"], ["/"]) is None


def test_links_are_resolved_on_both_sides_and_in_the_answer(tmp_path: Path) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (workspace / "tmp").mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / "into").symlink_to(workspace / "tmp")
    (tmp_path / "same").symlink_to(workspace)
    (workspace / "out").symlink_to(elsewhere)
    assert find_safe_folder([str(tmp_path / "into" / "new")], [str(workspace)]) is None
    assert find_safe_folder([str(workspace / "tmp")], [str(tmp_path / "same")]) is None
    # The link is the command's: what it leads to now is safe, the way over it is not.
    assert find_safe_folder([str(workspace / "out")], [str(workspace)]) == str(elsewhere)


def test_what_we_cannot_use_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    assert find_safe_folder([str(tmp_path / "file"), str(tmp_path / "file" / "in"), "/proc/1/new"], []) is None
    assert find_safe_folder([str(tmp_path / "file" / "in"), str(tmp_path / "other")], []) == str(tmp_path / "other")


IN_MOUNTS = """
import os, subprocess, sys
from dragoman.base.private import find_safe_folder
base = sys.argv[1]
def bind(source, target): subprocess.run(["mount", "--bind", f"{base}/{source}", f"{base}/{target}"], check=True)
for name in ("w/tmp/in", "w/disk", "host", "over", "disk", "disk-too", "free"):
    os.makedirs(f"{base}/{name}")
bind("w/tmp", "host")     # the host's temporary folder is one of the workspace
bind("w", "over")         # the workspace under another name
bind("disk", "w/disk")    # a disk in the workspace ...
bind("disk", "disk-too")  # ... that is mounted elsewhere as well
for name in ("host", "host/in", "host/new", "over/tmp", "over/new/er", "disk/new", "disk-too", "free"):
    print(name, find_safe_folder([f"{base}/{name}"], [f"{base}/w"]) is not None)
"""


def test_a_folder_of_the_workspace_mounted_elsewhere_is_not_safe(tmp_path: Path) -> None:
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount"]
    if sys.platform != "linux" or subprocess.run([*own_mounts, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = subprocess.run([*own_mounts, sys.executable, "-c", IN_MOUNTS, str(tmp_path)], capture_output=True, text=True, check=True)
    unsafe = ("host", "host/in", "host/new", "over/tmp", "over/new/er", "disk/new", "disk-too")
    assert done.stdout.split("\n")[:-1] == [*(f"{name} False" for name in unsafe), "free True"]


@given(st.lists(st.text(st.characters(blacklist_characters="/\0", codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=4))
def test_names_of_mount_points_are_read_as_they_are(names: list[str]) -> None:
    path = "/" + "/".join(names)
    written = "".join(f"\\{ord(char):03o}" if char in " \t\n\\#" else char for char in path)
    assert mounts._unescape(written) == path


def test_without_a_table_of_mounts_names_and_inodes_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_TABLE", str(tmp_path / "missing"))
    (tmp_path / "w").mkdir()
    assert lies_in_any(str(tmp_path / "w" / "x"), [str(tmp_path / "w")])
    assert not lies_in_any(str(tmp_path / "x"), [str(tmp_path / "w")])
    assert lies_in_any(os.sep, [os.sep])
