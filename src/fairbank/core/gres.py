"""GRES: generic resources such as GPUs, in each form that Slurm's options and output have.

Source: sbatch(1), --gres and --gpus; gres.conf(5). `add_gpus` in plugins/fairbank/request.lua reads
the same forms.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fairbank.core.errors import InvalidInput

GPU = "gpu"
_OUTER_COMMA = re.compile(r",(?![^(]*\))")
"""Comma between two GRES, not one in parentheses as in `gpu:a100:2(IDX:0,2)`."""
_PARTS = re.compile(r"([^()]+?)(?:\([^()]*\))?")
_WORD = re.compile(r"(?!-)[^\x00-\x20\x7f,:=()]{1,255}")
_COUNT = re.compile(r"(\d{1,18})([KMGTP]?)", re.ASCII | re.IGNORECASE)
_FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_NO_CONSUME = "no_consume"


class Gres(NamedTuple):
    """Generic resource; `type` is empty if none was named."""

    name: str
    type: str
    number: int


def parse_gres(text: str, *, field: str = "gres") -> list[Gres]:
    """Parse `gpu:a100:2,tmpspace:64G`, `gres/gpu=2` or `gpu:2080ti:8(S:0-1)`.

    Without a count there is one. Parentheses (sockets, indexes) are ignored, and so is
    `no_consume`.

    Raises:
        InvalidInput: a part is invalid; the error names `field`.
    """
    return [_gres(*part, field) for part in _parts(text, field)]


def parse_gpus(text: str, *, field: str = "gpus") -> list[Gres]:
    """Parse `2`, `a100` or `a100:2,t4:1`, the value of an option for GPUs such as --gpus.

    Raises:
        InvalidInput: a part is invalid; the error names `field`.
    """
    return [_gres(part, [GPU, *words], field) for part, words in _parts(text, field)]


def gres_counts(listed: Iterable[Gres], times: int = 1) -> dict[str, int]:
    """Return the totals as TRES: `gres/gpu`, and `gres/gpu:a100` for those with a type.

    Args:
        listed: GRES, of a node or of a task.
        times: number of nodes or tasks.
    """
    counts: dict[str, int] = {}
    for gres in listed:
        name = f"gres/{gres.name.lower()}"
        for full in [name] + ([f"{name}:{gres.type.lower()}"] if gres.type else []):
            if gres.number:
                counts[full] = counts.get(full, 0) + gres.number * times
    return counts


def most_gres(nodes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the most of each TRES on one node of several.

    Nodes with four a100 and nodes with four t4 have at most four GPUs, which may be four a100 or
    four t4, but not eight.
    """
    most: dict[str, int] = {}
    for counts in nodes:
        for name, number in counts.items():
            most[name] = max(most.get(name, 0), number)
    return most


def gres_texts(counts: Mapping[str, int]) -> list[str]:
    """Return GRES by TRES (`gres_counts`, `most_gres`) as slurm.conf has them: `gpu:a100:4,gpu:2`.

    One text is enough for the GRES of one node. If they are the most of several nodes, the most of
    all texts is `counts` again.
    """
    texts: list[list[str]] = [[]]
    for name in (name for name in counts if ":" not in name):
        types = {other: number for other, number in counts.items() if other.startswith(f"{name}:")}
        bare = name.removeprefix("gres/")
        parts = [f"{other.removeprefix('gres/')}:{number}" for other, number in types.items()]
        rest = counts[name] - sum(types.values())
        if rest >= 0:
            texts[0] += [*parts, f"{bare}:{rest}"] if rest else parts
            continue
        # No node has all of its types: each gets a text, and so does a node with several of them.
        if counts[name] > max(types.values()):
            parts.append(f"{bare}:{counts[name]}")
        texts += [[] for _ in parts[len(texts) :]]
        for text, part in zip(texts, parts, strict=False):
            text.append(part)
    return [",".join(parts) for parts in texts]


def _parts(text: str, field: str) -> Iterator[tuple[str, list[str]]]:
    for part in _OUTER_COMMA.split(text):
        match = _PARTS.fullmatch(part)
        if match is None:
            raise _invalid(part, field)
        bare = match[1].removeprefix("gres/").removeprefix("gres:")
        yield part, re.split("[:=]", bare)


def _gres(part: str, words: list[str], field: str) -> Gres:
    name, *rest = words
    # The whole word must be a number: `2080ti` and `1g.10gb` are types.
    count = _COUNT.fullmatch(rest[-1]) if rest else None
    types = [word for word in (rest[:-1] if count else rest) if word != _NO_CONSUME]
    if len(types) > 1 or not all(_WORD.fullmatch(word) for word in (name, *types)):
        raise _invalid(part, field)
    number = int(count[1]) * _FACTORS[count[2].upper()] if count else 1
    return Gres(name, types[0] if types else "", number)


def _invalid(part: str, field: str) -> InvalidInput:
    return InvalidInput(
        f"{part[:40]!a} is not NAME[:TYPE][:NUMBER]",
        field=field,
        remedy="write for example gpu:2, gpu:v100:2 or tmpspace:64G; --gpus takes 2 or v100:2",
    )
