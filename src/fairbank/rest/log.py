"""The server's log: a JSON object a line, so that nothing that a client sends can forge one."""

from __future__ import annotations

import json
import logging
from typing import TextIO

from fairbank.values.time import iso


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
        return json.dumps(line, separators=(",", ":"), default=str).replace("\x7f", "\\u007f")  # all of it printable ASCII


def log_to(stream: TextIO, *, level: int = logging.INFO) -> None:
    """From here on everything that is logged goes to `stream`, a line each."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=level, force=True)
