"""Makes shell commands with a marker action hidden in some construct of bash, and runs those that the policy would allow.

`python tests/shell_fuzz.py 50000 [seed]` runs many. What is run is contained: a folder of its own, a home of its own, and user, network
and mount namespaces where they can be had. A command that leaves anything changed, or shows what lies outside the workspace, is a hole.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.rules import Rule

MARKER = "touch PWN"
SECRET = "outside-8fK2"
INJECTIONS = (
    f"$({MARKER})", f"`{MARKER}`", f"<({MARKER})", f">({MARKER})", ">PWN", ">>PWN", "2>PWN", "&>PWN", ">|PWN", "<>PWN", f";{MARKER}",
    f"&{MARKER}", f"&&{MARKER}", f"||{MARKER}", f"|{MARKER}", f"|&{MARKER}", f"\n{MARKER}", f"\r{MARKER}", f"\r\n{MARKER}\n",
    f"$'\\x3b{MARKER}'", f'"$({MARKER})"', f'"`{MARKER}`"', f'"\\"$({MARKER})\\""', f"'a'$({MARKER})'b'", f"#\n{MARKER}",
    f"\\\n;{MARKER}",
    "{touch,PWN}", f"${{x:=$({MARKER})}}", f"${{x:-`{MARKER}`}}", f"$((a[$({MARKER})]))", f"$[a[$({MARKER})]]",
    f"<<EOF\n$({MARKER})\nEOF",
    f"<<'EOF'\nx\nEOF\n{MARKER}", f"<<-EOF\n\t`{MARKER}`\n\tEOF", f"<<<$({MARKER})", f"x=$({MARKER})", f"x=1 {MARKER}", f"! {MARKER}",
    f"({MARKER})", f"{{ {MARKER}; }}", f"if {MARKER}; then :; fi", f"while {MARKER}; do break; done", f"for i in 1; do {MARKER}; done",
    f"case x in x) {MARKER};; esac", f"f() {{ {MARKER}; }}; f", f"coproc {MARKER}", f"eval '{MARKER}'", f"eval {MARKER}", "touch\tPWN",
    f"trap '{MARKER}' EXIT", f"exec {MARKER}", f"command {MARKER}", f"builtin eval '{MARKER}'", f"env {MARKER}", f"xargs {MARKER}",
    f"bash -c '{MARKER}'", f"sh -c '{MARKER}'", "-exec touch PWN \\;", "-exec touch PWN {} +", "-ok touch PWN ;", "-execdir touch PWN ;",
    "-fprint PWN", "-fprintf PWN x", "-fls PWN", "-delete", "-o PWN", "-oPWN", "--output=PWN", "--output PWN", "-T PWN",
    "--compress-program=touch", "--pre=touch", "--pre touch", "--hostname-bin=touch", "1e touch PWN", "w PWN", "s/x/touch PWN/e", "-i",
    "-n '1e touch PWN'", "-n 'w PWN'", "-n '1w PWN'", "-n 1p;w\\ PWN", "-v 'a[$(touch PWN)]'", "%n 'a[$(touch PWN)]'", "-ext-diff",
    "--ext-diff", "-c core.pager='touch PWN' log", "-c core.fsmonitor='touch PWN' status", "--paginate", "--exec-path=.",
    "-C evil status",
    "grep -Otouch x", "grep --open-files-in-pager=touch x", "config alias.x '!touch PWN'", "-s 01010000", "--set=x", "-f -x", "-R x -o y",
    "~/.ssh/id_rsa", "../outside/secret.txt", "/proc/self/environ", "link", "linkdir/secret.txt", "$HOME/.ssh/id_rsa", "linkdir/*", "l*",
    "../outside/*", "*/secret.txt", "?ink", "[l]ink", "lin[k]", "~/.ssh/*", "./link", "sub/../link", "sub/../../outside/secret.txt",
    "-r link*", "-R .", "-r linkdir", "--files0-from=link", "-f link", "-e x -f link", "--include=* -r linkdir", "-L", "--follow",
    "-P -r x l*", "'s/x/y/w PWN'", "'s/[/]/x/w PWN'", "'s/x/y/;w PWN'", "'p;e touch PWN'", "'r link'", "'/x/w PWN'", "'s,x,y,w PWN'",
    "'s/[^/]/x/e'", "'$!d;e touch PWN'", "'s/\\(x\\)/touch PWN/e'", "';w PWN;p'", "'{print > \"PWN\"}'", "'BEGIN{system(\"touch PWN\")}'",
    "'{print | \"touch PWN\"}'", "'BEGIN{while((getline l < \"link\")>0) print l}'", "'BEGIN{ARGV[1]=\"link\";ARGC=2}{print}'",
    "'/\"/{system(\"touch PWN\")}/\"/'", "-f link", "-v x=link", "-i inplace",
    "'@include \"link\"'", "e touch PWN", "-s e", "|| \"touch PWN\"",
    "-type f -exec sort {} x + -o -name \\;", "-exec uniq {} PWN \\;", "-exec sort -o PWN {} +", "-o -exec cat {} +", "-exec cat {} +",
    "! -type f -exec cat {} +", "-type l -exec cat {} \\;", "-type f -o -name link -exec cat {} +",
    "-type f -exec cat {} + -exec touch PWN \\;",
    "-type f -exec sed -i s/x/y/ {} +", "-type f -exec cat link {} +", "-type f -exec find . -delete \\; -name {}", "$?", "PWN$?", ">PWN$?",
    "-C evil", "-C linkdir", "-C ../outside", "-C $?", "-C sub -c core.fsmonitor='touch PWN'", "tag PWN",
    "tag --sort -l PWN", "tag -d x",
    "stash", "stash push", "stash clear", "reflog expire --all", "worktree add PWN", "config user.name PWN", "config --unset user.name",
    "[ -f x -o -v 'a[$(touch PWN)]' ]", "[ -v 'a[$(touch PWN)]' ]", "[ x ] > PWN", "] ; touch PWN", "'{print>\"PWN\"}'",
    "'{print \"x\">=\"PWN\">\"PWN\"}'", "'{print>>\"PWN\"}'", "'NR>1{print >\"PWN\"}'", "{}", "{} ;", "{}{touch,PWN}",
    "\u00a0touch\u00a0PWN", "\u2028touch PWN", "\x0ctouch PWN", "\x0btouch PWN", "\x00touch PWN", "\x1btouch PWN", "＄(touch PWN)",
    f"let 'a[$({MARKER})]'", f"declare 'a[$({MARKER})]=1'", f"export 'a[$({MARKER})]=1'", f"unset 'a[$({MARKER})]'",
    f"(( a[$({MARKER})] ))",
    f"[[ -v 'a[$({MARKER})]' ]]", f"[[ 'a[$({MARKER})]' -eq 1 ]]", f"[ -v 'a[$({MARKER})]' ]", f"read 'a[$({MARKER})]'",
    f"-t 'a[$({MARKER})]'",
    f"mapfile -C '{MARKER};' -c 1", f"readarray -C '{MARKER} #' -c1", f"wait -p 'a[$({MARKER})]' -n", f"getopts a 'a[$({MARKER})]' -a",
    f"coproc X {{ {MARKER}; }}", f"select i in 1; do {MARKER}; break; done", f"until {MARKER}; do break; done", f"time -p {MARKER}",
    f"case x in x) ;& y) {MARKER};; esac", f"function ls {{ {MARKER}; }}; ls", f"alias ls='{MARKER}'\nls",
    "shopt -s expand_aliases extglob\n",
    "hash -p /usr/bin/touch cat; cat PWN", f"compgen -C '{MARKER}'", "history -w PWN", "exec 3>PWN", "{fd}>PWN", "3>PWN", "&>>PWN",
    ">&PWN",
    "cat </dev/tcp/127.0.0.1/9", "${x@P}", f"x='$({MARKER})'; echo ${{x@P}}", f"$\"$({MARKER})\"", f"\"${{x:-`{MARKER}`}}\"",
    f"${{a[$({MARKER})]}}",
    f"${{x/$({MARKER})/y}}", f"${{#a[$({MARKER})]}}", f"+($({MARKER}))", f"@(x|$({MARKER}))", f"{{1..2}}$({MARKER})", f"{{a,`{MARKER}`}}",
    f"trap '{MARKER}' DEBUG;", f"set -x; PS4='$({MARKER})';", f"BASH_ENV=<(echo {MARKER}) bash -c :", f"env -S '{MARKER}'",
    f"timeout 5 {MARKER}",
    f"nice {MARKER}", f"setsid {MARKER}", f"busybox {MARKER}", "tee PWN", "dd of=PWN", f"source <(echo {MARKER})",
    f". /dev/stdin <<<'{MARKER}'",
    "-n link", "-e link", "-t link", "--format=%+GG", "--sort=signature", "cd masked && git diff", "cd rebasing && git status",
    "cd swapped && git grep .",
    "@args.txt", "@args", "?args", "strings @args.txt", "strings *", "cd evil2/in && git status", "cd evil2/odd && git diff",
    "cd common && git log -p",
    "cd borrowed && git log -p", "cd alternate && git show HEAD", "cd sub && cat /proc/self/cwd/here", "cd sub && cat ../p/here",
    "p/sub/here",
    "/dev/fd/3", "/proc/self/root/etc/passwd", "--format=%G?", "--pretty='%GG'", "--show-signature", "--textconv", "--no-index", "-O",
    "\u4e2d\\", '"\u4e2d\\"', "--upload-pack=touch", "\u00a0touch\u00a0PWN", "\u2028touch PWN", "\x0ctouch PWN", "\x0btouch PWN",
    "\x00touch PWN", "\x1btouch PWN", "＄(touch PWN)",
)  # fmt: skip
BENIGN = (
    "ls", "ls -la", "ls sub", "ls *.txt", "cat a.txt", "cat a.txt sub/b.py", "head -3 a.txt", "tail -n 2 a.txt", "wc -l a.txt", "pwd",
    "echo hi",
    "echo 'it is' \"so\"", "grep -n x a.txt", "grep -rn 'x y' sub", "grep -E '(a|b)$' a.txt", 'grep "end$" a.txt', "rg x", "rg -n x sub",
    "find . -name '*.py'", "find sub -type f", "find . -maxdepth 1", "sed -n 1,2p a.txt", "sed -n '2p' a.txt", "sort a.txt",
    "sort -u a.txt",
    "uniq a.txt", "uniq -c a.txt", "cut -d: -f1 a.txt", "tr a b", "date +%F", "test -f a.txt", "true", "false", "printf '%s' x",
    "which ls",
    "git status", "git log --oneline -3", "git diff", "git show HEAD", "git branch -a", "cd sub", "cd sub && ls",
    "cd sub && cat ../a.txt",
    "cd evil && git status", "cd masked && git status", "git -C rebasing status", "cd swapped && git grep -n -e outside",
    "cd hooked && git status", "cd hooked && git diff", "cd bare && git status", "ls 2>/dev/null",
    "ls >/dev/null 2>&1", "cat a.txt | head -1", "ls || echo no",
    "ls; pwd", "ls\npwd", "# say\nls", "ls # say", "diff a.txt sub/b.py", "stat a.txt", "file a.txt", "du -sh sub", "basename /x/y",
    "md5sum a.txt", "comm a.txt a.txt", "nl a.txt", "tac a.txt", "od -c a.txt", "strings a.txt", "realpath a.txt", "readlink link",
    "paste a.txt a.txt", "sleep 0", "seq 3", "id -u", "uname -a", "cat 'b c.txt'", "cat b\\ c.txt", "cat \"b c.txt\"", "ls -- -oPWN",
    "cat ./-oPWN",
    "git ls-files", "git rev-parse HEAD", "git blame a.txt", "tree sub", "column -t a.txt", "fold -w 5 a.txt", "cmp a.txt a.txt",
    "rev a.txt", "sed 's/x/y/g' a.txt", "sed -E 's/(x|y)+/[\\1]/' a.txt", "sed '/^$/d;s|a/b|c|' a.txt", "sed -n '/x/,/end/p' a.txt",
    "sed 's/[^a-z]/-/2;$d' a.txt", "awk '{print $1}' a.txt", "awk -F: 'NR==1 || $2 == \"x\" {print NR\": \"$0}' a.txt",
    "awk '{n += length($0)} END {print n}' a.txt sub/b.py", "awk '/x/,/end/{print toupper($0)}' a.txt", "command -v ls",
    "type ls", "df -h .",
    "uptime", "free -m", "[ -f a.txt ]", "[ -d sub ] && ls sub", "grep -q x a.txt; echo $?", "ls nothing; echo \"exit: $?\"",
    "printf '%s' $?", "ls || exit 1", "find . -type f -exec cat {} +",
    "find sub -type f -name '*.py' -exec grep -n x {} \\;",
    "git -C sub status", "git -C evil log", "git -C hooked diff", "git -C sub log -1",
    "git grep -n x", "git grep x -- sub", "git tag", "git tag -l 'v*'",
    "git tag --sort=refname", "git stash list", "git stash show", "git worktree list", "git reflog -2", "git cat-file -p HEAD:a.txt",
    "git ls-tree -r HEAD", "git rev-list --count HEAD", "git for-each-ref", "git show-ref", "git config --get user.name",
    "git remote get-url origin", "git merge-base HEAD HEAD", "git check-ignore -v a.txt", "git version", "egrep 'x|y' a.txt",
    "awk 'NR>1 && NR<=3' a.txt", "awk 'NR>=2{print}' a.txt", "base64 a.txt", "join a.txt a.txt", "sha384sum a.txt", "hostname",
    "uptime", "free -m", "git tag -l", "git tag", "git reflog", "git ls-tree -r HEAD", "git cat-file -p HEAD", "git merge-base HEAD HEAD",
    "find . -name a.txt -print -quit",
)  # fmt: skip
SIGNS = "'\"\\$`(){}[]<>|&;!#~*?= \n\t^%@-,:+./x1\u00e9\u00a0\r"
PIECES = (*SIGNS, MARKER, "$(", "PWN", "touch", "&&", "||", "<<", "${", "$'", ">>", "2>&1", ">/dev/null", "link", "..", "-o", "~", "\\\n")


@dataclass
class Found:
    """What a run of the fuzzer did."""

    made: int = 0
    allowed: int = 0
    holes: list[str] = field(default_factory=list)


def commands(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        yield _one(rng)


STATEMENTS = (
    "{b}; {s}", "{b} && {s}", "{b} || {s}", "{b} | {s}", "{s} | {b}", "({s})", "{{ {s}; }}", "if {s}; then {b}; fi", "! {s}", "{b}\n{s}",
    "for i in {w}; do {b}; done", "case {w} in *) {s};; esac", "while {s}; do break; done", "[[ {w} ]] || {b}", "x={w} {b}", "x={w}; {b}",
    "f() {{ {s}; }}; f", "{b} {w}", "{b} {w}", "{b} {w}", "{b} > {w}", "{b} <<< {w}", "{b} <<E\n{w}\nE", "{b} <<'E'\n{w}\nE\n{s}",
    "eval {w}",
    "{b} # {w}\n{s}", "{b} \\\n{w}", "{b} 2>/dev/null {w}", "time {s}", "coproc {s}", "cd sub && {s}", "{b} & {s}", "{b} |& {s}",
    "test {w}",
)  # fmt: skip
WORDS = (
    "$({s})", "`{s}`", '"{w}"', "'{w}'", "\\{w}", "x{w}", "{w}x", "${{x:-{w}}}", '"${{x:-{w}}}"', "$(( {w} ))", "$[ {w} ]", "<({s})",
    "a[{w}]",
    "{{a,{w}}}", '$"{w}"', "$'{w}'", "'x'{w}'y'", '"a"{w}"b"', "\\'{w}\\'", '\\"{w}\\"', "--x={w}", "-{w}", "~{w}", "{w}{w}",
    "'\\''{w}", '"\'"{w}"\'"',
    "${{a[{w}]}}", "#{w}", "{w}#", "=({w})", "*{w}", "$", "\u4e2d{w}",
)  # fmt: skip


def _nested(rng: random.Random, shape: str, depth: int) -> str:
    """A statement or a word of bash, others within it, with the marker action at the bottom."""
    if depth <= 0:
        return MARKER if shape == "s" else rng.choice((f"$({MARKER})", f"`{MARKER}`", "PWN", "a.txt"))
    made = rng.choice(STATEMENTS if shape == "s" else WORDS)
    return made.format(b=rng.choice(BENIGN), s=_nested(rng, "s", depth - 1), w=_nested(rng, "w", depth - 1))


def _one(rng: random.Random) -> str:
    """A benign command with an injection at some place, two joined, or one with random characters put in, taken out, or put in quotes."""
    command = rng.choice(BENIGN)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        command += rng.choice((" && ", " || ", " | ", "; ", "\n", "|", "&&", " ;", "\n\n")) + rng.choice(BENIGN)
    kind = rng.random()
    if kind < 0.15:
        return command
    if kind < 0.3:
        command = _nested(rng, "s", rng.randint(1, 4))
        if rng.random() < 0.4:
            return command
    elif kind < 0.65:
        at = rng.choice([0, len(command), *(place for place, sign in enumerate(command) if sign in " \n'\"")])
        glue = rng.choice(("", " ", " "))
        return command[:at] + glue + rng.choice(INJECTIONS) + glue + command[at:]
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(command))
        match rng.randint(0, 3):
            case 0:
                command = command[:at] + command[at + rng.randint(1, 3) :]
            case 1:
                end = min(len(command), at + rng.randint(0, 8))
                quote = rng.choice(("'", '"', "`", "$'", '$"', "\\"))
                command = command[:at] + quote + command[at:end] + quote[-1] + command[end:]
            case _:
                command = command[:at] + rng.choice(PIECES) + command[at:]
    return command


class Ground:
    """A throwaway workspace with hostile names, links and repositories, beside a home and a folder that nobody may read."""

    def __init__(self, folder: Path) -> None:
        self.top = folder
        self.workspace = folder / "work"
        self.home = folder / "home"
        (folder / "outside").mkdir(parents=True)
        (folder / "outside" / "secret.txt").write_text(f"{SECRET}\n")
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text(f"{SECRET}\n")
        self.make_workspace()

    def make_workspace(self) -> None:
        """Made once, and copied from then on."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        copy = self.top.with_name(f"{self.top.name}-as-made")
        if not copy.exists():
            self._make_files()
            shutil.copytree(self.workspace, copy, symlinks=True)
        else:
            shutil.copytree(copy, self.workspace, symlinks=True)

    def _make_files(self) -> None:
        work = self.workspace
        (work / "sub").mkdir(parents=True)
        for name in ("a.txt", "b c.txt", "sub/b.py", "-oPWN", "--output=PWN", "sub/-delete", "$(touch PWN)", "sub/;touch PWN", "x y end$"):
            (work / name).write_text("x y\nb x\nend\n")
        (work / "link").symlink_to("../outside/secret.txt")
        (work / "linkdir").symlink_to("../outside")
        self._git("init", "-q", "--template=", ".")
        self._git("add", "a.txt")
        self._git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
        self._hostile(work / "evil" / ".git")
        self._hostile(work / "bare")
        hooked = work / "hooked"
        shutil.copytree(work / ".git", hooked / ".git")
        (hooked / "a.txt").write_text("x y\nb x\nend\n")  # newer than the index has it, so that git refreshes that
        (hooked / ".git" / "hooks").mkdir()
        hook = hooked / ".git" / "hooks" / "post-index-change"
        hook.write_text(f"#!/bin/sh\ntouch {work / 'PWN'}\n")
        hook.chmod(0o755)
        self._make_traps()

    def _make_traps(self) -> None:
        """What looks harmless by its name or its settings, and leads elsewhere."""
        work, other = self.workspace, self.top / "outside" / "repo"
        (work / "args.txt").write_text(f"{self.top}/outside/secret.txt\n")
        (work / "@args").write_text("x\n")
        (work / "p").symlink_to("/proc/self/cwd")
        (work / "here").write_text("x\n")
        (work / "sub" / "here").symlink_to(self.top / "outside" / "secret.txt")
        if not other.exists():
            shutil.copytree(work / ".git", other / ".git")
            (other / "a.txt").write_text(SECRET)
            for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "two"]):
                subprocess.run(["git", *words], cwd=other, env=self.environment, check=True, capture_output=True)
        shutil.copytree(work / "evil", work / "evil2")
        settings = "[core]\n\tbare = false\n"
        for name, head in (("evil2/in", ""), ("evil2/odd", "odd\n"), ("borrowed", "ref: refs/heads/x\n"), ("alternate", "")):
            folder = work / name / ".git"
            folder.mkdir(parents=True)
            (folder / "config").write_text(settings)
            if head:
                (folder / "HEAD").write_text(head)
        for name in ("objects", "refs"):
            (work / "evil2/odd/.git" / name).mkdir()
            (work / "borrowed/.git" / name).symlink_to(other / ".git" / name)
        newest = (other / ".git" / (other / ".git" / "HEAD").read_text().split()[1]).read_text()
        (work / "borrowed/.git/HEAD").write_text(newest)
        (work / "alternate/.git/refs").mkdir()
        (work / "alternate/.git/objects/info").mkdir(parents=True)
        (work / "alternate/.git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
        (work / "alternate/.git/HEAD").write_text(newest)
        (work / "common").mkdir()
        (work / "common" / "HEAD").write_text("ref: refs/heads/x\n")
        (work / "common" / "commondir").write_text("../evil/.git\n")
        self._make_odd_repositories()

    def _make_odd_repositories(self) -> None:
        """Settings that git reads in another way than they look, links among its own files, and one in the place of tracked files."""
        work = self.workspace
        for name in ("masked", "rebasing", "swapped"):
            shutil.copytree(work / ".git", work / name / ".git")
        with open(work / "masked" / ".git" / "config", "ab") as config:
            config.write(f'[core]\n# \x0c[advice]\n\tfsmonitor = "touch {work}/PWN; false"\n'.encode())
        steps = work / "rebasing" / ".git" / "rebase-merge"
        steps.mkdir()
        for name, text in (("head-name", "refs/heads/x"), ("onto", "x"), ("interactive", "")):
            (steps / name).write_text(f"{text}\n")
        (steps / "done").symlink_to(self.top / "outside" / "secret.txt")
        (work / "swapped" / "d").mkdir()
        (work / "swapped" / "d" / "secret.txt").write_text("x\n")
        self._git("-C", "swapped", "add", "d")
        shutil.rmtree(work / "swapped" / "d")
        (work / "swapped" / "d").symlink_to(self.top / "outside")

    def _hostile(self, folder: Path) -> None:
        """A repository whose own configuration runs something."""
        shutil.copytree(self.workspace / ".git", folder)
        with open(folder / "config", "a") as config:
            pwn = self.workspace / "PWN"
            config.write(
                f'[core]\n\tbare = false\n\tworktree = {self.workspace}\n\tfsmonitor = "touch {pwn}; false"\n\tpager = "touch {pwn}"\n'
            )
            config.write(f'[diff]\n\texternal = "touch {pwn}"\n')

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.workspace, env=self.environment, check=True, capture_output=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}

    def allows(self, command: str, rules: tuple[Rule, ...] = ()) -> bool:
        return judge_command(command, str(self.workspace), rules, ReadableFolders((str(self.workspace),))).decision == "allow"

    def run(self, allowed: list[str]) -> list[str]:
        """Those that did what they must not, found by halving: one process runs many commands, each in a bash of its own."""
        if not allowed or self._is_harmless(allowed):
            return []
        if len(allowed) == 1:
            return allowed
        half = len(allowed) // 2
        return [*self.run(allowed[:half]), *self.run(allowed[half:])]

    def _is_harmless(self, allowed: list[str]) -> bool:
        before = self._state()
        script = b"\0".join(command.encode() for command in allowed) + b"\0"
        loop = 'while IFS= read -r -d "" c; do timeout 5 bash -c "$c" </dev/null 2>&1; done'
        done = subprocess.run(
            [*_container(), "bash", "-c", loop], input=script, cwd=self.workspace, env=self.environment, capture_output=True, check=False
        )
        is_harmless = before == self._state() and SECRET.encode() not in done.stdout
        if before != self._state():
            self.make_workspace()
        return is_harmless

    def _state(self) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = []
        for folder, folders, files in os.walk(self.top):
            for name in (*folders, *files):
                status = os.lstat(os.path.join(folder, name))
                found.append((os.path.join(folder, name), status.st_mode, status.st_size))
        return sorted(found)


def _container() -> list[str]:
    wanted = ["unshare", "-Urnm"]
    try:
        works = subprocess.run([*wanted, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return wanted if works else []


def fuzz(count: int, seed: int, folder: Path) -> Found:
    """Judge so many commands and run those that are allowed."""
    ground = Ground(folder)
    found = Found()
    saved = {name: os.environ.get(name) for name in ("HOME", "PATH")}
    os.environ.update(HOME=str(ground.home), PATH=ground.environment["PATH"])
    try:
        batch: list[str] = []
        for command in commands(count, seed):
            found.made += 1
            if "\0" in command or not ground.allows(command):
                continue
            found.allowed += 1
            batch.append(command)
            if len(batch) == 500:
                found.holes += ground.run(batch)
                batch = []
        found.holes += ground.run(batch)
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        ended = fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, Path(temporary).resolve() / "ground")
    print(f"{ended.made:,} made, {ended.allowed:,} allowed and run, {len(ended.holes)} holes")
    for hole in ended.holes[:20]:
        print(repr(hole))
