"""The library: who may run what."""

TEXTS = {
    "policy.ask_failed": "the function that is asked for approval (ask) failed, so {tool} was not run",
    "policy.ask_answer": "ask returned {answer}; it must return an Allow, a Deny or a Later",
    # Why a command line is not read, and therefore asked about.
    "policy.shell_ansi_quote": "it quotes with $'…'",
    "policy.shell_assignment": "it sets a variable before the command",
    "policy.shell_background": "it runs something in the background",
    "policy.shell_backslash": "a backslash stands at the end of a line or before a character that is not ASCII",
    "policy.shell_character": "it has an unquoted {text}",
    "policy.shell_control": "it holds the control character {code}",
    "policy.shell_disagree": "it can be read in more than one way",
    "policy.shell_encoding": "it is not valid UTF-8",
    "policy.shell_glob": "a word mixes quotes with a file pattern",
    "policy.shell_heredoc": "it has a here-document",
    "policy.shell_incomplete": "a command is missing beside an operator",
    "policy.shell_long": "it is longer than 64 KB",
    "policy.shell_many": "it has more than {count:word|words}",
    "policy.shell_name": "what it runs is not a plain name",
    "policy.shell_not_bash": "commands are run by another shell here, whose syntax is not checked",
    "policy.shell_no_parser": "the parser of shell commands (tree-sitter-bash) is not installed",
    "policy.shell_operator": "it has the operator {text}",
    "policy.shell_code": "{name} is given code that names `{pattern}`, which a rule forbids or asks about",
    "policy.shell_other": "it has a part that cannot be judged: {kind}",
    "policy.shell_piped": "it pipes commands into a shell, where they cannot be checked, and a rule forbids some or asks about them",
    "policy.shell_quote": "it is not complete, or not valid shell",
    "policy.shell_redirect": "it reads from or writes to a file",
    "policy.shell_substitution": "it runs a command inside another (substitution)",
    "policy.shell_tilde": "it names somebody's home directory",
    "policy.shell_variable": "it uses a variable",
    # Why a command that was read is asked about.
    "policy.command_cd": "it changes the folder in a way that cannot be followed",
    "policy.command_folder": "{path} is a folder",
    "policy.command_environment": "the environment variable {name} points into the workspace, so files from there would run",
    "policy.command_glob": "the file pattern {text} may stand for anything",
    "policy.command_outside": "{path} is outside the workspace",
    "policy.command_path": "{name} would be found in the workspace, or in a folder that is not named in full",
    "policy.command_denied": "a rule keeps {path}, or something in it, from being read",
    "policy.command_secret": "{path} holds secrets, or may not be read without asking",
    "policy.command_unknown": "{name}, with these arguments, may do more than read",
    "policy.git_bare": "{path} looks like a repository of its own, whose settings git would use",
    "policy.git_borrowed": "the history of this repository is somewhere else: {path}",
    "policy.git_broken": "{path} is not a complete repository: git would use the settings of one above it",
    "policy.git_config": "this repository's configuration sets {key}, which may make git run something",
    "policy.git_elsewhere": "the repository of this folder is somewhere else",
    "policy.git_hook": "the repository has a hook that git runs when it looks at the files (post-index-change)",
    "policy.git_special": "{path} is a named pipe or a device: git would wait for it",
    "policy.git_submodule": "the repository has submodules, whose own settings git would use",
    "policy.git_unreadable": "the repository's configuration cannot be read: {reason}",
    # Rules.
    "policy.rule_any_program": "{pattern} would allow any program: name the program",
    "policy.rule_no_text": "a rule is a text: a command such as `pytest *`, or a tool's name",
    "policy.rule_empty": "the rule is empty: write a command such as `pytest *`, or a tool's name",
    "policy.rule_granted": "allowed when you were asked",
    "policy.rule_match": "its own example under `match` is not covered: {example}",
    "policy.rule_no_match": "its own example under `no_match` is covered: {example}",
    "policy.rule_quotes": "{pattern} has a quote that is not closed: close it",
    "policy.rule_operator": "{pattern} has `{sign}` in it: write a rule for each command by itself, and quote what is a word of it",
    "policy.rule_host": "{pattern} is not a host, and a rule allows hosts: write its name alone, such as `{tool} example.org`",
    "policy.rule_choice": "its {name} is {value}, and must be one of {choices}",
    "policy.rule_begin": "a rule begins with the name of a program, not with {word}",
    "policy.rule_variable": "{pattern} has a variable in it, and commands with variables are always asked about: write what it stands for",
    "policy.rule_claude": "{pattern} is how Claude Code writes it: here it is `{ours}`",
    "policy.rule_says": 'the rule {decision} "{text}" says so ({origin})',
    "policy.rule_text": "the rule is too long, or has invisible characters",
    "policy.other_not_json": "{where}: not valid JSON: {reason}",
    "policy.other_not_starlark": "{where}: the rules cannot be read: {reason}",
    "policy.other_wrong_kind": "{where}: {key} has the wrong type",
    "policy.other_rule": "{where}: {rule} is not used: {reason}",
    "policy.other_form": "a rule has the form Tool or Tool(pattern)",
    "policy.other_plain": "it is more than plain values",
    "policy.other_decision": "its decision is {decision}; it must be allow, prompt or forbidden",
    "policy.other_pattern": "its pattern is not a list of words and of lists of words, or stands for too many commands",
    "policy.other_star": "a * in it would cover more here than in the other program",
    "policy.network_title": "connect to {host}",
    "policy.host_unknown": "{host} is not in network.hosts",
    "policy.auto_without_sandbox": "the mode auto runs commands without asking, and only in a sandbox; this agent has none: give it "
    "ToolOptions(sandbox=True), if one works here, or use auto-edit",
    # --- the sandbox for commands
    "policy.sandbox_level_0": "none: commands run with all your rights",
    "policy.sandbox_level_1": "level 1, own namespaces with Landlock and seccomp: holds files, secrets, network and processes; "
    "does not limit processor, memory and disk",
    "policy.sandbox_level_2": "level 2, bubblewrap with seccomp: holds files, secrets, network and processes; does not limit "
    "processor, memory and disk",
    "policy.sandbox_level_3": "level 3, Landlock and seccomp alone: holds writing, secrets and network; does not hide the names of "
    "files, and protected files in the workspace are put back after each command",
    "policy.sandbox_level_4": "macOS, sandbox-exec: holds writing, secrets and network; does not hide other processes nor the names of "
    "files, and was never tested on a Mac by its authors",
    "policy.sandbox_not_here": "sandbox-exec is missing, or a Linux level was asked for",
    "policy.sandbox_no_seatbelt": "sandbox-exec did not confine a test command",
    "policy.sandbox_with_gate": "{words}; allowed hosts are reached through a gate",
    "policy.sandbox_without_gate": "{words}; no host can be reached from it, because this system does not let us into bubblewrap's network",
    "policy.sandbox_because": "{level} ({reasons})",
    "policy.sandbox_none": "none: commands run with all your rights ({reason})",
    "policy.sandbox_off": "turned off",
    "policy.sandbox_not_linux": "there is none for this system yet",
    "policy.sandbox_root": "the workspace is the whole file system",
    "policy.sandbox_reason": "not {level}: {reason}",
    "policy.sandbox_no_bubblewrap": "bubblewrap is not installed",
    "policy.sandbox_no_landlock": "Landlock has version {version} here, {needed} is needed",
    # --- skills and commands at work
    "policy.not_among_allowed": "{by} names only these tools as those it needs: {names}",
    "policy.by_skill": "the skill {name}",
    "policy.by_command": "the command /{name}",
    "policy.other_not_toml": "{where}: it is not TOML ({reason}), so its rules are not used. Fix the file.",
    "policy.gemini_decision": "its decision has to be allow, deny or ask_user",
    "policy.gemini_narrower": "{key} has no equivalent here; write a rule for Dragoman instead",
    "policy.sandbox_no_private": "there is no place for temporary files that commands cannot write to: the workspace, or a folder"
    " that was added, holds "
    "them all; start in another folder",
    "policy.sandbox_private_replaced": "the sandbox's own temporary folder {path} was replaced by something else, so nothing is run; "
    "start Dragoman again",
    "policy.sandbox_exposed": "commands could change or read what is not theirs there: {paths}; start in another folder",
    "policy.guard_undone": "Undone after the command, because git would have gone by it: {paths}.",
    "policy.guard_not_undone": "The command made or changed {paths}, and that could not be undone: look at it before you use git there.",
    "policy.guard_running": "Made or changed while the command ran, and git would run something of it: {paths}. Look at it "
    "before you use git "
    "there.",
    "policy.guard_believed": "Made or changed while the command ran: {paths}. Other programs run something by such files, or "
    "agents believe them.",
    "policy.links_read_only": "{count:file is|files are} shared with places outside the workspace by hard links ({size}, in "
    "{folders}), as package "
    "managers do. Commands find them read-only; they are copied when a command wants to write there.",
    "policy.links_copied": "{count:file|files} ({size}, in {folders}) were shared with places outside the workspace by hard"
    " links; {count:/it is a"
    " copy|they are copies} of the workspace's own now.",
    "policy.links_refused": "{count:file|files} of the workspace ({size}, in {folders}) are shared with places outside it by "
    "hard links: what a command writes there would change those as well. Put a copy of the folders in their place, or work "
    "in another folder.",
    "policy.auto_refused_because": "{words}. Why: {reasons}",
}
