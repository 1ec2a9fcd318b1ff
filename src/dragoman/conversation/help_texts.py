"""The `--help` text of each command. Imported only when it is needed."""

from __future__ import annotations

ENGLISH_HELP: dict[str, str] = {}

ENGLISH_HELP["run"] = """\
usage: dragoman [options]                     a conversation in the terminal
       dragoman "QUESTION" [options]          a conversation that begins with it
       dragoman -p "PROMPT" [options]         one answer, then exit
       COMMAND | dragoman -p "PROMPT"         the same, about the output of COMMAND
       dragoman COMMAND [options]             auth, models, config, doctor, sessions, context, approvals,
                                              trust, hooks, mcp, agents, skills, plugins, fleet, serve-local,
                                              acp, view, completions; see COMMAND --help

  -p, --prompt TEXT        what you want; whatever follows -p is the prompt, even "--this"
  -m, --model NAME         deployment/model, as dragoman models lists them; by default the model you
                           configured, else the service whose key is set, else a server on this
                           machine (asks first), else a small model in this process
      --fallback NAME      a model to go on with where the service keeps refusing (rate limit, used-up
                           quota, overload); may be given several times, tried in that order
      --output-format F    text (default), json (one object at the end), stream-json (one per event)
      --approval MODE      plan       reading only
                           default    edits ask first, commands before they write; with -p that is refused
                           auto-edit  edits inside the workspace run, commands ask before they write
                           auto       commands run too, inside a sandbox and nowhere else
                           In the first three, commands run with the workspace read-only where the
                           sandbox has level 1 or 2; elsewhere those that only read (ls, grep …).
                           What you allowed with "save for this folder" runs in every mode but plan,
                           also with -p: dragoman approvals
      --sandbox LEVEL      auto (default): the first that works here of 1, own namespaces; 2, bubblewrap;
                           3, Landlock alone. off: none. external: none of ours, because the container
                           or VM that dragoman runs in is the boundary; auto is allowed (docs/operate/ci.md)
      --allow RULE         run what fits without asking: --allow 'pytest *', --allow 'edit src/**'; may be
                           given several times, as may --deny RULE: refuse what fits. A refusal wins.
                           Outside the sandbox: only 'outside git push' and the like
      --max-turns N        stop after N answers of the model (default 100)
      --include DIR        a further directory the tools may use; may be given several times
  -C, --directory DIR      work in DIR; other relative paths are relative to it
      --trust              trust this folder for this start: use its .dragoman/config.toml, AGENTS.md,
                           DRAGOMAN.md, GEMINI.md, CLAUDE.md and rules; dragoman trust remembers it
      --config FILE        use FILE instead of your config.toml
      --yes                agree to downloads, and to using a server that was found; never to what a
                           tool wants to do
      --lang en|zh         the program's language
      --no-color           no colours; so does NO_COLOR=1
      --debug              log to standard error; keys are left out
      --worktree [NAME]    work in a git worktree of its own, beside the repository; it is removed if
                           nothing was changed in it
  -c, --continue           continue the latest session in this folder, with its model, unless you give -m
  -r, --resume [ID]        continue the session with this id (see dragoman sessions); without an ID you
                           pick one, and with -p it is the latest in this folder
      --search [HOW]       search the web for the prompt itself and print what is found, with its sources:
                           dragoman --search "weather in Beijing". With HOW, how the model searches:
                           tool (google_web_search), grounding (its service by itself) or off
      --text-tools         describe tools in text, and read calls from the model's text
  -h, --help               this text
  -V, --version            the version
      --                   end of the options

exit codes
    0  answered                      54  a tool cannot work at all (full disk)
    1  internal error                55  needs a trusted folder
   41  no key, or it was refused     56  the model went in circles
   42  bad input                     57  the service failed
   44  no sandbox                    58  refused or filtered
   52  wrong configuration           59  cut at the output limit
   53  --max-turns reached           60  a budget is used up
   61  no answer of the type asked   62  a hook refused the prompt or ended the run
  130  Ctrl-C (SIGTERM 143, SIGHUP 129, reader gone 141)

environment
  keys       GEMINI_API_KEY, GOOGLE_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY; dragoman models lists
             more
  settings   DRAGOMAN_MODEL, DRAGOMAN_FALLBACK (names with commas between), DRAGOMAN_APPROVAL,
             DRAGOMAN_MAX_TURNS, DRAGOMAN_LANG, DRAGOMAN_HOME
  others     NO_COLOR, COLUMNS, HTTPS_PROXY, SSL_CERT_FILE
"""

ENGLISH_HELP["models"] = """\
usage: dragoman models [list] [NAME] [options]
       dragoman models pull NAME [--yes] [--from FILE]
       dragoman models remove NAME

Lists deployments and their models, and the weights of models that run on this machine. With NAME,
only deployments and models whose name contains it. Prices are US dollars per million tokens. Keys
are named, never shown. Servers on this machine are asked which models they serve.

pull downloads weights. It asks first, continues an interrupted download, and keeps a file only if
its SHA-256 is correct. A GGUF file of your own needs no download: -m local//path/to/it.gguf.

      --yes                download without asking
      --from FILE          copy the weights from FILE instead of downloading them
      --output-format F    text (default) or json
      --config FILE        use FILE instead of your config.toml
  -C, --directory DIR      paths are relative to DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["config"] = """\
usage: dragoman config [options]

Shows every setting with its value and where it comes from (default, your file, the project's file,
the environment or a flag), and where the files are. docs/reference/configuration.md explains each setting.
Then what you and others bring, each with file and line: MCP servers, rules, hooks, skills, commands,
subagents and plugins; what is wrong with a file; and which programs' files are not read ([sources]).

      --json               for programs; the same as --output-format json
      --output-format F    text (default) or json
      --trust              show the settings of a run with --trust
      --config FILE        use FILE instead of your config.toml
  -C, --directory DIR      use the project in DIR
  -m, --model NAME, --fallback NAME, --approval MODE, --sandbox LEVEL, --allow RULE, --deny RULE,
      --max-turns N, --lang en|zh, --no-color
                           show the settings of a run with these
      --debug
  -h, --help               this text
"""

ENGLISH_HELP["doctor"] = """\
usage: dragoman doctor [options]
       dragoman doctor --live [--record FILE] [--yes] [options]

Checks everything a run needs: configuration, model and key, the connection to the service,
ripgrep, terminal, disk. Exits with 0 when nothing is broken, with 1 otherwise.

With --live it sends one small request for each thing the model can do (streams, tools, thinking,
images, the prompt cache, searching …) and shows what worked. It names the most it can cost, and asks first.

      --live               send real requests to the model
      --record FILE        with --live: keep every exchange in FILE, without your key, for a bug report
      --yes                with --live: do not ask; replace FILE if it exists
      --offline            do not try to reach the service
      --output-format F    text (default) or json
  -m, --model NAME         check this model instead of the one that would be chosen
      --fallback NAME      check this one too: it goes on where the service keeps refusing
      --sandbox LEVEL      check this level of the sandbox
      --trust              use the project's configuration
      --config FILE        use FILE instead of your config.toml
  -C, --directory DIR      use the project in DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["sessions"] = """\
usage: dragoman sessions [list] [--all]       this folder's sessions, or those of every folder
       dragoman sessions resume [ID]          continue a session, as dragoman --resume [ID] does
       dragoman sessions show [ID]            print the whole session
       dragoman sessions search TEXT [--all]  find prompts, answers and titles with these words
       dragoman sessions fork [ID] [--at N]   copy a session, up to entry N
       dragoman sessions rewind [ID] --to N   go back to entry N; nothing is deleted
       dragoman sessions undo [ID]            restore the files that its last run changed
       dragoman sessions redo [ID]            take its last undo back
       dragoman sessions export [ID]          write it as Markdown, or in the format of --as
       dragoman sessions import FILE          from gemini-cli, Claude Code, Codex, pi, Cline, or our JSON
       dragoman sessions delete ID            delete a session for good; asks first

ID is latest (also where none is given), or an id from list; a longer beginning of it, or
the whole one, works as well. show prints the number N of each entry.

      --all                the sessions of every folder
      --at N, --to N       the number of an entry
      --as FORMAT          markdown (default), html, json (everything; import reads it again),
                           record (gemini-cli's), atif (a trajectory for Harbor and others); --atif: the same
  -o, --output FILE        write to FILE, readable by you only; its extension gives the format
      --yes                delete without asking; overwrite FILE
      --force              undo, redo: also restore files that were changed since, and guarded ones
      --output-format F    list, show, search: text (default) or json
  -C, --directory DIR      the sessions of DIR; paths are relative to it
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["approvals"] = """\
usage: dragoman approvals [list]              what you have allowed for good, in every folder
       dragoman approvals revoke ID           take one back
       dragoman approvals revoke --all        take all of them back

An approval is saved by answering a question with "save for this folder". From then on it runs there
without asking, in a conversation and with -p: all edits, one exact command, one tool, or one tool
with one host. Dragoman's own files, and files that make other programs run, ask all the same.
A session that is running asks again from its next call on. The folders you trust are listed too.

ID is the id that list shows, or the beginning of it.

      --all                with revoke: all, in every folder
      --output-format F    text (default) or json
  -C, --directory DIR      list the approvals of DIR first
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["mcp"] = """\
usage: dragoman mcp [list]                    the MCP servers there are, with file and line, and their state
       dragoman mcp get NAME                  what one offers: its tools, prompts and resources
       dragoman mcp add NAME -- COMMAND …     add a program to your config.toml, and try it once
       dragoman mcp add NAME URL              the same for a server that is reached by HTTP
       dragoman mcp remove NAME               take it out again
       dragoman mcp test NAME                 start or reach it once, and ask what it offers
       dragoman mcp approve NAME              say yes to a server that a project configures
       dragoman mcp login NAME                sign in to a server in the browser; logout NAME: sign out

Servers are read from your config.toml and a trusted project's .dragoman/config.toml, and from the files of
Claude Code, gemini-cli, Codex and opencode. One that a project configures is used after you said yes to it;
a conversation asks, with -p it is left out. It is asked for again where its command, arguments, environment,
address or tools change. No server is started before the model calls one of its tools. They run outside the
sandbox. docs/extend/mcp.md has it all.

      --env NAME=VALUE     with add: a variable for the program; ${X} in it is filled in at its start
      --header NAME:VALUE  with add: a header for the URL; ${X} in it is filled in
      --transport T        with add: http (default) or sse, the oldest one
      --scope S            with add: user (default), or project for the folder's .dragoman/config.toml
      --trust              trust this folder for this start
      --json               the same as --output-format json
      --output-format F    text (default) or json
  -C, --directory DIR      the folder whose servers are meant
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["hooks"] = """\
usage: dragoman hooks [list]                  which commands run at which events, and where each is defined
       dragoman hooks approve [ID ...]        agree to hooks of this project: all, or those named
       dragoman hooks revoke [ID ...]         take that back: it is asked about again
       dragoman hooks test EVENT [TOOL]       run what fits an event, with made-up input, and show its answer

Hooks are commands of yours at fixed points of a run: before a prompt is sent, before and after a tool
is used, at the end of an answer. They are read from [hooks] of your configuration, and from the
settings of Claude Code, Codex and gemini-cli. They run outside the sandbox and unasked, so those of a
project run only in a folder you trust, and only after you have agreed to each; a yes holds until the
command, or a file of the project that it names, changes. A conversation asks once; with -p this command
says it.

      --json               the same as --output-format json
      --output-format F    text (default) or json
      --trust              trust this folder for this start
  -C, --directory DIR      the folder whose hooks are meant
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["agents"] = """\
usage: dragoman agents [list] [options]       the subagents the model can call, and where they are defined

Subagents are Markdown files in .dragoman/agents, .claude/agents, .gemini/agents and .opencode/agents, yours
and those of a project you trust. docs/extend/subagents.md says what stands in them.

      --json               the same for a program; so does --output-format json
      --output-format F    text (default) or json
      --config FILE        use FILE instead of your config.toml
  -C, --directory DIR      use the project in DIR
      --trust              trust this folder for this start
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["trust"] = """\
usage: dragoman trust [FOLDER]                trust a folder: its own files may configure Dragoman
       dragoman trust --revoke [FOLDER]       take it back, or take back a no: it is asked about again

Before a folder is trusted, nothing in it is read as configuration, memory or rules. A conversation asks
once, where there is something to read; with -p nobody can be asked, so this command says it. Without
FOLDER: the repository of the current folder, or the folder itself.

A yes covers the folders inside it, down to the next repository. The home folder, / and folders that
everybody may write to are never trusted as a whole. What is saved: dragoman approvals.

      --revoke             forget what was said about the folder
      --output-format F    text (default) or json
  -C, --directory DIR      paths are relative to DIR
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["skills"] = """\
usage: dragoman skills [list]                 the skills that there are here, and where each lies
       dragoman skills show NAME              what the model is told when it is activated

Skills are folders with a SKILL.md: in .agents/skills, .claude/skills, .codex/skills, .dragoman/skills,
.gemini/skills and .opencode/skills, of a trusted project and under your home folder, and in plugins. The
model is told their names and descriptions, and activates one when a task fits; /NAME does it too.

      --output-format F    text (default) or json; --json is the same as json
  -C, --directory DIR      those of DIR
      --config FILE        use FILE instead of your config.toml
      --trust              trust this folder for this start
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["plugins"] = """\
usage: dragoman plugins [list]                the plugins that are installed, and what each brings

Plugins of Claude Code, extensions of gemini-cli, and folders in .agents/plugins and .dragoman/plugins
with a plugin.json (Agent Plugins 1.0). Of what they bring, skills and commands are named PLUGIN:NAME.

      --output-format F    text (default) or json; --json is the same as json
  -C, --directory DIR      those of DIR
      --config FILE        use FILE instead of your config.toml
      --trust              trust this folder for this start
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["auth"] = """\
usage: dragoman auth [list]                   which services have a key, and where it comes from
       dragoman auth add SERVICE              store a key; asks for it, or reads it from standard input
       dragoman auth remove SERVICE           delete the stored key

SERVICE is a deployment that dragoman models lists: gemini, anthropic, openai, or one of your own.
A key is kept in the system's keyring where there is one (it needs the extra keyring, in a clone:
pip install '.[keyring]'), else in a file that only you can read; add says which. Keys are never
shown, and never taken from the command line, where other programs can see them.

A variable in the environment wins over a stored key.

      --output-format F    text (default) or json
      --config FILE        use FILE instead of your config.toml
  -C, --directory DIR      paths are relative to DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["acp"] = """\
usage: dragoman acp [options]

Speaks the Agent Client Protocol over standard input and output, so that an editor can use Dragoman:
Zed, JetBrains, Neovim, Emacs and others. The editor starts this command, and docs/use/editors.md has the
settings of each. Which folder is worked in, and which session, the editor says.

  -m, --model NAME         deployment/model, as dragoman models lists them
      --fallback NAME      a model to go on with where the service keeps refusing; may be given several times
      --approval MODE      plan, default, auto-edit or auto: what a new session begins with
      --sandbox LEVEL      auto (default), 1, 2, 3, off or external
      --allow RULE, --deny RULE, --include DIR, --max-turns N
                           as without a command: dragoman --help
      --trust              trust every folder that the editor opens, without asking
      --sign-in            ask for a service and its key in this terminal, store it, and exit
      --config FILE        use FILE instead of your config.toml
  -C, --directory, --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["fleet"] = """\
usage: dragoman fleet run TASKS               carry out many tasks, a line of JSON each; -: from standard input
       dragoman fleet resume NAME             go on with what is not done; nothing that is done is run again
       dragoman fleet retry NAME --failed     run again what did not pass, or the tasks named behind NAME
       dragoman fleet status [NAME]           what became of it: the sums, and what did not pass
       dragoman fleet show NAME TASK          one task: its answer, check, diff, cost and session
       dragoman fleet diff A B                what became otherwise in another fleet
       dragoman fleet export NAME             results.jsonl, and preds.json in SWE-bench's form
       dragoman fleet work TASK               one attempt at one task, for schedulers of other kinds

Each task gets a process, a session and a copy of its workspace of its own, and one result. What is
killed at any moment is taken up by resume. Everything lies in fleet/NAME: docs/operate/fleet.md has the fields
of a task and the files.

  -m, --model NAME         for tasks that name none, as for a run
      --approval MODE      plan, default, auto-edit or auto (default: auto, inside the sandbox)
      --sandbox LEVEL      as for a run; external: a container is the boundary
      --on PLACE           where workers run (default: this machine): ray, or ray://HOST:PORT
      --cpus N, --memory-mb N  what Ray keeps free for each worker (default: 1 CPU)
      --trust              trust what the workspaces bring: their configuration, hooks and servers
      --name NAME          of the fleet (default: that of the file)
      --workers N          how many at once (default: 4)
      --attempts K         at each task (default: 1)
      --budget-usd X       start and send nothing more once the whole fleet has spent so much
      --template FILE      a prompt, or a task as JSON, in which {{field}} stands for a field of the line
      --failed             for retry: everything that did not pass
      --atif               for export: a trajectory for each session too
      --take-over          resume or retry what was not started here, or was changed since: what it runs with is shown
      --force              resume what another version of Dragoman has begun
      --attempt N, --epoch E, --out DIR, --scratch DIR
                           for work: which attempt, its how manieth start, where the result goes, and
                           where the copy is made
      --hide PATH          for work: the task's commands and tools cannot read it; can be given several times
  -C, --directory DIR      paths are relative to DIR, and fleet/ lies there
      --config FILE        use FILE instead of your config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text

exit code: 0 all passed, 1 not all did, 60 the budget is used up, 130 cancelled
"""

ENGLISH_HELP["serve-local"] = """\
usage: dragoman serve-local [MODEL] [--port N]

Serves a model on this machine to other programs, over three protocols: Chat Completions, Responses
and Anthropic Messages. MODEL is a name for dragoman models pull, or a path to a GGUF file; by default
it is the small model that a run would use. Ctrl-C stops it.

      --port N             port to listen on (default 8080); always on 127.0.0.1
      --yes                download missing weights without asking
  -C, --directory DIR      paths are relative to DIR
      --config FILE        use FILE instead of your config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text

environment
  DRAGOMAN_LOCAL_MODEL     a GGUF file to use instead of any other
  DRAGOMAN_LOCAL_THREADS   number of threads (default: the number of idle cores)
"""

ENGLISH_HELP["view"] = """\
usage: dragoman view [SESSION] [--talk]

Shows your sessions in a browser: for each request exactly what the model was told, what it cost, what came
from the cache, what was left out and why. A session that is being held streams in. Listens on 127.0.0.1
alone, and prints an address that works once. SESSION is an id from dragoman sessions, or latest.

      --talk               hold conversations in the page too, as in the terminal
      --port N             port to listen on (default: any that is free)
      --no-open            print the address and open no browser
      --origin URL         the page is also reached at URL, through a tunnel of yours
      --host ADDRESS       listen there, for others: only with --tls-cert and --tls-key and a password
                           in DRAGOMAN_VIEW_PASSWORD
      --tls-cert FILE, --tls-key FILE
                           a certificate and its key, as PEM
  -C, --directory DIR      the folder whose latest session is meant, and in which conversations are held
      --config FILE        use FILE instead of your config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["completions"] = """\
usage: dragoman completions SHELL             a script that makes SHELL complete our commands
       dragoman completions bash              source <(dragoman completions bash)
       dragoman completions zsh               source <(dragoman completions zsh)
       dragoman completions fish              dragoman completions fish | source

Put that line into your ~/.bashrc, your ~/.zshrc (after compinit), or ~/.config/fish/config.fish.
Completed are commands, actions, options and their values, models and sessions.

      --output-format, --lang en|zh, --no-color, --debug
  -C, --directory DIR      the sessions of DIR
      --config FILE        use FILE instead of your config.toml
  -h, --help               this text
"""

ENGLISH_HELP["context"] = """\
usage: dragoman context [SESSION]                what the next request contains, what was left out, and why
       dragoman context [SESSION] --request      print the next request as it would be sent
       dragoman context new                      what a new conversation here begins with: the first message, whole
       dragoman context simulate [SESSION]       what other ways of pruning would have cost
       dragoman context compress [SESSION]       summarise the older messages now
       dragoman context prune [SESSION]          remove all outdated results now
       dragoman context drop ENTRY [SESSION]     remove one result; ENTRY is its number in the table
       dragoman context keep ENTRY [SESSION]     keep one result, whatever is pruned or summed up
       dragoman context undo ENTRY [SESSION]     take that back

SESSION is latest (the default), or an id from dragoman sessions.
Looking changes nothing, and needs no key.

      --all                show every item (long lists are shortened by default); with simulate, also
                           the best possible schedule
      --at N               show the state after entry N
      --request [NAME]     print the request's body, byte for byte; its head goes to standard error.
                           NAME: for another deployment, deployment/model, or protocol (gemini,
                           openai_chat, openai_responses, anthropic)
      --focus TEXT         compress: what matters most in the summary
      --json               as JSON; the same as --output-format json
  -C, --directory DIR      the sessions of DIR
      --config FILE        use FILE instead of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""


def help_for(command: str, language: str = "en") -> str:
    """The text with one line for each row and each paragraph: whoever shows it breaks them to the width there is."""
    texts = ENGLISH_HELP
    if language == "zh":
        from dragoman.conversation.help_chinese import CHINESE_HELP

        texts = CHINESE_HELP
    lines: list[str] = []
    for line in texts[command].split("\n"):
        if lines and _continues(lines[-1], line):
            lines[-1] = _joined(lines[-1], line.strip())
        else:
            lines.append(line)
    return "\n".join(lines)


def _joined(before: str, after: str) -> str:
    """With a blank between; between Chinese characters, and beside their punctuation, there is none."""
    last, first = ord(before[-1]), ord(after[0])
    is_one = (last > 0x2FFF and first > 0x2FFF) or before[-1] in "、，。；：（" or after[0] in "、，。；：）（"
    return f"{before}{after}" if is_one else f"{before} {after}"


def _continues(line: str, following: str) -> bool:
    """Whether the next line goes on with the last cell of a row, or with a paragraph."""
    if not line.strip() or not following.strip() or "  " in following.strip():
        return False
    text = line.rstrip().rpartition("  ")[2].strip()
    starts_at = len(line.rstrip()) - len(text)
    return len(following) - len(following.lstrip()) == starts_at and (starts_at == 0 or "  " in line.strip())
