"""What `--help` says of each command. Loaded only when somebody asks."""

from __future__ import annotations

ENGLISH_HELP: dict[str, str] = {}

ENGLISH_HELP["run"] = """\
usage: dragoman [options]                     a conversation in the terminal
       dragoman -p "PROMPT" [options]         one answer, then exit
       COMMAND | dragoman -p "PROMPT"         the same, about what COMMAND printed
       dragoman models | config | doctor | sessions | context | serve-local      see COMMAND --help

  -p, --prompt TEXT        what you want; whatever follows -p is the prompt, even "--this"
  -m, --model NAME         deployment/model, as dragoman models lists them; left out: what is set, else
                           the service whose key is set, else a server on this machine (asks first),
                           else a small model in this process
      --output-format F    text (default), json (one object at the end), stream-json (one per event)
      --approval MODE      plan       only reading
                           default    edits and commands ask; with -p they are refused
                           auto-edit  edits inside the workspace run, commands ask
                           auto       not there yet: it needs a sandbox
      --max-turns N        stop after N answers of the model (default 100)
      --include DIR        a further directory the tools may use; may be given several times
  -C, --directory DIR      work in DIR; other relative paths count from there
      --trust              believe this folder: its .dragoman/config.toml, and its AGENTS.md,
                           DRAGOMAN.md, GEMINI.md and CLAUDE.md
      --config FILE        use FILE in place of your config.toml
      --yes                agree to downloads, and to a server nobody named; never to what a tool
                           wants to do
      --lang en|zh         the program's language
      --no-color           no colours; so does NO_COLOR=1
      --debug              say on standard error what is done; keys are left out
      --resume [ID]        go on with a session: the latest here, a number of dragoman sessions, or
                           the beginning of an id; with the model it had, unless -m names another
      --text-tools         describe tools in text and read calls out of it
  -h, --help               this text
  -V, --version            the version
      --                   ends the options

exit codes
    0  answered                      54  a tool cannot work at all (full disk)
    1  internal error                55  needs a trusted folder
   41  no key, or it was refused     56  the model went in circles
   42  bad input                     57  the service failed
   44  no sandbox                    58  refused or filtered
   52  wrong configuration           59  cut at the output limit
   53  --max-turns reached          130  Ctrl-C (SIGTERM 143, SIGHUP 129, reader gone 141)

environment
  GEMINI_API_KEY, GOOGLE_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY; dragoman models names more
  DRAGOMAN_MODEL, DRAGOMAN_APPROVAL, DRAGOMAN_MAX_TURNS, DRAGOMAN_LANG, DRAGOMAN_HOME
  NO_COLOR, HTTPS_PROXY, SSL_CERT_FILE
"""

ENGLISH_HELP["models"] = """\
usage: dragoman models [list] [NAME] [options]
       dragoman models pull NAME [--yes] [--from FILE]
       dragoman models remove NAME

Where models are served, and which; and the weights of models that run on this machine. NAME leaves
only deployments and models whose name contains it. Prices are US dollars per million tokens. A key
is named, never shown. Servers on this machine are asked what they serve.

pull asks first, goes on where it was broken off, and keeps a file only if its SHA-256 is the right
one; a GGUF of your own needs no pull: -m local//path/to/it.gguf.

      --yes                pull without asking
      --from FILE          take the weights from FILE, which you have already
      --output-format F    text (default) or json
      --config FILE        use FILE in place of your config.toml
  -C, --directory DIR      relative paths count from DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["config"] = """\
usage: dragoman config [options]

Every setting, its value, and where that came from: default, your file, the project's file, the
environment or a flag; and where the files are. docs/configuration.md says what each one means.

      --output-format F    text (default) or json
      --trust              as a run with --trust would have it
      --config FILE        use FILE in place of your config.toml
  -C, --directory DIR      look at the project in DIR
  -m, --model NAME, --approval MODE, --max-turns N, --lang en|zh, --no-color
                           as a run with these would have it
      --debug
  -h, --help               this text
"""

ENGLISH_HELP["doctor"] = """\
usage: dragoman doctor [options]

Looks whether everything a run needs is there: configuration, model and key, the way to the
service, ripgrep, terminal, disk. Exits with 0 when nothing is broken, with 1 otherwise.

      --offline            do not try to reach the service
      --output-format F    text (default) or json
  -m, --model NAME         look at this model instead of the one that would be chosen
      --trust              with the project's configuration
      --config FILE        use FILE in place of your config.toml
  -C, --directory DIR      look at the project in DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["terminal"] = """\
/help              this text
/model [NAME]      which model answers, or another one from now on
/retry             go on after a failure
/approval [MODE]   plan: only reading; default: edits and commands ask; auto-edit: edits inside the workspace run
/tools             what the model can use
/usage             tokens and cost so far
/quit              leave; so do Ctrl-D, and Ctrl-C twice

A line that ends with a backslash goes on in the next; pasted lines stay together. //text sends /text to the model.
Ctrl-C or Esc stops a run. Up and Down bring back what you wrote before.
"""

ENGLISH_HELP["sessions"] = """\
usage: dragoman sessions [list] [--all]       this folder's sessions, or those of every folder
       dragoman sessions show ID              everything that was said and done, as it looked
       dragoman sessions search TEXT [--all]  prompts, answers and titles with these words
       dragoman sessions fork ID [--at N]     a copy to go on with, up to entry N
       dragoman sessions rewind ID --to N     back to how it stood after entry N; nothing is erased
       dragoman sessions undo ID              put the files back that its last run changed
       dragoman sessions export ID            as Markdown, or as --as says
       dragoman sessions import FILE          of gemini-cli, Claude Code, Codex, pi, or our own JSON
       dragoman sessions delete ID            for good; asks first

ID is latest, a number as list prints it, or the id or the beginning of it. show prints the N of
each entry. dragoman --resume ID goes on with a session.

      --all                the sessions of every folder
      --at N, --to N       the number of an entry
      --as FORMAT          markdown (default), html, json (everything; import reads it again),
                           record (gemini-cli's)
  -o, --output FILE        write to FILE, for your eyes alone; its ending says the format
      --yes                delete without asking; write over FILE
      --force              undo: also files that were changed since
      --output-format F    list, show, search: text (default) or json
  -C, --directory DIR      the sessions of DIR; relative paths count from there
      --config FILE        use FILE in place of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH_HELP["serve-local"] = """\
usage: dragoman serve-local [MODEL] [--port N]

Serves a model of this machine to other programs, over three protocols: Chat Completions, Responses
and Anthropic Messages. MODEL is a name as dragoman models pull takes it, or a path to a GGUF file;
left out, it is the small one a run would use. It ends with Ctrl-C.

      --port N             listen there (default 8080); always on 127.0.0.1
      --yes                pull the weights without asking, where they are not here
  -C, --directory DIR      paths count from DIR
      --config FILE        use FILE in place of your config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text

environment
  DRAGOMAN_LOCAL_MODEL     a GGUF file that goes before all others
  DRAGOMAN_LOCAL_THREADS   threads to work with; otherwise the cores nobody uses
"""

ENGLISH_HELP["context"] = """\
usage: dragoman context [SESSION]                what the next request holds, what was left out, and why
       dragoman context [SESSION] --request      the next request itself, as it would be sent
       dragoman context simulate [SESSION]       what it would have cost with other ways of pruning
       dragoman context compress [SESSION]       have the older messages summed up now
       dragoman context prune [SESSION]          let all outdated results go now

SESSION is latest (the default), a number as dragoman sessions prints it, or the id or the
beginning of it. Looking changes nothing, and needs no key.

      --all                every item, where long lists are shortened else; simulate: hindsight too
      --at N               as it stood after entry N
      --request [NAME]     print the request's body, byte for byte; what stands around it goes to
                           standard error. NAME: for another deployment, deployment/model, or
                           protocol (gemini, openai_chat, openai_responses, anthropic)
      --focus TEXT         compress: what matters most in the summary
      --json               as JSON; so does --output-format json
  -C, --directory DIR      the sessions of DIR
      --config FILE        use FILE in place of your config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""


def help_for(command: str) -> str:
    return ENGLISH_HELP[command]
