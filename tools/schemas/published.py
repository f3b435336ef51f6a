"""File of the published schemas. Only `make schemas` adds to it, and nothing removes from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fairbank import __version__
from tools.schemas.comparison import Comparison
from tools.schemas.present import Schemas

FILE = Path(__file__).parents[2] / "docs/reference/schemas/published.json"
KINDS = {"answers": Comparison(is_answer=True), "requests": Comparison(is_answer=False)}
_VERSIONED = re.compile(r"(.*)/(\d+)")


def read_published(text: str) -> dict[str, Any]:
    """Return the published schemas. Raises ValueError if the file was edited by hand."""
    published: dict[str, Any] = json.loads(text)
    if published.pop("digest") != _digest(published):
        raise ValueError(
            "published.json has another content than `make schemas` wrote; restore it, "
            "and then run `make schemas`"
        )
    return published


def write_published(published: dict[str, Any]) -> str:
    """Return the text of the file: a schema in each line, and the digest of all of them."""
    parts = [f'"digest": "{_digest(published)}"', f'"release": {json.dumps(published["release"])}']
    for kind in ("ended", *KINDS):
        lines = [
            f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
            for key, value in sorted(published[kind].items())
        ]
        parts.append(f'"{kind}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def losses(published: dict[str, Any], present: dict[str, Schemas]) -> Iterator[str]:
    """Yield what the present schemas break of the published ones."""
    for kind, comparison in KINDS.items():
        latest = _latest(present[kind])
        for key, schema in published[kind].items():
            name, version = _split(key)
            if key in present[kind]:
                places = comparison.losses(schema, present[kind][key])
                yield from (f"{key}: {place}" for place in places)
            elif key not in published["ended"] and latest.get(name, -1) < version:
                yield f"{key} is missing"
        taken = _latest(published[kind])
        for key in present[kind].keys() - published[kind]:
            name, version = _split(key)
            if version <= taken.get(name, -1):
                yield f"{key}: later versions were published"


def unpublished(published: dict[str, Any], present: dict[str, Schemas]) -> Iterator[str]:
    """Yield what is to be published: each new schema, and all fields of each release."""
    for kind in KINDS:
        yield from sorted(f"{key} is new" for key in present[kind].keys() - published[kind])
    if published["release"] != __version__:
        yield f"the fields that are new since {published['release']}"


def with_present(published: dict[str, Any], present: dict[str, Schemas]) -> dict[str, Any]:
    """Return the published schemas with those of today. Schemas that are not sent any more stay."""
    return {
        **published,
        **{kind: {**published[kind], **present[kind]} for kind in KINDS},
        "release": __version__,
    }


def _latest(keys: Iterable[str]) -> dict[str, int]:
    """Return the highest version of each name."""
    return dict(sorted(map(_split, keys)))


def _split(key: str) -> tuple[str, int]:
    """Return the name and the version of a schema; 0 if it has none."""
    match = _VERSIONED.fullmatch(key)
    return (match[1], int(match[2])) if match else (key, 0)


def _digest(published: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(published, sort_keys=True).encode()).hexdigest()
