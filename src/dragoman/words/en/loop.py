"""The library: agents, their sessions and runs."""

TEXTS = {
    # --- agents and sessions
    "loop.discards_done": "uncommitted work was thrown away by a command: {names}. Copies were kept; an undo brings it back",
    "loop.discards_kept": "it throws away work that git does not hold: {names}. A copy is kept first; an undo brings it back",
    "loop.discards_lost": "it throws away work that git does not hold: {names}. It cannot be brought back: {reason}",
    "loop.lost_and_more": "{names} and {more} more ({count} in all)",
    "loop.lost_hidden": "{path} is hidden from commands, so no copy of it is kept",
    "loop.lost_ignored": "files that .gitignore names",
    "loop.lost_key": "{path} holds an API key, so no copy of it is kept",
    "loop.lost_not_ignored": "of ignored files no copies are kept",
    "loop.lost_not_saved": "this conversation is not saved",
    "loop.lost_stashes": "of stashes no copies are kept",
    "loop.lost_too_large": "{path} is too large, or no regular file",
    "loop.work_not_kept": "copies of uncommitted files cannot be kept before commands change them: {reason}",
    "loop.work_past_bounds": "not everything here can be brought back by an undo once a command has changed it: {what}. Commit it, or name "
    "it in .gitignore if it is not work",
    "loop.work_past_too_large": "{count:file that git does not hold is|files that git does not hold are} too large or too many "
    "to keep copies of, such as {path}",
    "loop.work_past_too_many": "the folder has more files than are looked at before a command",
    "loop.too_many_changed": "a command changed {count:file|files}: an undo knows the first {most} of them",
    "loop.not_a_provider": "{kind} is neither the name of a model nor a dragoman.Provider; name a model such as "
    "'anthropic/claude-sonnet-5-5', or inherit from that class and give an object of it",
    "loop.no_model": "no model is given, and there is no earlier conversation that used one; name a model",
    "loop.model_is_code": "this session used {model}, which is Python code to import; a log is not trusted with that: name the model "
    "yourself, as in Agent({model!r}, …)",
    "loop.resume_without_store": "a session is resumed from the store it is in: SessionOptions(store, resume=…)",
    "loop.key_alone": "a session is opened by its key in a store, and not together with `resume`: SessionOptions(store, key=…)",
    "loop.not_a_history": "this is not a history as History.to_json writes it: {reason}",
    "loop.search_needs_access": "this agent has no access to the web, so it has no tool to search with: "
    'give it ToolOptions(web=WebAccess()), or say search="grounding" for a model that searches by itself',
    "loop.grounding_needs_access": "this run cannot search by itself: {why}. An agent with access to the web searches with a tool "
    'instead: ToolOptions(web=WebAccess(search="grounding"))',
    "loop.grounding_by_tool": "{model} searches the web by calling google_web_search, and not by itself (grounding): {why}",
    "loop.grounding_by_nobody": "{model} does not search the web by itself (grounding), and there is nothing else that could: {why}",
    "loop.search_by_nobody": "nothing can search the web here: {model} cannot, and there is no other model or server that could. "
    "Choose a model that searches (gemini, anthropic, responses), or set web.search_model or web.searxng in the configuration",
    "loop.no_web_access": "this agent has no access to the web: ToolOptions(web=WebAccess()) gives it, web.search in the configuration too",
    "loop.nobody_searches": "nothing here can search the web: set the key of a service that can (GEMINI_API_KEY, ANTHROPIC_API_KEY, "
    "OPENAI_API_KEY or XAI_API_KEY), or name a model that searches or a SearXNG server",
    "loop.empty_query": "the query is empty: say what to search for",
    "loop.query_too_long": "the query is longer than allowed ({count} of {most} characters): ask more briefly",
    "loop.already_running": "this agent is already running; wait for it, cancel it, or make another agent",
    "loop.closed": "this agent is closed; make another one (one with the same session goes on with the conversation)",
    "loop.run_not_awaited": "a Run has no {name!r}: `await` it and take it from the Result, or use `agent.run_sync(…)`",
    "loop.run_never_begun": "a run was never begun, so the model was not asked: `await agent.run(…)`, or use `agent.run_sync(…)`",
    "loop.not_copied": "an Agent holds connections and a thread, so it cannot be copied or pickled: make another one; "
    "one with the same session goes on with the conversation",
    "loop.account_not_copied": "an Account is shared by the agents of one process and cannot be copied or pickled: give "
    "another process a Budget of its own",
    "loop.background_ended": "background command {id} ({command}) has ended: {how}",
    "loop.background_stopped": "stopped",
    "loop.background_timed_out": "its time was up",
    "loop.background_failed": "its output could not be read any more",
    "loop.background_signal": "by {signal}",
    "loop.background_exit": "exit code {code}",
    "loop.background_lost": "background command {id} ({command}) ended with the program when the session was closed",
    "loop.log_pruned": "pruned {results:result|results}, about {tokens:token|tokens} ({reason}); so far {all:result|results}, "
    "about {all_tokens:token|tokens}",
    "loop.results_wait": "{results:outdated result is|outdated results are} left out of the context {when}: {tokens:token|tokens}, "
    "{percent} of the request; agent.prune() leaves them out now",
    "loop.wait_share": "when they make up {limit} of the request, or when the prompt cache is cold",
    "loop.wait_cold": "when keeping them has cost as much as removing them, or when the prompt cache is cold",
    "loop.wait_prompt": "with the next prompt",
    "loop.prompt_taken_back": "the refused prompt is kept in the session and left out of what the model sees from here on",
    "loop.forked": "this agent's session belongs to process {pid}, from which this one was forked; make a new Agent here "
    "(Store.fork copies a conversation)",
    "loop.not_saved": "This session is NOT being saved: {reason}",
    "loop.was_not_saved": "This session is not saved completely: {reason}",
    "loop.files_not_saved": "Files of this session (images, documents, undo) are not saved completely: {reason}",
    "loop.entries_lost": "entries that can never be written: {count}",
    "loop.no_entry": "there is no entry {seq}; the last one is {last}",
    "loop.otel_missing": "traces need one more package: run pip install '.[otel]' in your clone of Dragoman",
    "loop.hook_tool_unknown": "a hook chose the tool {name}, which is not offered; offered are: {known}",
    "loop.hook_call_unknown": "a hook pruned the result of {call}, and no call in view has that id",
    "loop.hook_answer": "the hook {hook} returned {answer}; see dragoman.hooks.Hooks for what it may return",
    "loop.hook_failed": "the hook {hook} failed",
    "loop.not_a_directory": "{path} is not a directory; name one that exists",
    # --- options of an agent
    "loop.option_wrong": "{name} must be {expected}, not {given}",
    "loop.option_text": "a text",
    "loop.option_flag": "True or False",
    "loop.option_function": "a function",
    "loop.option_whole": "a whole number of at least {least}",
    "loop.option_number": "a number of at least {least:g}",
    "loop.option_above": "a number above {least:g}",
    "loop.option_between": "a number from {least:g} to {most:g}",
    "loop.option_choice": "one of {choices}",
    "loop.option_kind": "a {kind}",
    "loop.option_list": "a list or tuple",
    "loop.option_pair": "a pair of texts: the path of a file and what it says",
    "loop.option_approval": "one of {choices}, or ApprovalOptions(mode, ask) with a function to ask",
    "loop.option_agent": "an Agent",
    "loop.option_message": "a Message, such as dragoman.user(…) or dragoman.assistant(…), or a dict that is one for another API",
    "loop.option_messages": "a list of messages, such as [dragoman.user(…)]",
    "loop.option_servers": "names with their servers, such as dict(harbour=StdioServer(…))",
    "loop.option_folder": "the path of a folder",
    "loop.option_hooks": "dragoman.hooks.Hooks or a list of them",
    "loop.option_host": "the name of a host alone, such as example.org",
    "loop.option_rule": "a rule: dragoman.rules.allow(…), ask(…) or deny(…)",
    "loop.option_wrong_rule": "{name}: the rule {rule} cannot be used: {reason}",
    "loop.option_tool": "a tool: a function with @dragoman.tool, or an object with spec, intend and run",
    "loop.option_model": "the name of a model, or a dragoman.Provider",
    "loop.option_store": "a folder for sessions, a store (dragoman.stores), a History or SessionOptions",
    "loop.option_blobs": "a store with put and get",
    "loop.not_a_store": "{name}: {path} is a file; name a folder for sessions, or give SqliteStore(…) for one file of them",
    "loop.no_folder": "{name}: there is no folder {path}; make it, or name another",
    # --- MCP servers
    "loop.server_wrong": "the server {name} must be a dragoman.mcp.StdioServer or HttpServer, not {given}",
    "loop.server_failed": "the MCP server {name} cannot be used: {reason}",
    "loop.servers_not_open": "the tools of MCP servers are there inside the block: `async with Servers(…) as servers`, or `with` in code "
    "that is not async",
    "loop.servers_open_already": "these servers run already: open another Servers, or share this one; any thread may use it",
    "loop.servers_of_parent": "these servers belong to the process that opened them: open others after the fork",
    # --- prompts and requests
    "loop.calls_wait": "{calls} must be decided first: go on with agent.resume, where a Deny refuses a call; agent.rewind and agent.clear "
    "go back to before it",
    "loop.not_a_decision": "the decision about {id} is {given}; it must be an Allow or a Deny",
    "loop.not_a_result": "the result of {name} ({id}) is Later: leave it out until there is one",
    "loop.decided_and_answered": "{id} is given both a decision and a result",
    "loop.waits_for_result": "{name} ({id}) waits for its result, not for a decision: give it with results=",
    "loop.waits_for_decision": "{name} ({id}) waits for a decision, not for its result: give it with decisions=",
    "loop.decided_already": "{name} ({id}) was decided before; agent.resume without a decision about it runs it when its turn comes",
    "loop.call_over": "the call {id} is over: it waits no longer",
    "loop.call_not_open": "{call} is none of the calls that wait; chat.open_calls has them",
    "loop.call_unknown": "there is no call {id} that waits; agent.pending has those that do",
    "loop.calls_without_results": "these calls wait for their results: {calls}; send dm.tool_result(call, …) for each, "
    "or run them with chat.run_calls()",
    "loop.results_without_calls": "no call waits for these results: {results}; send a result once, under the id of its call",
    "loop.prompt_of_results": "a prompt holds the result of a call ({results}), but an agent carries its calls out itself; "
    "to carry them out yourself, send it with dragoman.chat.Chat",
    "loop.not_calls": "{given} holds something that is no call: give dragoman.ToolCall(id, name, arguments), as answer.calls has them",
    "loop.clock_behind": "this machine's clock says {now}, but the newest entry of this session is of {newest}: until the clock has caught "
    "up, nothing counts as outdated; set it right",
    "loop.turn_is_over": "a turn is iterated once; make another with chat.turn(…)",
    "loop.history_twice": "the session that is gone on with has a conversation already; give `history` to a new one, "
    "or call set_history to replace it",
    "loop.search_twice": "say how the web is searched once: in ToolOptions(web=WebAccess(search=…)), not with search=… as well",
    "loop.not_a_session": "this is no session: {given}; give a History, its entries, what store.read returns, or a ConversationRecord",
    "loop.not_a_record": "this is no ConversationRecord: give one with `messages`, a list of dicts with `type` (user or gemini) "
    "and `content`",
    "loop.empty_prompt": "the prompt is empty; say what you want",
    "loop.histories_depart": "this history begins as the conversation does and then says something else, from its message {number} on; "
    "nothing was added. Give only what follows the conversation, or put all of it in its place with set_history",
    "loop.nothing_to_continue": "there is nothing to continue; give a prompt",
    "loop.wrong_tool_name": "invalid tool name {name!r}: use 1–64 letters, digits, _ or -, starting with a letter or _",
    "loop.tool_name_twice": "two tools are called {name!r}; each name must be unique",
    "loop.nothing_to_send": "there is nothing to send; give a prompt, or at least one message with content",
    # --- how a run ends
    "loop.cancelled": "cancelled",
    "loop.turn_limit": "stopped after {turns:turn|turns}; say `go on` to continue, or allow more turns (max_turns)",
    "loop.spent_estimated": "{spent}, {estimated} of it by our own estimate, because the service did not tell it,",
    "loop.budget_exceeded": "stopped: the budget {name}={limit} is used up ({spent} spent); run again with a larger Budget to go on",
    "loop.budget_too_small": "stopped: {spent} of the budget {name}={limit} is spent, and what comes next takes at least {more}; run again "
    "with a larger Budget to go on",
    "loop.budget_without_price": "the prices of {model} are not known, so a budget in US dollars cannot be kept; give them in the model's "
    "profile (prices), or limit tokens instead (Budget.tokens)",
    "loop.output_invalid": "no answer fits {type}, in {times:try|tries}: {reason}; ask for a simpler type, or choose another model",
    "loop.going_in_circles": "stopped: the model keeps repeating itself ({what}); tell it what to do differently, or choose another model",
    "loop.too_many_hand_overs": "stopped: the conversation was handed over more than {count:time|times} in one run; give the agents fewer "
    "tools that hand it over, or allow more (max_hand_overs)",
    "loop.doubt_nothing_read": "not checked: no file was read and no command was run for this answer, so what {model} says is a guess",
    "loop.doubt_not_read": "not checked: {names} was not read, so what {model} says of it is a guess",
    "loop.doubt_names_only": "not checked: only the names of files were read, so what {model} says is a guess",
    "loop.doubt_not_run": "not checked: no command was run, so {model} cannot know",
    "loop.doubt_not_written": "nothing was written or changed, whatever {model} says",
    "loop.doubt_not_there": "not checked: nothing that was read says “{names}”; {model} may have made it up",
    "loop.cut": "the answer was cut at the output limit; say `go on` to continue, or raise settings.max_output_tokens",
    "loop.cut_before_use": "the answer was cut at the output limit before it said anything useful; ask for less at once, or raise "
    "settings.max_output_tokens",
    "loop.too_long": "the conversation has about {tokens:,} tokens, {model} takes {window:,}, and nothing more can be left out; start a "
    "new session, choose a model with a larger context window, or go back to an earlier point and ask for less at once",
    "loop.too_long_at_least": "the conversation has about {tokens:,} tokens; {model} takes {window:,}, and at least {least:,} would remain "
    "of it, whatever is left out. Nothing was sent or changed. Go on with a model with a larger context window, have the older "
    "messages of session {session} summarised by one (agent.compress), or start a new session",
    # --- another model goes on
    "loop.fallback_skipped": "{model} cannot go on in its place: {reason}",
    "loop.fallback_exhausted": "{message}; nor did any other model of the fallback answer: {tried}",
    # --- settings that are not sent
    "loop.setting_not_taken": "settings.{name} is not sent: {model} takes neither temperature nor top_p nor top_k",
    "loop.setting_of_unknown_model": "settings.{name} is not sent: {model} is not in the catalog, and models of its service may refuse it; "
    "if it takes it, set temperature = true in its row ([deployments])",
    "loop.setting_has_no_place": "settings.{name} is not sent: the service of {model} has no such setting, or not beside the others "
    "that are set",
    "loop.effort_not_taken": "settings.thinking = {effort} is not sent: {model} cannot be told how much to think",
    "loop.effort_not_with_tools": "settings.thinking = {effort} is not sent: {model} cannot be told how much to think while it has tools",
    "loop.always_thinks": "settings.thinking = {effort} is not sent: {model} always thinks, as much as it sees fit",
    "loop.thinking_not_off": "settings.thinking = off: {model} cannot do without thinking, and is asked to think as little as it can",
    "loop.other_effort": "settings.thinking = {effort} is sent as the next stronger one: {model} takes {efforts}",
    "loop.thinking_on_or_off": "settings.thinking = {effort} is sent as on: {model} can only be told to think or not to",
    "loop.no_think_not_sent": "{words} is not added to prompts: the service of {model} has a setting of its own for thinking",
    # --- summaries
    "loop.not_long_enough": "it is not long enough",
    "loop.nothing_to_sum_up": "there is nothing to summarise yet",
    "loop.all_summed_up": "everything so far is a summary already",
    "loop.too_little_to_sum_up": "too little could be summarised to matter",
    "loop.no_snapshot": "the model answered with no text",
    "loop.no_summary_in_answer": "instead of a summary the model wrote “{answer}”",
    "loop.no_more_summaries": "{reason}; after {count:useless summary|useless summaries} in a row no more are requested: old results are "
    "left out instead, and agent.compress still requests one",
    "loop.summary_cut": "the summary was cut at the output limit",
    "loop.summary_refused": "the summary was refused ({reason})",
    "loop.summary_too_long": "it would be {new:,} tokens, after {original:,}",
    # --- answers that cannot be used
    "loop.no_answer": "the stream ended without an answer",
    "loop.refused": "the answer was refused or filtered ({word}){why}; rephrase the prompt, or choose another model",
    "loop.not_in_context": "entry {seq} is not in the next request",
    "loop.no_result_there": "entry {seq} is not the result of a tool; only those can be dropped or kept",
    "loop.too_short_to_drop": "the result of entry {seq} is no longer than its placeholder",
    "loop.nothing_chosen": "nothing was chosen for entry {seq}, so there is nothing to undo",
    "loop.empty_answer": "the model gave an empty answer",
    "loop.empty_after_results": "the model gave an empty answer after its tools had returned",
    "loop.unreadable_call": "the model wrote a tool call that could not be read{detail}",
    "loop.oversized_call": "the model wrote a tool call that cannot be sent back to it ({detail})",
    "loop.invalid_answer": "{fault}; try again, or choose another model",
    "loop.invalid_answers": "{fault} {times:time|times}; try again, or choose another model",
    "loop.unreadable_calls": "the model wrote a tool call that could not be read {times:time|times}; say what it should do, or choose "
    "another model",
}
