"""The server's log: a JSON object a line, so that nothing that a client sends can forge one; short lines for a terminal."""

from __future__ import annotations

import json
import logging
from typing import TextIO

from fairbank.core.time import iso
from fairbank.service.settings import LogFormat


class JsonLines(logging.Formatter):
    """A record as one line; what stands under `facts` becomes fields of its own."""

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
        return json.dumps(line, separators=(",", ":"), default=str).replace(
            "\x7f", "\\u007f"
        )  # all of it printable ASCII


class ShortLines(logging.Formatter):
    """A record as a line for somebody who watches: time, level, message; a trace below it. The time is the reader's."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(
            "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
            for line in lines
        )


class OfConnection(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log of one connection: each line also has the facts about who is at its other end."""

    def __init__(self, logger: logging.Logger, **facts: object) -> None:
        super().__init__(logger, {"facts": facts})

    @property
    def level(self) -> int:
        """Which uvicorn looks at itself."""
        return self.logger.level


def log_to(stream: TextIO, form: LogFormat = LogFormat.JSON) -> None:
    """From here on what is logged goes to `stream`, a line each: all of it, but of AUTO on a terminal only warnings and worse."""
    watched = form is LogFormat.AUTO and stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ShortLines() if watched or form is LogFormat.SHORT else JsonLines())
    logging.basicConfig(
        handlers=[handler], level=logging.WARNING if watched else logging.INFO, force=True
    )
    logging.getLogger("psycopg").setLevel(
        logging.ERROR
    )  # its warnings, of pipelines that a lost connection ended, are told by us as such
