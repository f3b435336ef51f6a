"""Hot statements as named SQL: a `.sql` file per database, `-- name: ...` before each statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def queries(database: str) -> Mapping[str, str]:
    """Return the statements of a database by name, without comments."""
    text = (files(__name__) / f"{database}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: _COMMENT.sub("", statement).strip()
        for name, statement in zip(parts[::2], parts[1::2], strict=True)
    }
