"""Log formats of the server: JSON lines, which no client input can forge, or short lines."""

from __future__ import annotations

import json
import logging
import os
import sys
from logging.handlers import SysLogHandler
from typing import TextIO

from fairbank.core.time import iso
from fairbank.service.settings import LogFormat

SYSLOG_SOCKET = "/dev/log"


class JsonLines(logging.Formatter):
    """One JSON object per record; the record's `facts` become fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": iso(int(record.created)),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        # All of it is printable ASCII.
        return json.dumps(line, separators=(",", ":"), default=str).replace("\x7f", "\\u007f")


class ShortLines(logging.Formatter):
    """Lines for a terminal: local time, level, message, and a trace below it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(_printable, super().format(record).split("\n")))


class SyslogLines(logging.Formatter):
    """One line for each record; it has the last line of a trace only."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}: {self.formatException(record.exc_info).rpartition(chr(10))[2]}"
        return _printable(text)


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


class _LogFile(logging.StreamHandler[TextIO]):
    """Log file, or a terminal."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  a name of logging
        """Drop a record for which the disk has no space: a trace would go there, too."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _Syslog(SysLogHandler):
    """Syslog of this host, by the severity of each record."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  a name of logging
        """Drop the record: there is no syslog daemon, and the log file has it."""


class ConnectionLog(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log of one connection; each line names its peer."""

    def __init__(self, logger: logging.Logger, **facts: object) -> None:
        super().__init__(logger, {"facts": facts})

    @property
    def level(self) -> int:
        """The level, which uvicorn reads."""
        return self.logger.level


def set_debug_levels(level: str, syslog: str, *, daemon: str, address: str = SYSLOG_SOCKET) -> None:
    """Set what the log of `log_to` has, and what goes to syslog.

    Args:
        level: Slurm's word for the level of the log.
        syslog: Slurm's word for the level of syslog; `quiet`: nothing goes there.
        daemon: name of the daemon in syslog.
        address: socket of syslog.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Syslog):
            root.removeHandler(handler)
            handler.close()
        else:
            handler.setLevel(_level(level))
    if syslog != "quiet":
        sender = _Syslog(address, SysLogHandler.LOG_DAEMON)
        sender.ident = f"{daemon}[{os.getpid()}]: "
        sender.setFormatter(SyslogLines())
        sender.setLevel(_level(syslog))
        root.addHandler(sender)
    root.setLevel(min((handler.level for handler in root.handlers), default=root.level))


def set_debug_level(level: str) -> None:
    """Set what the log of `log_to` has until the next start; syslog stays. (Slurm's word.)"""
    root = logging.getLogger()
    for handler in root.handlers:
        if not isinstance(handler, _Syslog):
            handler.setLevel(_level(level))
    root.setLevel(min((handler.level for handler in root.handlers), default=root.level))


def _level(word: str) -> int:
    """Return Python's level for one of Slurm's, which has no warnings: info includes them."""
    if word.startswith("debug"):
        return logging.DEBUG
    others = {"quiet": logging.CRITICAL + 10, "fatal": logging.CRITICAL, "error": logging.ERROR}
    return others.get(word, logging.INFO)


def log_to(stream: TextIO, form: LogFormat = LogFormat.JSON) -> None:
    """Send all log records to `stream`; with AUTO on a terminal, only warnings and errors."""
    is_terminal = form is LogFormat.AUTO and stream.isatty()
    handler = _LogFile(stream)
    handler.setFormatter(ShortLines() if is_terminal or form is LogFormat.SHORT else JsonLines())
    logging.basicConfig(
        handlers=[handler], level=logging.WARNING if is_terminal else logging.INFO, force=True
    )
    # Its warnings are about pipelines that a lost connection ended; the store logs those itself.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    # Its errors are tracebacks about cleaning up such connections.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
