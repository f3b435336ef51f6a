"""Log formats of the server: JSON lines, which no client input can forge, or short lines."""

from __future__ import annotations

import json
import logging
from typing import TextIO

from fairbank.core.time import iso
from fairbank.service.settings import LogFormat


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
        lines = super().format(record).split("\n")
        return "\n".join(
            "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
            for line in lines
        )


class ConnectionLog(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log of one connection; each line names its peer."""

    def __init__(self, logger: logging.Logger, **facts: object) -> None:
        super().__init__(logger, {"facts": facts})

    @property
    def level(self) -> int:
        """The level, which uvicorn reads."""
        return self.logger.level


def log_to(stream: TextIO, form: LogFormat = LogFormat.JSON) -> None:
    """Send all log records to `stream`; with AUTO on a terminal, only warnings and errors."""
    is_terminal = form is LogFormat.AUTO and stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ShortLines() if is_terminal or form is LogFormat.SHORT else JsonLines())
    logging.basicConfig(
        handlers=[handler], level=logging.WARNING if is_terminal else logging.INFO, force=True
    )
    # Its warnings are about pipelines that a lost connection ended; the store logs those itself.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    # Its errors are tracebacks about cleaning up such connections.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
