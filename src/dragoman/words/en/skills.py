"""Skills, commands and plugins that lie in files."""

TEXTS = {
    # --- frontmatter
    "skills.frontmatter_no_end": "the frontmatter has no closing ---",
    "skills.frontmatter_line": "this is neither a key nor part of one: {text}",
    "skills.frontmatter_deep": "nested too deep",
    # --- files
    "skills.problem": "{where}: {reason}",
    "skills.more_problems": "{count:more file was|more files were} not used as written",
    "skills.leads_out": "it is a link that leads out of {folder}, so it is not read; copy the file instead",
    "skills.too_long": "it is longer than {most} bytes: shorten it",
    "skills.not_text": "it is not text",
    "skills.not_utf8": "it is not UTF-8 (byte {position}): save it as UTF-8",
    "skills.not_json": "it is not JSON ({reason}): fix it",
    "skills.not_toml": "it is not TOML: {reason}",
    "skills.not_a_table": "it is not a JSON object",
    "skills.not_whole": "there are too many files or folders in it; some were not looked at",
    # --- skills, commands, plugins
    "skills.too_many": "there are more than {most:skill|skills}; the rest is not used",
    "skills.too_many_commands": "there are more than {most:command|commands}; the rest is not used",
    "skills.too_many_plugins": "there are more than {most:plugin|plugins}; the rest is not used",
    "skills.no_agent": "it wants to be run by the agent {name!r}, which is not there: define it, or remove the line",
    "skills.no_name": "it has no name that can be used: letters, digits, - _ . and at most 64 of them",
    "skills.no_description": "it has no description: add a line `description: …` to its frontmatter",
    "skills.command_name": "a command cannot be called that: use letters, digits, - _ . in the names of the file and its folders",
    "skills.empty_command": "it has no prompt",
    "skills.no_prompt": "it has no text `prompt`",
    "skills.plugin_gone": "the plugin is listed as installed, but its folder is gone",
    # --- carrying one out
    "skills.prompt_too_long": "the prompt of this command is longer than {most} characters",
    "skills.runs": "$ {command}",
    "skills.not_run": "not run: {command} ({reason})",
    "skills.model_not_used": "the model {name} that the command names is not used; {now} is used instead: {reason}",
    "skills.file_not_read": "not read: {path} ({reason})",
    # --- lists
    "skills.none": "there are no skills here",
    "skills.not_found": "there is no skill called {name}{hint}",
    "skills.needs_name": "say which skill to show",
    "skills.by_user_only": "only by /{name}",
    "skills.tokens": "{count:skill|skills}; their list takes {tokens:token|tokens} at the beginning of a conversation",
    "skills.from_files": "From files:",
    "skills.hidden": "{name} ({origin}) is not used: a built-in command has this name",
    "skills.no_plugins": "no plugins are installed here",
    # --- hooks of packages
    "skills.hooks_not_loaded": "{source}: plugins.hooks: {reason}",
    "skills.not_hooks": "{source}: plugins.hooks: {name} is a {kind}, not hooks",
    "skills.config_skills": "Skills:",
    "skills.config_commands": "Commands in files:",
    "skills.config_subagents": "Subagents:",
    "skills.config_plugins": "Plugins:",
    "skills.config_problems": "Not used, or not all of it:",
    "skills.config_switched_off": "Switched off, so nothing of theirs is read: {keys}",
}
