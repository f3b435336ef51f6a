"""Header comments of a trace in the Standard Workload Format: machine and log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT

LABEL_LIMIT = 1_000
"""Maximum length of the text behind a label, in characters."""


class Header(NamedTuple):
    """Values of the header comments; None if they are missing, or words ("UNKNOWN") where a number
    belongs.

    `node_failures` is an extension: the standard has no status for a job whose node failed. The
    label `NodeFailures:` lists the numbers of such jobs; other readers see a comment.
    """

    version: str | None = None
    computer: str | None = None
    installation: str | None = None
    acknowledge: str | None = None
    information: str | None = None
    conversion: str | None = None
    preemption: str | None = None
    time_zone: str | None = None
    max_jobs: int | None = None
    max_records: int | None = None
    max_nodes: int | None = None
    max_procs: int | None = None
    max_runtime: int | None = None
    unix_start_time: int | None = None
    queues: Mapping[int, str] = MappingProxyType({})
    partitions: Mapping[int, str] = MappingProxyType({})
    node_failures: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def jobs(self) -> int | None:
        """Return the jobs by the header. A cleaned log keeps its earlier MaxJobs."""
        return self.max_jobs if self.max_records is None else self.max_records


TEXTS = {
    "Version": "version",
    "Computer": "computer",
    "Installation": "installation",
    "Acknowledge": "acknowledge",
    "Information": "information",
    "Conversion": "conversion",
    "Preemption": "preemption",
    "TimeZoneString": "time_zone",
}
NUMBERS = {
    "MaxJobs": "max_jobs",
    "MaxRecords": "max_records",
    "UnixStartTime": "unix_start_time",
    "MaxNodes": "max_nodes",
    "MaxProcs": "max_procs",
    "MaxRuntime": "max_runtime",
}
DECISIVE = ("UnixStartTime", "MaxNodes", "MaxProcs")
"""Labels on which the simulated site and its calendar depend. Two different values are refused."""
NAMES = {"Queue": "queues", "Partition": "partitions"}

PROCESSORS_MAX = 1 << 31
"""Maximum size of a machine in processors or nodes."""
_LARGEST = {"UnixStartTime": LAST_INSTANT, "MaxProcs": PROCESSORS_MAX, "MaxNodes": PROCESSORS_MAX}
"""Maximum number behind a label. Any other number is at most as large as any time."""

_UNKNOWN = ("", "-", "-1", "?", "unknown", "none", "n/a")
_COMMENT = re.compile(r"[;\s]*([A-Za-z]+):(.*)", re.DOTALL)


def parse_header(comments: Iterable[tuple[int, bytes]]) -> Header:
    """Parse numbered comment lines.

    Unknown labels and free text are ignored. Repeated texts are joined, of repeated numbers the
    first counts. Raises InvalidInput, with the line, for a number that cannot be parsed, and for a
    second value of a decisive label.
    """
    draft = _Draft()
    for number, line in comments:
        if match := _COMMENT.match(_printable(line)):
            draft.take(number, match[1], match[2].strip())
    return draft.header()


class _Draft:
    """Parsed comments so far, as lists: a header may repeat one label a hundred thousand times."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.numbers: dict[str, int | None] = {}
        self.names: dict[str, dict[int, str]] = {field: {} for field in NAMES.values()}
        self.failures: set[int] = set()
        self.notes: list[str] = []

    def take(self, line: int, label: str, text: str) -> None:
        if label in TEXTS and text:
            self.texts.setdefault(TEXTS[label], []).append(text)
        elif label in NUMBERS:
            self._number(line, label, _count(line, label, text))
        elif label in NAMES:
            number, _, name = text.partition(" ")
            if number.isdecimal():
                self.names[NAMES[label]].setdefault(_whole(line, label, number), name.strip())
        elif label == "NodeFailures":
            self.failures.update(_whole(line, label, word) for word in text.split())
        elif label == "Note" and text:
            self.notes.append(text)

    def _number(self, line: int, label: str, value: int | None) -> None:
        before = self.numbers.get(NUMBERS[label])
        if before is None:
            self.numbers[NUMBERS[label]] = value
        elif label in DECISIVE and value not in (None, before):
            what = f"line {line}: {label} is {value}, and {before} further up"
            raise InvalidInput(what, field=label, remedy="remove the header comment that is wrong")

    def header(self) -> Header:
        texts = {name: "; ".join(words) for name, words in self.texts.items()}
        fields: dict[str, Any] = {**texts, **self.numbers, **self.names}
        return Header(**fields, node_failures=frozenset(self.failures), notes=tuple(self.notes))


def _count(line: int, label: str, text: str) -> int | None:
    """Return the number at the begin of the text. Real headers add remarks ("100 (one a node)") or
    say UNKNOWN, some in whole sentences.

    For the begin of the log only words that mean unknown are accepted: all times would be dated to
    1970.
    """
    word = text.split(maxsplit=1)[0] if text else ""
    is_number = word != "-1" and any(map(str.isdigit, word))
    if is_number or (label == "UnixStartTime" and word.lower() not in _UNKNOWN):
        return _whole(line, label, word)
    return None


def _whole(line: int, label: str, word: str) -> int:
    largest = _LARGEST.get(label, LAST_INSTANT)
    if re.fullmatch(r"\d{1,12}", word, re.ASCII) and (value := int(word)) <= largest:
        return value
    raise InvalidInput(
        f"line {line}: {label} is {word[:40]!r}, expected a whole number up to {largest}",
        field=label,
        remedy="correct the header comment, or remove the line",
    )


def _printable(line: bytes) -> str:
    """Return the text, which must be printable: a header may come from anywhere."""
    text = line.decode("utf-8", "replace").strip()
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def header_lines(header: Header) -> Iterator[str]:
    """Yield the header as comment lines that `parse_header` reads back to the same value.

    Raises InvalidInput for text that is not one line of printable characters.
    """
    for label, name in (TEXTS | NUMBERS).items():
        value = getattr(header, name)
        if value is not None:
            yield _comment(label, str(value))
    for label, name in NAMES.items():
        for number, called in getattr(header, name).items():
            yield _comment(label, f"{number} {called}".strip())
    failures = sorted(header.node_failures)
    for i in range(0, len(failures), 20):
        yield _comment("NodeFailures", " ".join(map(str, failures[i : i + 20])))
    for note in header.notes:
        yield _comment("Note", note)


def _comment(label: str, text: str) -> str:
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= LABEL_LIMIT:
        raise InvalidInput(
            f"{label}: {text[:40]!r} cannot stand in a header comment",
            field=label,
            remedy=(
                f"write one line of printable characters, at most {LABEL_LIMIT}, with no blanks"
                " around it"
            ),
        )
    return f"; {label}: {text}\n"
