"""Hooks: what the program says of them, and asks."""

TEXTS = {
    "hooks_unasked": (
        "{count:hook of this project is|hooks of this project are} not run before you agree: see dragoman hooks, then dragoman hooks"
        " approve ({files})"
    ),
    "hooks_changed": "the hook {command} ({place}) was not run: it, or a file it runs, has changed since you agreed; see dragoman hooks",
    "hooks_question_intro": "This project has hooks: commands that run on your machine at fixed points, unasked and outside the sandbox.",
    "hooks_question": "Run them? y/n (what you say is remembered, until one of them changes):",
    "hooks_not_saved": "What you said about hooks could not be saved: {reason}",
    "hooks_none": "There are no hooks. docs/hooks.md says where they are read.",
    "hooks_state_runs": "runs",
    "hooks_state_unasked": "not run: agree with dragoman hooks approve",
    "hooks_state_refused": "not run: you said no",
    "hooks_legend": "A project's hooks run after you agree to them: dragoman hooks approve. Try one: dragoman hooks test EVENT [TOOL].",
    "hooks_approved": "These run from now on, until they or the files they run change:",
    "hooks_nothing_to_approve": "There is nothing to agree to: every hook of this project has your yes, or there is none.",
    "hooks_revoked": "These are not run any more:",
    "hooks_no_such": "there is no hook {id}; dragoman hooks lists them",
    "hooks_file_unwritable": "{path} cannot be written: {reason}",
    "hooks_unknown_action": "there is no action {name}{hint}; there are list, approve, revoke and test",
    "hooks_test_what": "name an event: {events}",
    "hooks_tested_none": "No hook fits {event} {subject}.",
    "hooks_tested": "{place}  {command}\n  exit code {code}, {ms} ms",
    "hooks_tested_not_run": "{place}  {command}\n  not run",
    "hooks_slash_usage": "/hooks, /hooks approve",
    "hooks_config_title": "Hooks:",
}
