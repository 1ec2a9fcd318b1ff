"""Sentences of the library whose remedy is another one in the program."""

TEXTS = {
    "sessions.not_found": "there is no session {session}; `dragoman sessions list` shows all sessions",
    "sessions.not_a_session": "{name} is not a session; `dragoman sessions list` shows all sessions",
    "sessions.no_number": "there is no session {session}: sessions have ids and no numbers; `dragoman sessions list` shows them",
    "sessions.not_a_choice": "{session} is not a session; give `latest`, or at least four characters of an id (`dragoman sessions list` "
    "shows them)",
    "sessions.not_an_id": "{name} is not a session id; ids look like 20261115-120102-1a2b3c4d (`dragoman sessions list` shows them)",
    "loop.no_more_summaries": "{reason}; after {count:useless summary|useless summaries} in a row no more are requested: old results are "
    "left out instead, and /compress still requests one",
    "loop.results_wait": "{results:outdated result is|outdated results are} left out of what the model sees {when}: {tokens:token|tokens}, "
    "{percent} of the request (`dragoman context` shows it; `dragoman context prune`, or /context prune in the conversation, does it now)",
    "loop.model_is_code": "this session used {model}, which is Python code to import; a session's file is not trusted with that: name the "
    "model yourself with -m",
    "sessions.none_here": "this folder has no session to resume yet; start a new one (`dragoman sessions list` shows all sessions)",
    "sessions.undo_refused_force": "nothing was undone: {conflicts}{more} (/undo --force undoes it anyway; what it overwrites is kept "
    "with the session)",
    "sessions.redo_refused_force": "nothing was redone: {conflicts}{more} (/redo --force redoes it anyway; what it overwrites is kept "
    "with the session)",
    "sessions.in_use": "session {session} is in use by {who}; end that one first, look at the session with `dragoman sessions show "
    "{session}`, or continue in a copy with `dragoman sessions fork {session}`",
    "sessions.not_writable": "{path} cannot be written ({reason}); `dragoman sessions show` reads it, `dragoman sessions fork` copies it",
    "sessions.replaced": "{path} was deleted or replaced while it was being opened; `dragoman sessions list` shows all sessions",
    "sessions.belongs_to_other": "{path} belongs to another user (id {owner}), so it is only read; `dragoman sessions fork` copies it",
    "sessions.id_taken": "session {session} exists already; `dragoman sessions list` shows all sessions",
    "local.no_weights": "the weights of {model} are not on this machine; run dragoman models pull {model}, or name a file, as "
    "local//path/to/model.gguf",
    "http.proxy_kind_socks": "; for SOCKS, run pip install '.[httpx]' in your clone of Dragoman "
    'and set client = "httpx" under [http] in the configuration',
    "http.httpx_missing": "[http] client = \"httpx\" needs one more package: run pip install '.[httpx]' in your clone of Dragoman",
    "providers.no_key": "no key for {title}; set {names}, or store one with: dragoman auth add {name}",
    "providers.keys_damaged": "{path} is damaged, so no stored key can be used; delete it, and store the keys again with dragoman auth add",
    "providers.keyring_closed": "the key of {service} is in the system's keyring, which cannot be used ({reason}); store it again with "
    "dragoman auth add {service}",
    "providers.keyring_lost": "the key of {service} is no longer in the system's keyring; store it again with dragoman auth add {service}",
    "loop.calls_wait": "{calls} must be decided first, by the program that began this session; `dragoman sessions fork` copies it up to an "
    "entry before, and `/clear` starts afresh",
    "policy.auto_without_sandbox": "the mode auto runs commands without asking, and only in a sandbox; there is none here (dragoman "
    "doctor says why): use --approval auto-edit, and name further commands with --allow (docs/configure/rules.md); if a container or VM is "
    "the boundary: --sandbox external (docs/operate/ci.md)",
    "policy.sandbox_off_for_now": "turned off for this session; /sandbox on turns it on again",
    "loop.budget_exceeded": "stopped: the budget {name}={limit} of a run is used up ({spent} spent); say `go on` to continue with a new "
    "one, or raise budget.{name} in config.toml",
    "loop.budget_too_small": "stopped: {spent} of the budget {name}={limit} of a run is spent, and what comes next takes at least {more}; "
    "say `go on` to continue with a new one, or raise budget.{name} in config.toml",
    "loop.budget_without_price": "the prices of {model} are not known, so budget.usd cannot be kept; set them in its row of "
    "config.toml ([deployments.NAME.models.MODEL] prices), or set budget.tokens in its place",
    "loop.too_long_at_least": "the conversation has about {tokens:,} tokens; {model} takes {window:,}, and at least {least:,} would remain "
    "of it, whatever is left out. Nothing was sent or changed. Go on with a model with a larger context window, have the older "
    "messages summarised by one (dragoman context compress {session}), or start a new session",
    "tools.listens": "{id} listens on port {port} inside the sandbox. /sandbox port {port} opens it to your browser.",
    "tools.outside_remedy": "ask the user to start with --include DIR",
    "mcp_auth.sign_in_needed": "nobody is signed in to {name}, or the sign-in has ended; sign in with: dragoman mcp login {name}",
}
