"""The library: registering, discovering and calling tools. What the model is told is not here."""

TEXTS = {
    # --- tools of installed packages
    "tools.not_installed": "the tool {name} cannot be loaded: {reason}",
    "tools.not_a_tool": "{name} is a {kind}; a tool is a function, or an object with spec, intend and run",
    # --- what the model may ask the user for
    "tools.outside_remedy": "ask the user to let you work in that directory too",
    # --- commands that ran with the workspace read-only
    "tools.refused_to_write": "it ran with the workspace read-only and needs to write: {line}",
    # --- registering tools
    "tools.unknown_builtin": "there is no built-in tool called {name!r}; choose from {known}",
    "tools.not_a_declaration": 'this declares no tool: {given}; write {{"name": …, "description": …, "parameters": {{…}}}}, or a ToolSpec',
    "tools.search_is_no_tool": "{given} is the service's own search and no tool that is declared; write search='grounding' instead, "
    "or settings=Settings(search=True) for a single request",
    "tools.wrong_name": "invalid tool name {name!r}: use 1–64 letters, digits, _ or -, starting with a letter or _",
    "tools.name_taken": "there is already a tool called {name!r}; give it another name, or pass replace=True",
    "tools.parameters_not_json": "the parameters of tool {name!r} are not JSON: {reason}",
    "tools.parameters_not_a_schema": "the parameters of tool {name!r} must be a JSON Schema object",
    # --- functions as tools
    "tools.function_without_name": "{function} has no name that a tool could have; pass name=…",
    "tools.function_signature": "the signature of {name} cannot be read ({reason}); wrap it in a function of your own",
    "tools.schema_not_object": "the parameters of {name} are not a JSON Schema of an object: {given}; "
    "give {{'type': 'object', 'properties': {{…}}}}",
    "tools.schema_not_json": "the parameters of {name} cannot be written as JSON: {reason}",
    "tools.schema_unknown": "the parameters of {name} name {fields}, which the function does not take; add it, or take **arguments",
    "tools.schema_missing": "{name} needs {fields}, which its parameters do not require; list it under required, or give it a default",
    "tools.function_variadic": "{name} takes *{parameter}, but a model needs each parameter by name; wrap it in a function of your own",
    "tools.function_parameters": "the parameters of {name} cannot be described to a model: {reason}",
    "tools.function_annotations": "the annotations of {name} cannot be read: {reason}",
    "tools.function_timeout": "timeout_s of {name} is {given!r}; give the seconds it may take, more than 0",
    "tools.function_contexts": "{name} takes a ToolContext twice ({parameters}); one is enough",
    "tools.media_outside": "it returned an image or a file, and outside a run there is no session that could keep it",
    # --- tools of another program
    "tools.discovery_two_commands": "discovering tools needs two commands: one that lists them and one that calls them",
    "tools.discovery_not_run": "the tool discovery command {command!r} cannot be run: {reason}",
    "tools.discovery_failed": "the tool discovery command {command!r} failed: {reason}{detail}",
    "tools.discovery_exit_code": "it ended with exit code {code}",
    "tools.discovery_too_long": "the tool discovery command {command!r} printed more than {most:,} bytes",
    "tools.discovery_not_json": "the tool discovery command {command!r} did not print JSON ({reason}); it must print a list of "
    "declarations, and anything else to stderr. Its output began: {output!r}",
    "tools.discovery_bad_tool": "the tool discovery command {command!r} declared a tool that cannot be used: {reason}",
    "tools.discovery_no_name": "the tool discovery command {command!r} declared something without a name: {declaration}",
    "tools.discovery_not_a_schema": "the tool discovery command {command!r} declared {name!r} with parameters that are not a JSON "
    "Schema object",
    # --- searching the web
    "tools.search_refused": "the service refused to answer: {reason}",
    "tools.searxng_timeout": "no answer within {seconds:.0f} s",
    "tools.searxng_no_json": "the server does not serve JSON; add `json` to `search.formats` in its settings",
    "tools.searxng_failed": "the server did not search",
    "tools.searxng_not_json": "the server's answer is not JSON",
    "tools.searxng_too_long": "the answer is longer than {most} MB",
    # --- what each does, for people: the model has its own description
    "tools.about_read_file": "reads a text file, an image or a PDF",
    "tools.about_read_many_files": "reads several text files at once",
    "tools.about_list_directory": "lists a directory",
    "tools.about_glob": "finds files by name, the newest first",
    "tools.about_grep": "searches the lines of files with a regular expression",
    "tools.about_edit": "replaces text in a file that has been read",
    "tools.about_write_file": "writes a whole file",
    "tools.about_run_shell": "runs a command",
    "tools.about_shell_output": "reads what a background command has printed",
    "tools.about_todo": "keeps a list of the steps of a longer task",
    "tools.about_ask_user": "asks you a question and waits for the answer",
    "tools.about_save_memory": "remembers a fact for all later sessions",
    "tools.about_google_web_search": "searches the web",
    "tools.about_web_fetch": "fetches a public web page",
    "tools.about_task": "has a subagent do a part of the work",
    "tools.about_activate_skill": "reads a skill's instructions",
    "tools.not_looked_at": "The command has ended, and what it left behind could not be looked at: {reason}",
    "tools.listens": "{id} listens on port {port} inside the sandbox",
}
