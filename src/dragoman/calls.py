"""Calls without an agent: carrying them out, turning what a tool returned into a result, and reading calls that a model wrote as text."""

from dragoman.loop.call_scheduler import CallScheduler as CallScheduler
from dragoman.text_tools.calls import Call as Call
from dragoman.text_tools.calls import Parsed as Parsed
from dragoman.text_tools.parser import StreamParser as StreamParser
from dragoman.text_tools.reading import call_guidance as call_guidance
from dragoman.text_tools.reading import read_calls as read_calls
from dragoman.tools.declared import read_declarations as read_declarations
from dragoman.tools.job import CallReport as CallReport
from dragoman.tools.returned import function_response as function_response
