"""Log lines of the server."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairbank.rest.server.log import JsonLines


@contextmanager
def logged() -> Iterator[list[dict[str, Any]]]:
    """Collect the lines that are logged during the block."""
    stream = io.StringIO()
    lines: list[dict[str, Any]] = []
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("fairbank")
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]
