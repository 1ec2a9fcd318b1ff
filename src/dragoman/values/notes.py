"""What the program itself says to the model, between what a person says and what tools return.

These messages stand in the record like a person's. Each begins as one of those here, so that nobody takes it for a prompt.
"""

from __future__ import annotations

from dragoman.values.messages import Message

GREETING = "This is Dragoman. We are setting up the context for our chat."
"""How the first message begins, which tells the model where it is."""
CHANGED_BEGINS = "This is Dragoman. Something in the context of our chat has changed:"
"""How a later one begins that tells what is different."""
CUT_NOTE = (
    "Your last answer was cut off at the output limit. None of its tool calls was run. "
    "Do it in smaller parts: write long files piece by piece, and make fewer calls at once."
)
MALFORMED_NOTE = "Your last answer held a tool call that could not be read ({detail}). It was not run. Write the call again, correctly."
FEEDBACK_BEGINS = "A tool call in your last answer could not be read"
ANSWER_NOTE = "Answer my question now, in a short sentence, from what the tools have returned. Do not call a tool."
"""The question itself is not said again where calls can be written: small models take it for a new one, and call once more."""
ASKED_AGAIN = "My question was: "
LOOP_NOTE = "You seem to be going in circles: {what}. Stop and think: take another way, or answer with what you have."

_SETUP = (GREETING, CHANGED_BEGINS)
_SAID = (FEEDBACK_BEGINS, ANSWER_NOTE, ASKED_AGAIN, LOOP_NOTE, CUT_NOTE, MALFORMED_NOTE, CHANGED_BEGINS)
_NOTES = tuple(text.partition("{")[0] for text in _SAID)


def is_setup(text: str) -> bool:
    """Whether a message tells of the surroundings."""
    return text.startswith(_SETUP)


def is_note(message: Message) -> bool:
    """Whether the program said this in a conversation that is under way: no person asked for anything."""
    return message.role == "user" and message.text.startswith(_NOTES)
