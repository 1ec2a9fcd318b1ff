"""Hostile commands through an agent and a real bash: the user is asked with the whole command, says no, and nothing has happened."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.policy.command_rules import CommandRuling, judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.grants import Grants
from dragoman.policy.judge import grant_key
from dragoman.rules import Rule, allow, ask, deny
from dragoman.testing import ScriptedProvider
from dragoman.tools.output import Outputs
from dragoman.tools.shell import RunShell
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall
from system_parts import require_program

LISTED = "echo ls cat grep git test printf head find sed sort uniq true"


def listed() -> list[Rule]:
    return [allow(f"{name} *") for name in LISTED.split()] + [allow(name) for name in LISTED.split()]


def try_command(command: str, workspace: Path, *, answer: Allow | Deny | None = None, **options: Any) -> tuple[list[str], str]:
    """Which commands were asked about, and what the model was told."""
    require_program("bash")
    asked: list[str] = []

    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append(intent.command)
        return answer or Deny("no")

    async def run() -> str:
        provider = ScriptedProvider(f"call: run_shell {json.dumps({'command': command})}\n---\ntext: I see.")
        async with make_agent(provider, workspace=workspace, builtin=["run_shell"], ask=ask, describe=False, **options) as agent:
            await agent.run("go")
            return str(provider.requests[-1].messages)

    return asked, asyncio.run(run())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    work = tmp_path.resolve() / "work"
    work.mkdir()
    (work / "f").write_text("x\n")
    return work


@pytest.mark.parametrize(
    "command",
    [
        "cat <<EOF\n`touch PWN`\nEOF",
        "echo $[ x='a[$(touch PWN)]', x ]",
        "echo $((a[$(touch PWN)]))",
        "test -v 'a[$(touch PWN)]'",
        "printf -v 'a[$(touch PWN)]' x",
        "printf '%n' 'a[$(touch PWN)]'",
        "sed -n '1e touch PWN' f",
        "sed 's/x/touch PWN/e' f",
        "sed 'w PWN' f",
        "find . -name f -exec touch PWN \\;",
        "find . -fprint PWN",
        "sort -o PWN f",
        "uniq f PWN",
        "git log &&& touch PWN",
        "echo 'touch PWN",
        "git logout",
        "git -c alias.log='!touch PWN' log",
        "git log --output=PWN",
        "ls; touch PWN",
        "ls\ntouch PWN",
        "X=1 touch PWN",
        "./ls",
        "l\\s; t\\ouch PWN",
        "echo hi > PWN",
        "[ -f f ] && touch PWN",
        "grep -f ~/.ssh/id_rsa f",
        "echo " + "x" * 70_000 + " $(touch PWN)",
    ],
)
def test_what_is_hidden_in_listed_programs_is_asked_about(command: str, folder: Path) -> None:
    (folder / "ls").write_text("#!/bin/sh\ntouch PWN\n")
    (folder / "ls").chmod(0o755)
    asked, told = try_command(command, folder, rules=listed())
    assert asked == [command] or "bytes long" in told
    assert not (folder / "PWN").exists()


def test_a_refusal_is_found_behind_sixty_others_whatever_the_mode(folder: Path) -> None:
    command = "true && " * 60 + "touch PWN"
    asked, told = try_command(
        command, folder, rules=[*listed(), deny("touch", reason="we make no files")], approval="auto-edit", answer=Allow()
    )
    assert asked == []
    assert "we make no files" in told
    assert not (folder / "PWN").exists()


@pytest.mark.parametrize(
    "command",
    ["$(touch PWN)", "if true; then touch PWN; fi", "/usr/bin/touch PWN", "env touch PWN", "bash -c 'touch PWN'", "sudo -n touch PWN",
     "find . -exec touch PWN \\;", "echo `touch PWN`", "f() { touch PWN; }; f", "(touch PWN)", "xargs touch PWN", "t'ou'ch PWN",
     "env -S 'touch PWN'", "timeout -k 1 5 bash -c 'touch PWN'", "nice -n 5 sh -c 'touch PWN'", "find . -exec sh -c 'touch PWN' \\;",
     "script -qc 'touch PWN' /dev/null", "flock f -c 'touch PWN'", "taskset 1 touch PWN", "trap 'touch PWN' EXIT",
     "git -c alias.x='!touch PWN' x", "tar -cf /dev/null f --checkpoint=1 --checkpoint-action=exec='touch PWN'"],
)  # fmt: skip
def test_a_refusal_is_found_in_what_cannot_be_read(command: str, folder: Path) -> None:
    asked, _ = try_command(command, folder, rules=[deny("touch")], answer=Allow())
    assert asked == []
    assert not (folder / "PWN").exists()


def judge_with(command: str, folder: Path, *rules: Rule) -> CommandRuling:
    return judge_command(command, str(folder), rules, ReadableFolders((str(folder),)))


@pytest.mark.parametrize(
    "command",
    ["git -C . push", "git --no-pager push", "git -c a=b -C x push origin", "git --git-dir .git --work-tree . push", "env git -C x push",
     "/usr/bin/git -P push", "bash -c 'cd x && git -C . push'"],
)  # fmt: skip
def test_options_before_a_subcommand_do_not_hide_it_from_a_refusal(command: str, folder: Path) -> None:
    assert judge_with(command, folder, deny("git push")).decision == "deny"


@pytest.mark.parametrize(
    "command",
    ["env -S'touch PWN'", "toybox touch PWN", "coreutils --coreutils-prog=touch PWN", "tmux new -d 'touch PWN'", "screen -dm touch PWN",
     "npm exec -- touch PWN", "bundle exec touch PWN", "mise exec -- touch PWN", "direnv exec . touch PWN", "conda run -n x touch PWN",
     "uv run --with x touch PWN", "aws-vault exec me -- touch PWN", "nix-shell --run 'touch PWN'", "nix run x -c touch PWN",
     "sops exec-env f 'touch PWN'", "hyperfine 'touch PWN'", "perf stat touch PWN", "xvfb-run -a touch PWN", "cross-env A=1 touch PWN",
     "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch PWN", "hash -p /usr/bin/touch z; z PWN", "compgen -C 'touch PWN'",
     "tcsh -c 'touch PWN'", "pwsh -Command 'touch PWN'", "nu -c 'touch PWN'", "bash-5.2 -c 'touch PWN'", "/opt/bash5 -c 'touch PWN'"],
)  # fmt: skip
def test_a_refusal_is_found_behind_programs_that_run_others(command: str, folder: Path) -> None:
    assert judge_with(command, folder, deny("touch")).decision == "deny"


@pytest.mark.parametrize(
    "command",
    ["python3 -c 'import os; os.system(\"git push\")'", "python3.11 -c 'run([\"git\", \"push\"])'", "perl -e 'system(\"git push\")'",
     "ruby -e '`git push`'", "node -e 'x.execSync(\"git push\")'", "awk 'BEGIN{system(\"git push\")}'", "sed '1e git push' f",
     "vim -c '!git push' -c q", "gdb -batch -ex 'shell git push'", "less '+!git push' f"],
)  # fmt: skip
def test_code_that_names_what_a_rule_forbids_is_asked_about(command: str, folder: Path) -> None:
    for rule in (deny("git push"), ask("git push *")):
        ruling = judge_with(command, folder, allow(f"{command.split()[0]} *"), rule)
        assert (ruling.decision, ruling.is_by_rule) in (("ask", True), ("deny", True))
    assert not judge_with(command, folder, deny("git pull")).is_by_rule


@pytest.mark.parametrize(
    "command",
    ["sed -n '/git push/p' f", "awk '/git push/{print}' f", "python3 -m pytest -k push", "uv run pytest -k touch", "uv run pytest touch"],
)
def test_code_that_only_reads_is_not_asked_about(command: str, folder: Path) -> None:
    rules = (allow("python3 *"), allow("uv *"), deny("git push"), deny("touch"), deny("push"))
    assert judge_with(command, folder, *rules).decision == "allow"


@pytest.mark.parametrize("command", ["bash -c 'git push'", "env sh -c 'cd x && git -C . push'", "timeout 5 git -C . push", "git push"])
def test_a_rule_that_asks_finds_what_is_hidden_too(command: str, folder: Path) -> None:
    ruling = judge_with(command, folder, ask("git push"))
    assert (ruling.decision, ruling.is_by_rule) == ("ask", True)
    assert not judge_with("make x", folder, ask("git push")).is_by_rule


@pytest.mark.parametrize(
    ("command", "is_by_rule"),
    [
        ("echo hi > b.txt; cat a.txt", False),
        ("make 2>&1 >> log/make.txt | tail", False),
        ("make 2> err.txt && make x > out.txt", False),
        ("echo git push > b.txt", False),
        ("git push > b.txt", True),
        ("git $X > b.txt", True),
        ("sh > b.txt", True),
        ("sh < b.txt", True),
        ("xargs git < b.txt > c.txt", True),
        ("echo a > $(git push)", True),
        ("echo a > >(sh)", True),
        ("make > b.txt &", True),
        ("> b.txt git push", True),
    ],
)
def test_a_file_that_output_goes_to_hides_no_command(folder: Path, command: str, is_by_rule: bool) -> None:
    """In a sandbox it runs as it would without rules, and is asked about elsewhere."""
    for rule in (ask("git push"), deny("git push")):
        ruling = judge_with(command, folder, rule)
        assert ruling.decision != "allow"
        assert ruling.is_by_rule == is_by_rule


@pytest.mark.parametrize(
    ("command", "rule"),
    [("git log --grep push", "git push"), ("git commit -m push", "git push"), ("git commit -m 'touch it'", "touch"),
     ("echo touch", "touch"), ("find . -name touch", "touch"), ("npm run touch", "touch"),
     ("git stash push", "git push"), ("grep -rn 'rm -rf' .", "rm")],
)  # fmt: skip
def test_a_refusal_is_not_about_words_that_are_no_commands(command: str, rule: str, folder: Path) -> None:
    assert judge_with(command, folder, deny(rule)).decision != "deny"


@pytest.mark.parametrize("command", ["echo 'touch PWN' | bash", "printf 'touch PWN' | sh -s", "cat f | bash -x"])
def test_what_is_fed_to_a_shell_is_asked_about_where_a_rule_refuses_something(command: str, folder: Path) -> None:
    ruling = judge_with(command, folder, deny("touch"))
    assert (ruling.decision, ruling.is_by_rule) == ("ask", True)
    assert not judge_with(command, folder).is_by_rule


@pytest.mark.parametrize(
    ("rule", "covered", "running"),
    [("git fetch *", "git fetch origin main", "git fetch --upload-pack='touch PWN' ."),
     ("git fetch *", "git fetch -u origin", "git fetch ext::'touch PWN'"),
     ("git clone *", "git clone --depth 1 a b", "git clone -u 'touch PWN' . b"), ("git clone *", "git clone a", "git clone --conf x=y a"),
     ("git rebase *", "git rebase main", "git rebase -x 'touch PWN' main"),
     ("git submodule *", "git submodule update", "git submodule foreach 'touch PWN'"),
     ("tar *", "tar -xzf a.tgz", "tar -xf a --to-command='touch PWN'"), ("ssh *", "ssh host ls", "ssh -o ProxyCommand='touch PWN' host"),
     ("rsync *", "rsync -av a b", "rsync -ave 'touch PWN' a b:"), ("man *", "man ls", "man -P 'touch PWN' ls"),
     ("fd *", "fd -e py x", "fd x -x 'touch PWN'"), ("fdfind *", "fdfind x", "fdfind x --exec-b 'touch PWN'"),
     ("bat *", "bat -p f", "bat f --pager='touch PWN'"), ("wget *", "wget -q a", "wget --use-ask='touch PWN' a"),
     ("sqlite3 *", "sqlite3 a.db .tables", "sqlite3 a.db -cmd '.shell touch PWN'"), ("sftp *", "sftp host", "sftp -D 'touch PWN' host")],
)  # fmt: skip
def test_a_rule_with_a_star_does_not_cover_options_that_run_a_program(rule: str, covered: str, running: str, folder: Path) -> None:
    assert judge_with(covered, folder, allow(rule)).decision == "allow"
    assert judge_with(running, folder, allow(rule)).decision == "ask"
    assert judge_with(running, folder, allow(running.replace("'", '"'))).decision == "allow", "a rule that says so itself does"


@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "RIPGREP_CONFIG_PATH"])
def test_nothing_runs_unasked_where_the_environment_has_it_run_a_file_of_the_workspace(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "start").write_text("touch PWN\n")
    for value in ("start", str(folder / "start")):
        monkeypatch.setenv(name, value)
        assert try_command("true", folder)[0] == ["true"]
        assert not (folder / "PWN").exists()
    monkeypatch.setenv(name, "/nowhere/start")
    assert try_command("true", folder)[0] == []


def test_a_backslash_behind_a_letter_of_two_bytes_is_not_read(folder: Path) -> None:
    """In GBK it is the second half of that letter, and the string ends at the next quote."""
    command = 'echo "\u4e2d\\" ; touch PWN; echo \\""'
    assert try_command(command, folder)[0] == [command]


@pytest.mark.parametrize(
    "command",
    ["ls", "cat f", "grep -n x f | head -3", "cd sub && cat ../f", "ls 2>/dev/null || echo none", "[ -f f ] && cat f",
     "grep y f; echo \"exit: $?\"", "find . -type f -exec cat {} +"],
)  # fmt: skip
def test_what_only_reads_runs_unasked(command: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    asked, told = try_command(command, folder)
    assert asked == []
    assert "is_error=True" not in told


@pytest.mark.parametrize(
    "command",
    ["cat ../out.txt", "cat /etc/passwd", "cat ~/.ssh/id_rsa", "cat /proc/self/environ", "cat link", "cd .. && ls", "grep -r x ~",
    "ls *ink",
     "cd .. ; cat out.txt", "cd sub || cat ../../out.txt", "cat .ssh/key", "echo ../*", "echo /etc/*", "head -1 linkdir/out.txt",
     "tail -f f",
     "git diff /etc/passwd f", "git -C .. status", "git -C linkdir log", "find . -exec cat {} +", "cat $?", "[ -f /etc/passwd ]",
     "find sub ../out.txt -type f -exec cat {} +", "find . -type f -exec cat link {} +", "head f -n ../out.txt", "head f -c link",
     "grep x f -e link", "sort f -t link", "[ -f * ]"],
)  # fmt: skip
def test_what_leaves_the_workspace_or_reads_secrets_asks(command: str, folder: Path) -> None:
    (folder.parent / "out.txt").write_text("secret\n")
    (folder / "link").symlink_to("../out.txt")
    (folder / "linkdir").symlink_to("..")
    (folder / "sub").mkdir()
    (folder / ".ssh").mkdir()
    asked, told = try_command(command, folder)
    assert asked == [command]
    assert "secret" not in told.replace("holds secrets", "")


def test_a_file_that_must_not_be_read_is_known_by_its_other_names_too(folder: Path) -> None:
    (folder / "secrets").mkdir()
    (folder / "secrets" / "a.txt").write_text("the word\n")
    (folder / "other.txt").hardlink_to(folder / "secrets" / "a.txt")
    (folder / "plain.txt").write_text("x\n")
    (folder / "twin.txt").hardlink_to(folder / "plain.txt")
    rules = [deny("read_file secrets/**")]
    assert try_command("cat other.txt", folder, rules=rules)[0] == ["cat other.txt"]
    assert try_command("cat twin.txt", folder, rules=rules)[0] == []

    async def read(path: str) -> str:
        provider = ScriptedProvider(f"call: read_file {json.dumps({'path': path})}\n---\ntext: I see.")
        async with make_agent(provider, workspace=folder, builtin=["read_file"], describe=False, rules=rules) as agent:
            await agent.run("go")
            return str(provider.requests[-1].messages)

    assert "the word" not in asyncio.run(read("other.txt"))
    assert "refused" not in asyncio.run(read("twin.txt"))


@pytest.mark.parametrize("command", ["git show HEAD:secrets/a.txt", "git show :secrets/a.txt", "cd sub && git show HEAD:./a.txt",
                                     "git cat-file -p HEAD:secrets/", "cd sub && git show HEAD:secrets/a.txt"])  # fmt: skip
def test_a_file_that_must_not_be_read_is_known_in_the_history_too(command: str, folder: Path) -> None:
    make_repository(folder)
    (folder / "sub").mkdir()
    rules = (deny("read_file secrets/**"), deny("read_file sub/a.txt"))
    around = ReadableFolders((str(folder),), denied=("secrets/**", "sub/a.txt"))
    assert judge_command(command, str(folder), rules, around).decision == "ask"
    assert judge_command("git show HEAD:f", str(folder), rules, around).decision == "allow"


def test_what_git_shows_of_a_file_that_must_not_be_read_is_asked_about(folder: Path) -> None:
    require_program("git")
    for name in ("secrets", "src"):
        (folder / name).mkdir()
        (folder / name / "a").write_text("x\n")
    for words in (["init", "-q"], ["add", "src"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    around = ReadableFolders((str(folder),), denied=("secrets/**",))

    def asks(command: str) -> bool:
        return judge_command(command, str(folder), (), around).decision == "ask"

    showing = [
        "git diff",
        "git show",
        "git show HEAD",
        "git log -p",
        "git log -1 --patch",
        "git stash show -p",
        "git -C src diff",
        "git diff HEAD secrets",
    ]
    assert [asks(command) for command in showing[:-1]] == [False] * 7, "git does not know it"
    subprocess.run(["git", "add", "secrets"], cwd=folder, check=True, capture_output=True)
    assert [asks(command) for command in showing] == [True] * 8
    for command in ("git diff src", "git diff --stat", "git log --oneline", "git status", "git show --name-only HEAD"):
        assert not asks(command), command


def make_repository(folder: Path) -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text("[core]\n\tbare = false\n")
    return folder / ".git"


@pytest.mark.parametrize(
    "name", ["rebase-merge/done", "rebase-apply/info", "sequencer/todo", "info/exclude", "MERGE_MSG", "logs/HEAD", "config"]
)
def test_git_asks_where_a_file_that_it_shows_is_a_link(name: str, folder: Path) -> None:
    """Of a rebase under way `git status` shows the last steps, whatever file they are in."""
    repository = make_repository(folder)
    assert judge_with("git status", folder).decision == "allow"
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).unlink(missing_ok=True)
    (repository / name).symlink_to(folder / "f")
    assert name in judge_with("git status", folder).reason


@pytest.mark.parametrize("separator", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\r", "]", "\\"])
def test_git_asks_where_a_comment_could_pass_for_a_section_of_its_settings(separator: str, folder: Path) -> None:
    """git ends a line at a newline and at nothing else: what follows is still of the section before."""
    config = make_repository(folder) / "config"
    config.write_bytes(f"[core]\n# x{separator}[advice]\n\tfsmonitor = ./f\n".encode())
    assert judge_with("git status", folder).decision == "ask"
    config.write_bytes(f"[core]\n# x{separator}[advice]\n\tbare = false\n[advice]\n\tx = y\n".encode())
    assert judge_with("git status", folder).decision == "allow"


@pytest.mark.parametrize("text", ["[advice] [core] fsmonitor = ./f\n", "[advice]\n[core]fsmonitor=./f\n", "[Core]\nFSMonitor=./f\n",
                                  "[core]\nfsmonitor", "[core]\nbare = \\\nfalse\nfsmonitor=./f\n",
                                  "\ufeff[core]\nbare = false\n"])  # fmt: skip
def test_git_asks_where_its_settings_run_something_however_they_are_written(text: str, folder: Path) -> None:
    (make_repository(folder) / "config").write_text(text)
    assert judge_with("git status", folder).decision == "ask"


@pytest.mark.parametrize(
    ("setting", "file"),
    [("[core]\n\thooksPath = .githooks\n", ".githooks/post-index-change"), ("[core]\n\tfsmonitor = .git/hooks/query\n", ".git/hooks/query"),
     ('[diff]\n\texternal = "./tools/diff -x"\n', "tools/diff")],
)  # fmt: skip
def test_git_asks_where_a_setting_of_the_users_own_finds_a_program_here(
    setting: str, file: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(folder)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (folder.parent / ".gitconfig").write_text(f"[user]\n\temail = a/b@c\n[include]\n\tpath = other/x\n{setting}")
    assert judge_with("git status", folder).decision == "allow"
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).touch()
    assert judge_with("git status", folder).decision == "ask"


@pytest.mark.parametrize("version", ["2", "4"])
def test_git_grep_asks_where_a_folder_of_tracked_files_has_become_a_link(version: str, folder: Path) -> None:
    require_program("git")
    (folder / "a" / "deep").mkdir(parents=True)
    for name in ("a/deep/x", "a/deep/y", "a/z", "b"):
        (folder / name).write_text("x\n")
    for words in (["init", "-q"], ["add", "."], ["update-index", "--index-version", version]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    assert judge_with("git grep -n x", folder).decision == "allow"
    (folder / "a").rename(folder.parent / "outside")
    (folder / "a").symlink_to("../outside")
    assert str(folder / "a") in judge_with("git grep -n x", folder).reason
    assert judge_with("git log", folder).decision == "allow"


def test_a_program_of_the_workspace_does_not_pass_for_the_systems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "ls").write_text("#!/bin/sh\ntouch PWN\n")
    (folder / "bin" / "ls").chmod(0o755)
    for path in (f"{folder}/bin:/usr/bin", ".:/usr/bin", ":/usr/bin"):
        monkeypatch.setenv("PATH", path)
        asked, _ = try_command("ls", folder)
        assert asked == ["ls"]


@pytest.mark.parametrize("command", ["git push", "git -C . push", "git --no-pager push", "git -c a.b=c --git-dir x push", "git -Cx push"])
def test_a_refusal_of_a_subcommand_holds_behind_gits_own_options(command: str, folder: Path) -> None:
    asked, told = try_command(command, folder, rules=[deny("git push", reason="never from here")], answer=Allow())
    assert asked == []
    assert "never from here" in told


def test_without_the_parser_every_command_asks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter", None)
    assert try_command("ls", folder)[0] == ["ls"]


def test_the_reason_is_told_to_the_model_where_nobody_can_be_asked(folder: Path) -> None:
    async def run() -> str:
        provider = ScriptedProvider('call: run_shell {"command": "make all > log"}\n---\ntext: I see.')
        async with make_agent(provider, workspace=folder, builtin=["run_shell"], describe=False) as agent:
            await agent.run("go")
            return str(provider.requests[-1].messages)

    assert "it reads from or writes to a file" in asyncio.run(run())


def test_a_grant_covers_the_command_and_not_what_looks_like_it(folder: Path) -> None:
    (folder / "sub").mkdir()
    tool = RunShell(Workspace(folder), Outputs(str(folder / "outputs"), 1000, has_tool=lambda name: True))

    def key(**args: str) -> str:
        return grant_key(tool.spec, tool.intend(args))

    assert key(command="pwd", directory="sub") != key(command="pwd\n(in sub)")
    assert key(command="echo \x07") != key(command="echo <U+0007>")
    assert key(command="make") == "run_shell make", "what was saved before still holds"


def test_a_beginning_that_was_allowed_covers_what_begins_so(folder: Path) -> None:
    grants = Grants()
    asked, _ = try_command("make all", folder, grants=grants, answer=Allow(remember="session", prefix="make all"))
    assert asked == ["make all"]
    assert grants.keys == {"run_shell* make all"}
    assert try_command("make all -j2 | tail -1", folder, grants=grants)[0] == []
    for other in ("make ally", "make", "make all > PWN", "make all; rm f"):
        assert try_command(other, folder, grants=grants)[0] == [other]


def test_a_beginning_that_was_not_offered_is_not_granted(folder: Path) -> None:
    grants = Grants()
    try_command("python3 -V", folder, grants=grants, answer=Allow(remember="session", prefix="python3"))
    assert grants.keys == {"run_shell python3 -V"}
