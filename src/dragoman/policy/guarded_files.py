"""Files that make something else run, or that are trusted later: writing them always needs approval, and a command that does is told of."""

from __future__ import annotations

import re

from dragoman.base.text import set_of

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
