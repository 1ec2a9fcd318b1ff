"""A command that would empty the workspace, a home or a root asks in every mode; one that deletes a part of it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.policy.judge import Law, Mode, MustAsk, judge
from dragoman.policy.rules import Rule
from dragoman.rules import allow
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolSpec

SHELL = ToolSpec("run_shell", "", kind="execute")
EMPTYING = [
    "rm -rf /",
    "rm -rf /*",
    "rm -rf .",
    "rm -rf *",
    "rm -rf ./*",
    "rm -rf ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    'rm -rf "$PWD"',
    "rm -rf $HOME",
    "rm -rf ${HOME}/*",
    "rm -rf {workspace}",
    "rm -rf {parent}",
    "rm -fr {workspace}/",
    "rm -r -f ..",
    "rm -rf .* *",
    "rm -rf {*,.*}",
    "find . -delete",
    "find . -type f -delete",
    "find / -exec rm -rf {} +",
    "find / -exec rm {} \\;",
    "rsync -a --delete empty/ ./",
    "rsync -a --delete empty/ .",
    "shred -u *",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "bash -c 'rm -rf .'",
    "sudo rm -rf /",
    "env A=1 rm -rf .",
    "ls | xargs rm -rf",
    "echo / | xargs rm -rf",
    "find . | xargs rm",
    "cd / && rm -rf *",
    "cd .. && rm -rf *",
    "rm -rf --no-preserve-root /",
    "rm -rf $DIR/*",
    "D=/; rm -rf $D",
    'rm -rf "$(pwd)"',
    "/bin/rm -rf .",
    "\\rm -rf *",
    "rm --recursive --force .",
    "rm -rf build/..",
    "rm -rf .git",
    "timeout 5 rm -rf *",
    "true && rm -rf .",
    "if true; then rm -rf .; fi",
    "rm -f *",
    "find . ! -name keep -delete",
    "cat x > /dev/sda",
    "cd nosuch; rm -rf *",
    "find . -name '*' -delete",
    "busybox rm -rf .",
    'sh -c "cd / && rm -rf *"',
    "cd ~ && rm -rf *",
    "truncate -s 0 *",
    "nice -n 5 sudo -u root bash -c 'rm -rf $HOME/*'",
    "eval 'rm -rf .'",
    "rm -rf /etc",
    "find . -mindepth 1 -delete",
    "ls -A | xargs -I{} rm -rf {}",
]
ORDINARY = [
    "rm -rf build dist node_modules",
    "rm -rf ./build",
    "rm -rf build/*",
    "cd build && rm -rf *",
    "mkdir -p b2 && cd b2 && rm -rf * && cmake ..",
    "find . -name '*.pyc' -delete",
    "find . -name '*.pyc' | xargs rm -f",
    "find . -name __pycache__ -exec rm -rf {} +",
    "git clean -fdx",
    "rm *.o",
    "rm -rf *.egg-info",
    "rm -rf {workspace}/build",
    "rm -rf $TMPDIR/x",
    'd=$(mktemp -d); rm -rf "$d"/*',
    "for d in a b; do rm -rf $d/*; done",
    "echo 'rm -rf /'",
    "git commit -m 'rm -rf /'",
    "grep 'rm -rf /' x",
    "ls | grep old | xargs rm -rf",
    "dd if=/dev/zero of=disk.img",
    "cat a > /dev/null",
    "rsync -a --delete src/ out/",
    "rm -rf ${d:?}/*",
    "find build -delete",
    "rm a b c",
    "rm -rf ~/.cache/foo",
    "rm -r /tmp/foo/*",
    "d=build; rm -rf $d/*",
    "ls; find . -name '*.o' | xargs rm -rf",
    "rm -rf 'a b'",
    "dd if=a of=/dev/null",
    "rm -rf build/ && mkdir build && cd build && cmake .. && make",
    "echo . && rm -rf build",
]
"""`git clean -fdx` among them: it deletes what git does not know, as a clean build needs it, and leaves all that was committed."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / "build").mkdir(parents=True)
    return (tmp_path / "work").resolve()


def verdict(command: str, workspace: Path, *rules: Rule, mode: Mode = "auto") -> Allow | MustAsk | object:
    command = command.replace("{workspace}", str(workspace)).replace("{parent}", str(workspace.parent))
    intent = Intent(command=command, directory=str(workspace), sandboxed=True)
    return judge(SHELL, intent, mode, law=Law(rules, (str(workspace),)))


@pytest.mark.parametrize("command", EMPTYING)
def test_emptying_what_matters_asks_in_auto_and_under_a_broad_rule(command: str, workspace: Path) -> None:
    for rules in ((), (allow("rm *"), allow("find *"), allow("bash *"), allow("run_shell"))):
        found = verdict(command, workspace, *rules)
        assert isinstance(found, MustAsk)
        assert "delete or overwrite" in found.view.why
        assert found.view.guarded == "grave" or ">" in command, "no `always` is offered"


@pytest.mark.parametrize("command", ORDINARY)
def test_deleting_a_part_does_not_ask(command: str, workspace: Path) -> None:
    assert verdict(command, workspace) == Allow()


def test_a_rule_that_names_exactly_this_command_allows_it(workspace: Path) -> None:
    assert verdict("rm -rf .", workspace, allow("rm -rf .")) == Allow()
    assert verdict("ls && rm -rf .", workspace, allow("rm -rf .")) == Allow()
    assert isinstance(verdict("rm -rf . ; rm -rf ~", workspace, allow("rm -rf .")), MustAsk)
    assert isinstance(verdict("rm -rf ..", workspace, allow("rm -rf .")), MustAsk)
