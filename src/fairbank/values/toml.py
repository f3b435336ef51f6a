"""Settings files: TOML that is read strictly. Whatever is wrong is told with the name of the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, ValidationError

from fairbank.values.misfit import misfit
from fairbank.values.trouble import Malformed


def table_in(text: bytes, name: str, *, field: str) -> dict[str, Any]:
    """What the text of a file says. Raises Malformed, with `field`, for what is no TOML; `name` is the file's."""
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise Malformed(
            f"{name} is not TOML: {bad}", field=field, remedy="mend the line named"
        ) from bad


@contextmanager
def fitting(name: str, settings: type[Struct], page: str) -> Iterator[None]:
    """While these settings are made of what the file says. Raises Malformed with the key for what does not fit; `page` is where all keys
    are listed."""
    try:
        yield
    except ValidationError as error:
        bad = misfit(error, settings, page)
        raise Malformed(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from error
    except Malformed as bad:
        raise Malformed(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad
