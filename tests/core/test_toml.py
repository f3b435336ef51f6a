"""Settings files are read strictly: an error names the file, the key, and the remedy."""

from __future__ import annotations

import io

import msgspec
import pytest

from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.settings_file import BYTES_MAX, parse_toml, read_whole
from fairbank.core.validation import validated_settings

FILE, PAGE = "/etc/lab.toml", "docs/lab.md"


class Lab(msgspec.Struct, forbid_unknown_fields=True):
    shelves: int
    floor: int = 0


def read(text: bytes) -> Lab:
    output = parse_toml(text, FILE, field="--lab")
    with validated_settings(FILE, output, Lab):
        lab = msgspec.convert(output, Lab)
        if lab.floor > lab.shelves:
            raise InvalidInput(
                "there are not so many floors", field="floor", remedy="at most as many as shelves"
            )
    return lab


def test_valid_settings_are_read() -> None:
    assert read(b"shelves = 3\nfloor = 1") == Lab(3, 1)
    assert read("shelves = 3".encode("utf-8-sig")) == Lab(3)


@pytest.mark.parametrize(
    ("text", "message", "field", "remedy"),
    [
        (b"shelves = [", f"{FILE} is not TOML: ", "--lab", "fix the line named"),
        (
            b"shelves = " + b"9" * 5_000,
            f"{FILE} has a number with thousands of digits",
            "--lab",
            "no setting needs more than 20",
        ),
        (
            "shelves = 3".encode("utf-16"),
            f"{FILE} is not UTF-8: byte 0 is 0xff",
            "--lab",
            "save it as text in UTF-8",
        ),
        (
            b"\xef\xbb\xbfa = '\xff'",
            f"{FILE} is not UTF-8: byte 5 is 0xff",
            "--lab",
            "save it as text in UTF-8",
        ),
        (
            b"shelves = 'many'",
            f'{FILE}: shelves is "many", expected a whole number',
            "shelves",
            "accepted: whole number",
        ),
        (
            b"shelves = [" + b"1, " * 50 + b"]",
            f"{FILE}: shelves is [{'1, ' * 13}..., expected a whole number, got a list",
            "shelves",
            "accepted: whole number",
        ),
        (
            b"shelves = 3\ndoor = 1",
            f"{FILE}: there is no setting door",
            "door",
            "there are: shelves, floor",
        ),
        (b"floor = 1", f"{FILE}: shelves is missing", "shelves", "add it; accepted: whole number"),
        (
            b"shelves = 3\nfloor = 4",
            f"{FILE}: there are not so many floors",
            "floor",
            "at most as many as shelves",
        ),
    ],
)
def test_invalid_settings_are_reported(text: bytes, message: str, field: str, remedy: str) -> None:
    with pytest.raises(FairbankError) as error:
        read(text)
    assert error.value.message.startswith(message)
    assert (error.value.field, error.value.remedy) == (field, remedy)


@pytest.mark.parametrize(
    "text",
    [b"shelves = " + b"[" * 5_000, b"shelves = " + b"{a=" * 5_000, b"shelves = [" + b"[" * 5_000],
)
def test_deep_nesting_is_reported_with_the_file(text: bytes) -> None:
    with pytest.raises(InvalidInput, match=f"{FILE} has too many brackets within brackets"):
        read(text)


def test_file_without_end_is_not_read_to_its_end() -> None:
    with open("/dev/zero", "rb") as file, pytest.raises(InvalidInput, match="more than 16 MiB"):
        read_whole(file, FILE, field="--lab")
    assert len(read_whole(io.BytesIO(bytes(BYTES_MAX)), FILE, field="--lab")) == BYTES_MAX
