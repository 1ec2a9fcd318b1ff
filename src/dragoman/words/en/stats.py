"""A session in numbers, and what a report of a fault says."""

TEXTS = {
    "stats.nothing": "no model was asked yet",
    "stats.head": "Session {id}: {prompts:prompt|prompts}, begun {begun}, {time} from first to last entry",
    "stats.of_model": "{model}: {requests:request|requests}, {cost}",
    "stats.tokens": "{fresh} fresh · {read} read from the cache · {written} written to it · {output} out",
    "stats.columns": "{count:column|columns}",
    "stats.all": "all",
    "stats.at_least": "≥ and ?: the service did not tell everything, or a price is not known",
    "stats.tool": "tool",
    "stats.calls": "calls",
    "stats.failed": "failed",
    "stats.time": "time",
    "stats.answering": "From requests to their answers: {time}",
    "stats.pruned": "{count:result|results} pruned, {tokens:token|tokens} by then",
    "stats.summaries": "{count:summary|summaries} of older messages",
    "stats.files": "{count:file|files} changed by tools",
    "stats.seconds": "{seconds} s",
    "stats.minutes": "{minutes} min",
    "stats.hours": "{hours} h",
    "stats.entries": "{count:entry|entries}",
    "stats.bug_head": "Copy this into your report, with what you did, what you expected and what happened instead. Nothing was "
    "sent, and nothing of the conversation, your files or your keys is in it.",
    "stats.bug_foot": "dragoman doctor tells more; /export writes the conversation to a file, if it shows the problem.",
}
