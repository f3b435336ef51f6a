"""slurm.conf itself, for what `scontrol show config` does not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_instant
from fairbank.core.tres import parse_weights
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import Record, read
from fairbank.slurm.parsers.values import ParsedRows, SlurmNode, SlurmPartition, Unreadable

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
    """What a setting such as `PrEpParameters=fairbank_poll_interval=1,fairbank_outage_policy=open` says by name; "" for a name alone."""
    return {
        name.rstrip(): said.lstrip()
        for name, _, said in (word.partition("=") for word in listed(value))
    }


ANY_GPU = "any"
_SETTING = re.compile(r"(\S+)\s+= ?(.*)")
_AS_OF = re.compile(r"Configuration data as of (\S+)\n")
_GPU = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?:\d+(?:\([^)]*\))?", re.ASCII)


def read_places(text: str) -> ParsedRows[SlurmPartition]:
    """The partitions."""
    return read(
        "scontrol show partition",
        words_of("scontrol show partition", text, "PartitionName"),
        _place,
    )


def read_nodes(text: str) -> ParsedRows[SlurmNode]:
    """The nodes."""
    return read("scontrol show node", words_of("scontrol show node", text, "NodeName"), _node)


def read_config(text: str) -> Mapping[str, str]:
    """The settings; `(null)` is an empty text."""
    found = (_SETTING.fullmatch(line) for line in text.splitlines())
    return {
        match[1]: "" if match[2].strip() == "(null)" else match[2].strip()
        for match in found
        if match
    }


def slurm_uid(config: Mapping[str, str]) -> int | None:
    """The number in `SlurmUser = slurm(64030)`; None when it is not told."""
    number = config.get("SlurmUser", "").rpartition("(")[2].rstrip(")")
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 10 else None


def read_clock(text: str) -> int:
    """When slurmctld told its settings, by its own clock; the command must have run in UTC. Raises InvalidInput."""
    match = _AS_OF.match(text)
    if match is None:
        remedy = "keep the whole answer, its first line too: TZ=UTC scontrol show config"
        raise InvalidInput(
            f"{words.shown(text)} does not begin with when it was told",
            field="scontrol show config",
            remedy=remedy,
        )
    return parse_instant(match[1], field="scontrol show config")


def words_of(command: str, text: str, key: str) -> Iterator[Record | Unreadable]:
    """`Key=value Key=value`: words without a sign belong to values that we do not read, such as a node's OS or the reason of an admin."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells: dict[str, str] = {}
        for word in line.split():
            name, sign, value = word.partition("=")
            if sign:
                cells.setdefault(
                    name, value
                )  # what comes first is Slurm's; a Reason at the end may say anything
        if key in cells:
            yield Record(number, cells)
        else:
            yield Unreadable(command, number, key, f"is not there: {words.shown(line)}")


def _place(cells: dict[str, str]) -> SlurmPartition:
    weights = cells.get("TRESBillingWeights", "")
    if weights in ("", "(null)"):
        weights = ""
    else:
        parse_weights(weights, field="TRESBillingWeights")
    memory = cells.get("DefMemPerCPU", "")
    return SlurmPartition(
        ids.name(cells["PartitionName"], field="PartitionName"),
        cells.get("Nodes", ""),
        weights or None,
        words.length_minutes(cells.get("DefaultTime", ""), "DefaultTime"),
        0 if memory in ("", "UNLIMITED") else words.number(memory, "DefMemPerCPU"),
        words.length_minutes(cells.get("MaxTime", ""), "MaxTime"),
        words.number(cells.get("PriorityJobFactor", "1"), "PriorityJobFactor", most=65_535),
        words.tres(cells.get("TRES", "").replace("(null)", ""), "TRES"),
    )


def _node(cells: dict[str, str]) -> SlurmNode:
    return SlurmNode(
        cells["NodeName"],
        words.number(_needed(cells, "CPUTot"), "CPUTot"),
        words.number(_needed(cells, "RealMemory"), "RealMemory"),
        tuple(name for name in cells.get("Partitions", "").split(",") if name),
        tuple(sorted({match[1] or ANY_GPU for match in _GPU.finditer(cells.get("Gres", ""))})),
    )


def _needed(cells: Mapping[str, str], field: str) -> str:
    if field in cells:
        return cells[field]
    raise InvalidInput("is not there", field=field)
