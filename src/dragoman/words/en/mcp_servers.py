"""MCP servers: how they are configured, agreed to and used."""

TEXTS = {
    # What is wrong in a file that configures servers.
    "mcp_servers.wrong_file": "{where}: its MCP servers are not used: {reason}. Fix the file.",
    "mcp_servers.wrong_entry": "{where}: the MCP server {name} is not used: {reason}",
    "mcp_servers.name_taken": "{where}: the MCP server {name} is not used: your own in {taken} has that name",
    "mcp_servers.not_a_table": "expected a table of servers by name",
    "mcp_servers.wrong_name": "its name is empty, longer than 100 characters, or has invisible characters",
    "mcp_servers.wrong_kind": "{key} has to be {kind}",
    "mcp_servers.kind_text": "a text",
    "mcp_servers.kind_texts": "a list of texts",
    "mcp_servers.kind_flag": "true or false",
    "mcp_servers.kind_table": "a table of names and texts",
    "mcp_servers.kind_time": "a number above 0",
    "mcp_servers.wrong_transport": "transport is {name}; it has to be http or sse",
    "mcp_servers.wrong_url": "url is {url}; it has to begin with http:// or https://",
    "mcp_servers.no_command": "it has neither a command nor a url",
    "mcp_servers.not_set": "the variable {name} is not set",
    "mcp_servers.own_key": "the variable {name} holds a key for a model, which a project's file may not use",
    "mcp_servers.headers_by_command": "a command gives its headers ({key}), and such commands are not run here; "
    "use dragoman mcp add with --header",
    "mcp_servers.no_files_for_projects": "a project's file may not have {path} read into it",
    "mcp_servers.file_unreadable": "{path} cannot be read ({reason})",
    # Servers of projects need a yes.
    "mcp_servers.several_wrong": "{path}: {count:MCP server is|MCP servers are} not used: {names}",
    "mcp_servers.several_unasked": "{path}: {count:MCP server is|MCP servers are} not used before you agree: {names}. "
    "See dragoman mcp, then dragoman mcp approve NAME.",
    "mcp_servers.not_approved_unasked": "the MCP server {name} ({where}) is not used: approve it with dragoman mcp approve {name}",
    "mcp_servers.not_approved_changed": "the MCP server {name} ({where}) is not used, because its command, environment or address has "
    "changed, or a file of the project that it runs: look at it with dragoman mcp get {name}, and approve it with dragoman mcp approve "
    "{name}",
    "mcp_servers.not_approved_tools_changed": "the MCP server {name} ({where}) is not used, because it describes its tools "
    "differently than when you approved it: look at them with dragoman mcp get {name}, and approve it with dragoman mcp approve {name}",
    "mcp_servers.question_changed": "(You approved it before; since then its command, environment or URL has changed, "
    "or a file of the project that it runs.)",
    "mcp_servers.question_tools_changed": "(You approved it before; since then it describes its tools differently.)",
    "mcp_servers.question_env": "It is given: {names}",
    "mcp_servers.question_takes": "It gets the values of your variables {names}",
    # At work.
    "mcp_servers.too_slow": "{server} did not answer within {seconds:g} s",
    "mcp_servers.not_learnt": "the tools of the MCP server {name} are not known, so the model does not have them: {reason}",
    "mcp_servers.joined": "the MCP server {name} is ready: {count:tool is|tools are} added at the next prompt",
    "mcp_servers.started_again": "the MCP server {server} had ended, and was started again",
    "mcp_servers.died_in_call": "the MCP server {server} ended during this call ({reason}). Whether the call took effect is not known; "
    "the server is started again for the next call",
    "mcp_servers.died_again": "the MCP server {server} has ended a second time, and is not started again in this conversation",
    "mcp_servers.tool_is_gone": "{name} can no longer be called: its MCP server is not configured, or not approved",
    "mcp_servers.no_such_prompt": "no MCP server has a prompt called {name}",
    "mcp_servers.prompt_needs": "the prompt {name} needs {missing}: write /{name} with the values in this order, or as name=value",
    "mcp_servers.resource_failed": "@{name} was left as it is: {reason}",
    # Questions of servers.
    "mcp_servers.asks_page": "The MCP server {server} asks you to open a page: {message}\n"
    "{url}\n"
    "It was not opened for you: look at the address first.",
    "mcp_servers.page_opened": "I have done it",
    "mcp_servers.asks_form": "The MCP server {server} asks you for {count:answer|answers}: {message}",
    "mcp_servers.accepts": "answer",
    "mcp_servers.declines": "decline",
    "mcp_servers.asks_field": "{name}{about}{hint}",
    "mcp_servers.field_optional": " (may be left empty)",
    "mcp_servers.field_wrong": "{answer} does not fit {name}, which must be of type {kind}",
    "mcp_servers.yes": "yes",
    "mcp_servers.no": "no",
    # dragoman mcp
    "mcp_servers.needs_name": "mcp {action} needs the name of a server",
    "mcp_servers.too_many_words": "unexpected argument {word} for dragoman mcp {action}",
    "mcp_servers.no_such_server": "no MCP server is called {name}{hint}; dragoman mcp list shows all",
    "mcp_servers.none": "No MCP servers are configured. dragoman mcp add NAME -- COMMAND … adds one; docs/extend/mcp.md says which files "
    "are read.",
    "mcp_servers.row_disabled": "switched off",
    "mcp_servers.row_problem": "cannot be used: {problem}",
    "mcp_servers.row_no": "you said no (dragoman mcp approve {name})",
    "mcp_servers.row_unasked": "waits for your approval (dragoman mcp approve {name})",
    "mcp_servers.row_changed": "changed since you approved it (dragoman mcp approve {name})",
    "mcp_servers.row_tools_changed": "describes other tools than when you approved it (dragoman mcp approve {name})",
    "mcp_servers.row_known": "{count:tool|tools}, about {tokens:token|tokens}",
    "mcp_servers.row_unknown": "its tools are not known yet (dragoman mcp test {name})",
    "mcp_servers.row_started": "started",
    "mcp_servers.row_newer": "its list has changed: the next conversation uses it",
    "mcp_servers.added": "added {name} to {path}",
    "mcp_servers.add_usage": "mcp add needs a name and a command or a URL: dragoman mcp add NAME -- COMMAND ARGUMENT …, or dragoman mcp "
    "add NAME https://…",
    "mcp_servers.wrong_variable": "{text} is not NAME=VALUE",
    "mcp_servers.wrong_header": "{text} is not NAME: VALUE",
    "mcp_servers.exists": "{path} has a server called {name} already; dragoman mcp remove {name} first",
    "mcp_servers.bad_name": "invalid name for a server: {name}; use at most 60 letters, digits, - and _",
    "mcp_servers.removed": "removed {name} from {path}",
    "mcp_servers.not_ours": "{name} is configured in {where}, which belongs to another program: remove it there, or switch it off with "
    "[mcp.servers.{name}] and enabled = false in {path}",
    "mcp_servers.not_removed": "{name} could not be removed from {path}, which is not written plainly enough: remove it there by hand",
    "mcp_servers.file_unwritable": "{path} cannot be changed ({reason})",
    "mcp_servers.tested": "{name} works: {tools:tool|tools}, {prompts:prompt|prompts}, {resources:resource|resources} ({era}, protocol "
    "{protocol})",
    "mcp_servers.added_but": "it does not work yet: {reason}",
    "mcp_servers.approved": "approved: {name} ({shown})",
    "mcp_servers.already": "{name} needs no approval: it is configured in your own {where}",
    "mcp_servers.config_heading": "MCP servers",
    "mcp_servers.slash_usage": "/mcp, /mcp approve NAME",
}
