"""Hooks: commands of the user at fixed points of a run."""

TEXTS = {
    # Reading files.
    "hooks.bad_file": "{place}: its hooks are not run: {reason}. Fix the file.",
    "hooks.bad_hook": "{place}: this hook is not run: {reason}. Fix it, or remove it.",
    "hooks.several_problems": "{first} ({more:more problem|more problems} in the same file.)",
    "hooks.no_equal": "{place}: hooks at {events} are not run: there is no such event here. docs/hooks.md lists those there are.",
    "hooks.not_a_table": "a table was expected",
    "hooks.not_a_list": "{event} must be a list",
    "hooks.not_text": "`{key}` must be text",
    "hooks.not_a_command": "its type is {kind}, and only commands are run",
    "hooks.has_if": "it has the condition `if`, which is not supported; use `matcher`, and check the rest in the command",
    "hooks.bad_timeout": "`timeout` must be a number above 0",
    "hooks.bad_matcher": "{place}: the matcher {matcher} is not used: it is no regular expression, or one that may take long",
    # Running.
    "hooks.message": "hook: {text}",
    "hooks.warning": "the hook {name} ({place}, {event}): {what}",
    "hooks.failed": "it failed with exit code {code}: {said}",
    "hooks.failed_silently": "it failed with exit code {code}",
    "hooks.timed_out": "it took too long and was ended; what it stands for went on without it",
    "hooks.too_long": "it printed too much, so its answer was not read",
    "hooks.not_json": "what it printed begins like JSON and is none, so it was not used",
    "hooks.odd_fields": "these fields of its answer have the wrong type or value and were not used: {names}",
    "hooks.not_started": "it could not be started: {reason}",
    "hooks.no_reason": "a hook of the user refused it, without a reason",
    "hooks.stopped": "a hook of the user ended the run",
    "hooks.prompt_refused": "a hook refused the prompt: {reason}",
    "hooks.continued_enough": "hooks had this run go on {count:time|times}: now it ends all the same",
    "hooks.needs_permission": "Dragoman needs your permission: {title}",
}
