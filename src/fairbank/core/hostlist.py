"""Slurm's hostlist notation, `n[01-10,12],login` (docs/reference/slurm-rules.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, product
from math import prod

from fairbank.core.errors import InvalidInput

RANGE_MAX = 65_536
"""Slurm's limit on the hosts of one range, and on the names before the last bracket of an item."""
HOSTS_MAX = 1_048_576
"""Slurm's limit on the hosts of a list."""

_SEPARATORS = ", \t\n"
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{0,18}))?", re.ASCII)
_REMEDY = "write for example n[01-10,12],login"


def expand(text: str, *, field: str = "nodes") -> list[str]:
    """Expand a hostlist into host names, in its order and with repetitions.

    The first number of a range sets the width. With several brackets in a name, the last bracket
    varies fastest, then the first, then the second, as in Slurm.

    Raises:
        InvalidInput: the text is not a hostlist; the error names `field` and the position.
    """
    hosts: list[str] = []
    for item in _items(text, field):
        hosts.extend(_hosts(item, field, HOSTS_MAX - len(hosts)))
    return hosts


def _items(text: str, field: str) -> Iterator[str]:
    """Split at separators outside brackets."""
    begin, opened = 0, -1
    for place, sign in enumerate(text):
        if sign == "[":
            if opened >= 0:
                message = f"[ at place {place + 1} of {text[:64]!r} stands inside another"
                raise _wrong(message, field)
            opened = place
        elif sign == "]":
            opened = -1  # one that closes nothing is part of the name
        elif sign in _SEPARATORS and opened < 0:
            if place > begin:
                yield text[begin:place]
            begin = place + 1
    if opened >= 0:
        raise _wrong(f"[ at place {opened + 1} of {text[:64]!r} is never closed", field)
    if begin < len(text):
        yield text[begin:]


def _hosts(item: str, field: str, most: int) -> Iterator[str]:
    parts = _GROUP.split(item)
    words, groups = parts[::2], [_numbers(inside, field) for inside in parts[1::2]]
    count = prod(map(len, groups))
    if count > most or count > RANGE_MAX * len(groups[-1] if groups else "1"):
        remedy = f"at most {HOSTS_MAX} in a list, {RANGE_MAX} in a range"
        raise _wrong(f"{item[:64]!r} names too many hosts", field, remedy)
    if not groups:
        return iter((item,))
    *before, last = groups
    prefixes = (_joined(words, reversed(turned)) for turned in product(*reversed(before)))
    return (prefix + words[-2] + number + words[-1] for prefix in prefixes for number in last)


def _joined(words: list[str], numbers: Iterable[str]) -> str:
    return "".join(chain.from_iterable(zip(words, numbers, strict=False)))


def _numbers(inside: str, field: str) -> list[str]:
    """Return the numbers of a bracket, padded to the width of the first number of their range."""
    numbers: list[str] = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _wrong(f"{part[:32]!r} in [{inside[:32]}] is not a range", field)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _wrong(f"the range {part} runs backwards", field, f"write {match[2]}-{match[1]}")
        if last - first >= RANGE_MAX:
            remedy = f"at most {RANGE_MAX} hosts in a range"
            raise _wrong(f"the range {part} is too long", field, remedy)
        width = len(match[1])
        numbers.extend(f"{number:0{width}}" for number in range(first, last + 1))
    return numbers


def _wrong(what: str, field: str, remedy: str = _REMEDY) -> InvalidInput:
    return InvalidInput(what, field=field, remedy=remedy)


_END = re.compile(r"(.*?)(\d{1,18})", re.ASCII | re.DOTALL)


def compress(names: Iterable[str]) -> str:
    """Return the hosts as one hostlist, in their order. `expand` restores the same names.

    Hosts with the same prefix share a bracket, consecutive numbers share a range.
    """
    parts: list[str] = []
    # Neighbours share a bracket if they have the same prefix, and a number at all.
    for (prefix, numbered), group in groupby(
        map(_split, names), key=lambda host: (host[0], bool(host[1]))
    ):
        digits = [number for _, number in group]
        if numbered and len(digits) > 1:
            parts.append(f"{prefix}[{','.join(_ranges(digits))}]")
        else:
            parts += [prefix + number for number in digits]
    return ",".join(parts)


def _split(name: str) -> tuple[str, str]:
    """Return a host name split before its trailing number, which may be empty."""
    match = _END.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _ranges(digits: list[str]) -> Iterator[str]:
    """Merge consecutive numbers of the same width into ranges."""
    first = last = digits[0]
    for number in digits[1:]:
        if number == f"{int(last) + 1:0{len(first)}}":
            last = number
            continue
        yield first if first == last else f"{first}-{last}"
        first = last = number
    yield first if first == last else f"{first}-{last}"
