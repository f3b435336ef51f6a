"""slurm.conf itself, for what `scontrol show config` does not tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_LINE = re.compile(r"\s*(\w+)\s*=\s*(.*)")
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")
_CONTINUED = re.compile(r"\\\r?\n")


class Conf(NamedTuple):
    """Settings by their names in lower case, as Slurm takes them; the files that are included, as they stand there."""

    settings: Mapping[str, str]
    includes: Sequence[str]


def read_conf(text: str) -> Conf:
    """Lines of one setting each. Nodes, partitions and the like, which stand there many times, are not for us: the last one is kept."""
    lines = [_COMMENT.sub("", line).strip() for line in _CONTINUED.sub(" ", text).splitlines()]
    settings = {
        match[1].lower(): match[2].strip().strip('"')
        for line in lines
        if (match := _LINE.fullmatch(line))
    }
    return Conf(settings, [match[1] for line in lines if (match := _INCLUDE.fullmatch(line))])


def listed(value: str) -> list[str]:
    """The words of a setting such as `PrEpPlugins=prep/fairbank,prep/script`."""
    return [word for each in value.split(",") if (word := each.strip())]


def parameters(value: str) -> dict[str, str]:
    """What a setting such as `PrEpParameters=fairbank_watch=1,fairbank_silence=open` says by name; "" for a name alone."""
    return {
        name.rstrip(): said.lstrip()
        for name, _, said in (word.partition("=") for word in listed(value))
    }
