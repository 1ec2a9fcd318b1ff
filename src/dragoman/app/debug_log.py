"""`--debug`: our log records on standard error, with secrets redacted."""

from __future__ import annotations

import logging
import sys
import traceback

from dragoman.base.visible import escape_hidden
from dragoman.providers.redact import Secrets, known_secrets, redact


class _RedactingFormatter(logging.Formatter):
    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return escape_hidden(redact(super().format(record), self.secrets))


def log_to_stderr(secrets: Secrets) -> None:
    """Log everything of ours from now on. A second call replaces the secrets."""
    logger = logging.getLogger("dragoman")
    for handler in list(logger.handlers):
        if isinstance(handler.formatter, _RedactingFormatter):
            logger.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_RedactingFormatter(secrets))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def print_traceback(error: BaseException) -> None:
    """Without the secrets that the log is kept free of: what an error was caused by may hold one."""
    formatters = [handler.formatter for handler in logging.getLogger("dragoman").handlers]
    known = [secret for each in formatters if isinstance(each, _RedactingFormatter) for secret in known_secrets(each.secrets)]
    sys.stderr.write(escape_hidden(redact("".join(traceback.format_exception(error)), known)))
