"""`--debug`: what the rooms log, on standard error, without secrets."""

from __future__ import annotations

import logging
import sys

from dragoman.providers.redact import Secrets, redact


class _Redacting(logging.Formatter):
    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._secrets)


def log_to_stderr(secrets: Secrets) -> None:
    """Everything of ours, from now on. Called again, it goes by the new secrets."""
    logger = logging.getLogger("dragoman")
    for handler in list(logger.handlers):
        if isinstance(handler.formatter, _Redacting):
            logger.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting(secrets))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def print_traceback(error: BaseException) -> None:
    import traceback

    sys.stderr.write(redact("".join(traceback.format_exception(error))))
