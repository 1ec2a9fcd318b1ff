"""Programs that run what they are told: shells, interpreters, wrappers, debuggers, editors, database shells and the like.

The one list of them. Rules that forbid look behind these programs (hidden_commands.py); no beginning of their commands is offered at a
question, and none that was saved before is honoured (offers.py). Compared with the public list GTFOBins; options with which other programs
run something are in running_options.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Sequence

from dragoman.base.text import set_of

SHELLS = set_of(
    "bash sh dash ash zsh ksh mksh rbash fish eval csh tcsh yash posh osh hush rc nu elvish xonsh pwsh powershell sash slsh oksh lksh "
    "ksh93 pdksh bash-static"
)
WRAPPERS = SHELLS | set_of(
    "env sudo doas xargs command builtin exec nohup time timeout nice ionice setsid stdbuf busybox parallel watch strace ltrace chroot "
    "unshare nsenter flock trap su runuser sg ssh coproc then do else ! { taskset chrt setpriv prlimit numactl unbuffer systemd-run script "
    "fakeroot pkexec entr firejail bwrap proot gosu su-exec tini setarch linux32 linux64 valgrind rlwrap uvx npx pnpx bunx toybox "
    "coreutils tmux screen gdb perf hyperfine expect caffeinate torsocks torify proxychains proxychains4 faketime catchsegv xvfb-run "
    "dbus-run-session dbus-launch eatmydata sem chronic ifne cpulimit nodemon watchexec concurrently cross-env dotenv "
    "start-stop-daemon daemonize flatpak-spawn compgen complete hash ld.so "
    "aa-exec choom capsh logsave multitime pexec setlock softlimit openvt sshpass genie ccache distcc icecc tmate grc gtester runcon rr "
    "dumb-init catatonit chpst setuidgid envdir s6-setuidgid ts-node-dev rustup pipx memray py-spy viztracer scalene systemd-inhibit ksu "
    "dtach abduco zellij byobu mosh msgexec msgfilter gtimeout genv gxargs gnice gnohup gstdbuf run-parts systemd-nspawn arch-nspawn"
)
"""Programs that run what their arguments name: a rule that forbids a command forbids it behind these too."""
TOLD_TO = {
    "find": set_of("-exec -execdir -ok -okdir"),
    "git": frozenset({"run", "foreach", "-x", "--exec"}),
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "conda", "direnv", "mise", "asdf", "bundle", "op", "aws-vault", "doppler"),
                    set_of("run exec tool")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), set_of("exec x dlx")),  # `run` names a script of the project
    **dict.fromkeys(("nix", "nix-shell", "just"), frozenset({"-c", "--command", "--run"})),
    "sops": set_of("exec-env exec-file"),
}  # fmt: skip
"""Programs that run what stands behind one of these words, and behind options."""
GIVEN_STRINGS = WRAPPERS | set_of("alias tar rsync zip man make git find nix nix-shell just sops")
"""Programs whose arguments may hold a whole command line."""
INTERPRETERS = set_of(
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect osascript awk gawk mawk nawk sed gsed vim vi nvim view ex "
    "emacs gdb less more R Rscript julia guile racket sbcl ghc irb bc dc sqlite sqlite3 psql mysql "
    "ipython bpython jython micropython raku jruby pry ts-node tsx phpdbg php-cgi ghci runghc runhaskell scala kotlin kotlinc groovy "
    "clojure clj jshell jrunscript jjs elixir iex erl escript swift ocaml utop octave gnuplot clisp ecl csi gsi m4 nano ed mariadb duckdb "
    "texlua lua-jit littler maxima sage gp lldb"
)
"""Programs that are given code, in which they can be told to run others."""
_DEBUGGERS = set_of("lldb cgdb dlv delve pdb ipdb pudb byebug bpftrace dtrace crash scanmem radare r2 gcore jdb wdb")
_EDITORS = set_of(
    "rvim gvim vimdiff vimtutor vigr vipw visudo sudoedit emacsclient pico red joe jed micro hx helix kak code codium subl gedit kate ne "
    "mg vis pg most zless bat-pager edit open xdg-open run-mailcap ranger nnn lf mc ncdu top htop"
)
_DATABASES = set_of("mycli pgcli litecli mongosh mongo redis-cli cqlsh clickhouse clickhouse-client usql sqlplus isql tdbtool surreal")
_BUILDERS = set_of(
    "cmake meson scons ant bazel buck invoke fab doit waf autoconf autoheader autoreconf automake libtool latexmk m4 java javac rustc cobc "
    "stack cabal lein sbt"
)
_WITH_TARGETS = set_of("make gmake ninja rake just task")
"""What they run is written in the project: commands are offered by the target, and by the name alone none is."""
_FAR = set_of(
    "socat nc ncat telnet ftp lftp ncftp tcpdump tshark nmap openssl openvpn certbot puppet facter knife virsh lxd ctr code-server"
)
_SYSTEM = set_of(
    "apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk snap flatpak brew port nix-env opkg gem cpan cpanm easy_install pipx pear "
    "service systemctl loginctl journalctl busctl crontab at batch anacron logrotate sysctl debugfs dmsetup ldconfig ip agetty "
    "ssh-agent ssh-keygen sshfs sshuttle man nroff groff run-mailcap procmail exiftool cowsay cowthink msfconsole restic borg hg"
)
_CHANGES_ANYTHING = set_of("tee find install ln cp mv chmod source . dd")
_CODE_RUNNERS = set_of("coverage kernprof nodemon forever pm2 gunicorn uvicorn celery flask django-admin watchman direnv")
ANYTHING = WRAPPERS | INTERPRETERS | _DEBUGGERS | _EDITORS | _DATABASES | _BUILDERS | _FAR | _SYSTEM | _CHANGES_ANYTHING | _CODE_RUNNERS
"""Programs that run or change whatever their arguments say: allowed as exact commands only, not by how they begin."""
_GIT_OFFERED = set_of(
    "add am annotate apply blame branch bundle cat-file check-ignore checkout cherry cherry-pick clone commit count-objects describe diff "
    "fetch format-patch fsck gc grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull range-diff rebase reflog "
    "remote repack request-pull rerere restore rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash status switch "
    "symbolic-ref tag update-index update-ref verify-commit verify-tag whatchanged worktree write-tree"
)
"""Subcommands of git that run nothing but hooks. `config` sets what runs later; what is not known may be an alias."""
_NEVER_OFFERED = {
    "pip": set_of("wheel download build config"),
    "npm": set_of("explore edit config pkg set init create"),
    "pnpm": set_of("config init create patch env"),
    "yarn": set_of("config init create set plugin node"),
    "bun": set_of("repl create init"),
    "go": set_of("generate env tool telemetry"),
    "cargo": set_of("config rustc rustdoc fix"),
    "uv": set_of("pip python venv build"),
    "poetry": set_of("config self shell env"),
    "composer": set_of("config run-script global"),
    "bundle": set_of("config console open plugin"),
    "mix": set_of("run do cmd local archive escript"),
}
"""Subcommands that run whatever their arguments say, or change what runs later."""
_STEM = re.compile(r"[A-Za-z_+]+")


def program_name(word: str) -> str:
    """A program's name without folder and version: `bash-5.2` is bash, and the loader is a program that runs another."""
    name = os.path.basename(word)
    if name.startswith(("ld-linux", "ld-musl")):
        return "ld.so"
    rest = name.rstrip("0123456789.")
    version = name[len(rest) :].lstrip(".")
    if not version:
        return name
    return name[: -len(version)].removesuffix("-") or name


def is_among(word: str, names: Container[str]) -> bool:
    """Whether a program is one of these, in whatever version."""
    return os.path.basename(word) in names or program_name(word) in names


def runs_anything(words: Sequence[str]) -> bool:
    """Whether how a command begins does not say what it runs. By the program's name in all its versions (`python3.11-dbg`, `vim.tiny`)."""
    name = os.path.basename(words[0])
    if name in _WITH_TARGETS:
        return len(words) < 2
    stem = _STEM.match(name)
    if is_among(name, ANYTHING) or (stem and stem.group() in ANYTHING) or name.startswith("git-"):
        return True
    if name == "git":
        return len(words) < 2 or words[1] not in _GIT_OFFERED
    return len(words) > 1 and words[1] in _NEVER_OFFERED.get(name, ())
