"""Calls without an agent: carrying them out, turning what a tool returned into a result, and reading calls that a model wrote as text."""

from dragoman.loop.call_scheduler import CallScheduler
from dragoman.text_tools.calls import Call, Parsed
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.reading import call_guidance, read_calls
from dragoman.tools.declared import read_declarations
from dragoman.tools.job import CallReport
from dragoman.tools.returned import function_response

__all__ = [
    "Call",
    "CallReport",
    "CallScheduler",
    "Parsed",
    "StreamParser",
    "call_guidance",
    "function_response",
    "read_calls",
    "read_declarations",
]
