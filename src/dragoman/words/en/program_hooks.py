"""Hooks, and the question about what a project brings: what the program says of them."""

TEXTS = {
    "hooks_unasked": (
        "{count:hook of this project is|hooks of this project are} not run before you agree: see dragoman hooks, then dragoman hooks"
        " approve ({files})"
    ),
    "hooks_changed": "the hook {command} ({place}) was not run: it, or a file it runs, has changed since you agreed; see dragoman hooks",
    "offers_intro": "This project brings programs that run on your machine, with your rights and outside the sandbox:",
    "offers_intro_one": "This project brings a program that runs on your machine, with your rights and outside the sandbox:",
    "offers_server": "server {name}: {shown}  ({where})",
    "offers_hook": "hook at {event}: {shown}  ({where})",
    "offers_files": "it runs: {names}",
    "offers_unknown": "what it runs of {names} cannot be known: you are asked again whenever code there has changed",
    "offers_too_much": "it may run more files than can be looked through: you are asked again at every start",
    "offers_more": "and {count} more, not part of this question: see dragoman mcp and dragoman hooks",
    "offers_question": "Use all of them?   y yes   n no   e one by one   ? why",
    "offers_question_one": "Use it?   y yes   n no   ? why",
    "offers_said_each": "one by one",
    "offers_used": "used",
    "offers_not_used": "not used",
    "offers_why": "A server is a program or a service that the model's calls go to; each call is asked about as before, unless you "
    "allow it. A hook is a command that runs at a fixed point, unasked.\n"
    "Your answer is remembered until one of them changes. /mcp approve and /hooks approve approve them later.",
    "offers_not_saved": "Your answer about servers and hooks could not be saved: {reason}",
    "hooks_none": "There are no hooks. docs/extend/hooks.md says where they are read.",
    "hooks_state_runs": "runs",
    "hooks_state_unasked": "not run: agree with dragoman hooks approve",
    "hooks_state_refused": "not run: you said no",
    "hooks_legend": "A project's hooks run after you agree to them: dragoman hooks approve. Try one: dragoman hooks test EVENT [TOOL].",
    "hooks_approved": "These run from now on, until they or the files they run change:",
    "hooks_nothing_to_approve": "There is nothing to approve: every hook of this project is approved, or there are none.",
    "hooks_revoked": "These no longer run:",
    "hooks_no_such": "there is no hook {id}; dragoman hooks lists them",
    "hooks_file_unwritable": "{path} cannot be written: {reason}",
    "hooks_test_what": "name an event: {events}",
    "hooks_tested_none": "No hook matches {event} {subject}.",
    "hooks_tested": "{place}  {command}\n  exit code {code}, {ms} ms",
    "hooks_tested_not_run": "{place}  {command}\n  not run",
    "hooks_slash_usage": "/hooks, /hooks approve",
    "hooks_config_title": "Hooks:",
}
