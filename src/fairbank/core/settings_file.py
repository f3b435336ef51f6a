"""Content of small files that people write: whole, up to a limit, and as TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, BinaryIO

from fairbank.core.errors import InvalidInput

BYTES_MAX = 16 << 20
"""Largest accepted file. A device such as /dev/zero has no end."""


def read_whole(file: BinaryIO, name: str, *, field: str, most: int = BYTES_MAX) -> bytes:
    """Return the content of an open file.

    Args:
        file: the file, opened for bytes.
        name: the name of the file, for messages.
        field: the option or setting that named the file.
        most: the largest accepted size, in whole MiB.

    Raises:
        InvalidInput: the file is larger.
    """
    content = file.read(most + 1)
    if len(content) > most:
        raise InvalidInput(
            f"{name} has more than {most >> 20} MiB", field=field, remedy="name a text file"
        )
    return content


def decode_text(content: bytes, name: str, *, field: str) -> str:
    """Return the text of a file in UTF-8, with or without a byte-order mark.

    Args:
        name: the name of the file, for messages.
        field: the option that named the file.

    Raises:
        InvalidInput: the content is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        raise InvalidInput(
            f"{name} is not UTF-8: byte {bad.start} is 0x{bad.object[bad.start]:02x}",
            field=field,
            remedy="save it as text in UTF-8",
        ) from bad


def parse_toml(
    text: bytes, name: str, *, field: str, parse_float: Callable[[str], Any] = float
) -> dict[str, Any]:
    """Parse the text of a TOML file, with or without a byte-order mark.

    Args:
        text: the content of the file.
        name: the name of the file, for messages.
        field: the option that named the file.
        parse_float: type of numbers with a fraction.

    Raises:
        InvalidInput: the text is not TOML, nested too deeply, or has an enormous number.
    """
    decoded = decode_text(text, name, field=field)
    try:
        return tomllib.loads(decoded, parse_float=parse_float)
    except tomllib.TOMLDecodeError as bad:
        raise InvalidInput(
            f"{name} is not TOML: {bad}", field=field, remedy="fix the line named"
        ) from bad
    except ValueError as bad:  # Python converts no integer with more than 4,300 digits
        raise InvalidInput(
            f"{name} has a number with thousands of digits",
            field=field,
            remedy="no setting needs more than 20",
        ) from bad
    except RecursionError as bad:
        raise InvalidInput(
            f"{name} has too many brackets within brackets",
            field=field,
            remedy="no setting needs more than three levels",
        ) from bad


def toml_string(text: str) -> str:
    """Return a text as a TOML string. JSON has the same escapes, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(text: str) -> str:
    """Return a text as a TOML key, quoted if it is no bare key."""
    return text if re.fullmatch(r"[\w-]+", text, re.ASCII) else toml_string(text)
