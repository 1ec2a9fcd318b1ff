"""The approval rules, pure and synchronous: decide from a call's intent and the mode whether it may run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.base.text import set_of
from dragoman.base.words import say
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec

if TYPE_CHECKING:
    from dragoman.policy.command_rules import CommandRuling
    from dragoman.policy.rules import Rule

Mode = Literal["plan", "default", "auto-edit", "auto"]
"""plan: read only. default: ask for writes and commands. auto-edit: run edits inside the workspace, ask for the rest. auto: run commands
too, inside a sandbox alone."""


class MustAsk(msgspec.Struct, frozen=True):
    """The user decides; `view` is what they are shown."""

    view: Intent


class Law(msgspec.Struct, frozen=True):
    """What decides beside the mode and what was granted."""

    rules: tuple[Rule, ...] = ()
    folders: tuple[str, ...] = ()
    """Where commands that only read may read: the workspace first. Empty: every command asks."""
    secret: tuple[str, ...] = ()
    """Our own files and folders, which no command reads unasked."""
    hosts: tuple[str, ...] = ()
    """Which hosts our own tools may reach in the mode auto."""
    run_sandboxed: bool = False
    """Whether sandboxed commands run unasked in the other modes too."""


NO_LAW = Law()
WEB_SEARCH = "google_web_search"
GATE = "network"
"""The name under which the gate of the sandbox is judged: as a tool, with the host as its scope."""


def judge(spec: ToolSpec, intent: Intent, mode: Mode, granted: frozenset[str] = frozenset(), law: Law = NO_LAW) -> Allow | MustAsk | Deny:
    """`granted` holds the keys (see `grant_key`) of what the user has allowed from now on. What is guarded asks nevertheless."""
    ruled = _judge_by_rules(spec, intent, granted, law)
    if ruled is not None and ruled.decision == "deny":
        return Deny(f"{spec.name} was refused: {ruled.reason}")
    asks_by_rule = ruled is not None and ruled.decision == "ask" and ruled.is_by_rule
    if spec.read_only and not asks_by_rule and not _reaches_out(spec, mode):
        return Allow()
    if mode == "plan" and not spec.read_only:
        return Deny(f"plan mode only reads: {spec.name} was not run")
    if intent.guarded:
        return MustAsk(intent)
    if any(is_guarded(path) for path in intent.writes):
        return MustAsk(msgspec.structs.replace(intent, guarded="trusted"))
    if asks_by_rule and ruled is not None:
        return MustAsk(_described(intent, ruled))
    if ruled is not None and ruled.decision == "allow":
        return Allow()
    if _runs_by_mode(spec, intent, mode, law) or grant_key(spec, intent) in granted:
        return Allow()
    if _reaches_out(spec, mode) or spec.name == GATE:
        return MustAsk(msgspec.structs.replace(intent, why=say("policy.host_unknown", host=intent.scope or spec.name)))
    return MustAsk(_described(intent, ruled) if ruled is not None else intent)


def asks_by_rule(spec: ToolSpec, intent: Intent, law: Law) -> bool:
    """Whether one of the user's rules wants it asked about."""
    ruled = _judge_by_rules(spec, intent, frozenset(), law)
    return ruled is not None and ruled.decision == "ask" and ruled.is_by_rule


def _runs_by_mode(spec: ToolSpec, intent: Intent, mode: Mode, law: Law) -> bool:
    if spec.kind == "edit" and intent.writes:
        return mode in ("auto-edit", "auto")
    if spec.kind == "execute" and intent.sandboxed:
        return mode == "auto" or law.run_sandboxed
    if (_reaches_out(spec, mode) or spec.name == GATE) and intent.scope:
        from dragoman.policy.host_rules import fits_host

        return any(fits_host(host, intent.scope) for host in law.hosts)
    return False


def _reaches_out(spec: ToolSpec, mode: Mode) -> bool:
    """Whether a tool asks the network from our own process, outside the sandbox, while nobody is watching."""
    return mode == "auto" and (spec.kind == "fetch" or spec.name == WEB_SEARCH)


def _judge_by_rules(spec: ToolSpec, intent: Intent, granted: frozenset[str], law: Law) -> CommandRuling | None:
    """What rules and the grammar of commands say; None if they say nothing. Loaded with the first command, or where there are rules."""
    if intent.command and law.folders:
        from dragoman.policy.command_rules import judge_command, prefix_rule
        from dragoman.policy.commands import ReadableFolders

        denied: tuple[str, ...] = ()
        if any(rule.decision == "deny" and rule.tool == "read_file" for rule in law.rules):
            from dragoman.policy.denied_reads import denied_patterns

            denied = denied_patterns(law.rules)
        begun = tuple(prefix_rule(key.removeprefix(PREFIX_KEY)) for key in granted if key.startswith(PREFIX_KEY))
        directory = intent.directory or law.folders[0]
        return judge_command(intent.command, directory, (*law.rules, *begun), ReadableFolders(law.folders, law.secret, denied))
    if not law.rules:
        return None
    from dragoman.policy.tool_rules import judge_call

    return judge_call(spec, intent, law.rules, law.folders[0] if law.folders else "")


def _described(intent: Intent, ruled: CommandRuling) -> Intent:
    """With why it is asked, and what may be allowed from now on."""
    intent = msgspec.structs.replace(intent, why=ruled.reason)
    if not intent.command:
        return intent
    from dragoman.policy.command_rules import is_grave, offered_prefix

    if is_grave(intent.command):
        return msgspec.structs.replace(intent, guarded="grave")
    return msgspec.structs.replace(intent, prefix=offered_prefix(ruled.open) if ruled.is_clear and not ruled.is_by_rule else "")


PREFIX_KEY = "run_shell* "
"""What a grant begins with that covers all commands with a beginning."""


def grant_key(spec: ToolSpec, intent: Intent) -> str:
    """What `always` covers: all edits, this exact command, this tool, or this tool with this host."""
    if spec.kind == "edit":
        return "edit"
    if intent.scope:
        return f"{spec.name} {intent.scope}"
    if spec.kind == "execute":
        # What is shown may be the same for two commands, or for two folders. No command holds a NUL.
        is_as_shown = not intent.command or intent.preview == intent.command
        return f"{spec.name} {intent.preview}" if is_as_shown else f"{spec.name} {intent.command}\0{intent.directory}"
    return spec.name if spec.name != "edit" else "edit (a tool)"  # somebody's tool of that name must not stand for all edits


_FOLDERS = set_of(
    ".git .hg .jj .dragoman .vscode .idea .zed .fleet .husky .agents .claude .codex .gemini .opencode .cursor .windsurf .continue "
    ".claude-plugin .devcontainer .circleci .ssh .gnupg .vim .emacs.d .bashrc.d .githooks .helix .mvn .buildkite .forgejo .gitea .ipython "
    ".kiro .roo .qwen .junie .amazonq"
)
_WITHIN = (
    "/.github/workflows/", "/.github/actions/", "/.config/fish/", "/.config/nvim/", "/.config/git/", "/.config/autostart/",
    "/.config/systemd/", "/.local/bin/", "/.cargo/config", "/.config/environment.d/", "/.config/helix/", "/.config/zed/", "/.config/tmux/",
    "/.config/zsh/", "/.config/bash/", "/.config/direnv/", "/.config/mise/", "/.config/pip/", "/.local/share/applications/",
    "/library/launchagents/", "/.github/instructions/", "/.gradle/init",
)  # fmt: skip
_FILES = set_of(
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc "
    ".tcshrc .login .logout .xprofile .xinitrc .xsession .xsessionrc .inputrc .screenrc .tmux.conf .vimrc .gvimrc .nvimrc .exrc .emacs "
    ".dir-locals.el .gdbinit .lldbinit .pdbrc .pythonrc .pythonrc.py sitecustomize.py usercustomize.py .psqlrc .curlrc .wgetrc .hgrc "
    ".gitconfig .gitmodules .envrc .direnvrc .netrc .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pypirc .bazelrc head "
    ".bash_completion .pam_environment .xresources .nvim.lua .lvimrc .ideavimrc .ghci .irbrc .pryrc .rprofile .renviron .sqliterc .my.cnf "
    ".ocamlinit .sbclrc .guile .mailcap .forward .procmailrc .rhosts .shosts mise.toml .mise.toml pip.conf "
    ".pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook-local.yml .overcommit.yml "
    ".gitlab-ci.yml .travis.yml .devcontainer.json .drone.yml .woodpecker.yml .cirrus.yml jenkinsfile azure-pipelines.yml "
    "bitbucket-pipelines.yml appveyor.yml .appveyor.yml qwen.md .goosehints "
    "agents.md agents.override.md dragoman.md gemini.md claude.md claude.local.md .cursorrules .windsurfrules .clinerules .roomodes "
    "copilot-instructions.md .aider.conf.yml .mcp.json .claude.json opencode.json opencode.jsonc gemini-extension.json"
)
_SHORT_GIT = re.compile(r"^git~\d+$")
_ENDINGS = (".code-workspace", ".sublime-project")


def is_guarded(path: str) -> bool:
    """Files that make something else run, or that are trusted later: writing them always needs approval."""
    parts = [_fold_name(part) for part in path.replace("\\", "/").split("/")]
    folded = "/".join(parts)
    if not _FOLDERS.isdisjoint(parts) or parts[-1] in _FILES or parts[-1].endswith(_ENDINGS):
        return True
    return any(place in f"/{folded}" for place in _WITHIN)


def _fold_name(name: str) -> str:
    """A name as a file system may see it: some do not tell upper case from lower (.GIT), or one way to write a letter from another, some
    pass over what is not seen, or a closing dot or blank; and Windows has short names, and streams (`.git::$INDEX_ALLOCATION`)."""
    if not name.isascii():
        import unicodedata

        name = "".join(sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    name = name.casefold().partition(":")[0].rstrip(". ")
    return _SHORT_GIT.sub(".git", name) if "~" in name else name
