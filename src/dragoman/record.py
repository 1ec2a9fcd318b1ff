"""The record: every kind of entry, and reading and writing them."""

from dragoman.values.record import About as About
from dragoman.values.record import AnswerRejected as AnswerRejected
from dragoman.values.record import Compressed as Compressed
from dragoman.values.record import Configured as Configured
from dragoman.values.record import Entry as Entry
from dragoman.values.record import FieldRefused as FieldRefused
from dragoman.values.record import FileChange as FileChange
from dragoman.values.record import FilesChanged as FilesChanged
from dragoman.values.record import FilesRestored as FilesRestored
from dragoman.values.record import ModelChanged as ModelChanged
from dragoman.values.record import NotCompressed as NotCompressed
from dragoman.values.record import Pruned as Pruned
from dragoman.values.record import Rewound as Rewound
from dragoman.values.record import Said as Said
from dragoman.values.record import Speaker as Speaker
from dragoman.values.record import Spent as Spent
from dragoman.values.record import Started as Started
from dragoman.values.record import Titled as Titled
from dragoman.values.record import ToolDecided as ToolDecided
from dragoman.values.record import ToolFinished as ToolFinished
from dragoman.values.record import ToolOutcome as ToolOutcome
from dragoman.values.record import ToolPostponed as ToolPostponed
from dragoman.values.record import ToolStarted as ToolStarted
from dragoman.values.record import Unknown as Unknown
from dragoman.values.record import decode_entry as decode_entry
from dragoman.values.record import encode_entry as encode_entry
