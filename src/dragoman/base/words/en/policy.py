"""The library: who may run what."""

TEXTS = {
    "policy.ask_failed": "the function that is asked for approval (ask) failed, so {tool} was not run",
    "policy.ask_answer": "ask returned {answer}; it must return an Allow, a Deny or a Later",
}
