"""Outdated results, given by a program that uses the library."""

TEXTS = {
    "context.clock_behind": "{count:result is|results are} dated later than now, the first in message {place}: the clock went back, or "
    "now_ms is too small; they stay as they are, set it right",
    "context.foreign_result": "message {place} holds a {found}, as another API writes it; give a result as a message of its own: "
    "{{'role': 'tool', 'content': '…', 'timestamp': …}}",
    "context.log_simplified": "replaced {count:outdated command result|outdated command results} in a copy of {messages:message|messages}",
    "context.not_a_result": "result {place} is a {kind}; give a mapping or an object with tool, timestamp_ms and content, or a "
    "message with role, timestamp and content",
    "context.not_a_message": "message {place} is {given}; give dicts with role, content and, of tools, timestamp in milliseconds "
    "(a conversation of Dragoman's own is pruned with agent.prune())",
    "context.not_messages": "messages is {given}; give a list of dicts with role, content and, of tools, timestamp in milliseconds",
    "context.time_in_seconds": "the timestamp of message {place} is {timestamp:g}, and now is {now:g}: one of them looks like seconds; "
    "give both in milliseconds since 1970",
    "context.time_in_words": "the timestamp of message {place} is the text {timestamp}; give a number, in milliseconds since 1970",
    "context.time_unusable": "now_ms is {now}; give the time in milliseconds since 1970, or leave it out",
}
