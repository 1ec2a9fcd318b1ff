"""Strict request validators: would the real service accept this request, and if not, what would it answer?

They are an oracle independent of the protocol modules and share no code with them: their rules come from the services' documentation,
their SDKs' types, and error messages that users have reported.
"""

from __future__ import annotations

from dragoman.testing.mock.validate_anthropic import validate_anthropic
from dragoman.testing.mock.validate_chat import validate_chat
from dragoman.testing.mock.validate_gemini import validate_gemini
from dragoman.testing.mock.validate_responses import validate_responses
from dragoman.testing.mock.violation import Json, Rules, Violation, fingerprint, refused_setting
from dragoman.values.profile import ProtocolName

__all__ = ["Rules", "Violation", "fingerprint", "validate"]

_VALIDATORS = {
    "anthropic": validate_anthropic,
    "openai_chat": validate_chat,
    "openai_responses": validate_responses,
    "gemini": validate_gemini,
}
_DEFAULT_RULES = Rules()


def validate(protocol: ProtocolName, body: Json, rules: Rules = _DEFAULT_RULES) -> Violation | None:
    """The first violation in a decoded request body, or None if the service would accept it. Never raises on any JSON object."""
    return refused_setting(body, rules) or _VALIDATORS[protocol](body, rules)
