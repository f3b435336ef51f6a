"""Sets of ten thousand nodes: as Python integers, as NumPy flags, as NumPy words of 64 bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.measure import Figure, Table, ratio
from fairbank.scheduling.placement import node_set

NODES = 10_000
ABOUT = (
    f"{NODES:,} nodes, three fifths of them in each set; microseconds per operation. Fairbank uses "
    "Python integers; flags take one byte per node, a word holds 64 nodes."
)


def tables(rounds: int) -> list[Table]:
    random = np.random.default_rng(3)
    left, right = (random.random(NODES) < 0.6 for _ in range(2))
    numbers = node_set.pack_flags(left), node_set.pack_flags(right)
    words = words_of(left), words_of(right)
    figures = time_calls(
        {
            "both, whole numbers": lambda: numbers[0] & numbers[1],
            "both, flags": lambda: left & right,
            "both, words": lambda: words[0] & words[1],
            "how many of both, whole numbers": lambda: int.bit_count(numbers[0] & numbers[1]),
            "how many of both, flags": lambda: np.count_nonzero(left & right),
            "how many of both, words": lambda: int(np.bitwise_count(words[0] & words[1]).sum()),
            "one but not the other, whole numbers": lambda: node_set.without(*numbers),
            "one but not the other, flags": lambda: left & ~right,
            "one but not the other, words": lambda: words[0] & ~words[1],
            "the first 300, whole numbers": lambda: node_set.first(numbers[0], 300),
            "the first 300, flags": lambda: np.flatnonzero(left)[:300],
            "is there a run of 30, whole numbers": lambda: node_set.run_starts(numbers[0], 30),
            "all runs, whole numbers": lambda: node_set.edges(numbers[0]),
            "all runs, flags": (
                lambda: np.flatnonzero(np.diff(left, prepend=False, append=False)).reshape(-1, 2)
            ),
        },
        rounds,
    )
    by_name = {figure.name: figure for figure in figures}
    promises = tuple(
        ratio(
            f"{what}: flags / whole numbers",
            by_name[f"{what}, flags"],
            by_name[f"{what}, whole numbers"],
            target,
        )
        for what, target in (
            ("both", 3.0),
            ("how many of both", 1.2),
            ("one but not the other", 3.0),
        )
    )
    return [Table(f"Sets of {NODES:,} nodes", ABOUT, tuple(figures), promises)]


def words_of(flags: np.typing.NDArray[np.bool_]) -> np.typing.NDArray[np.uint64]:
    packed = np.packbits(flags, bitorder="little")
    return np.frombuffer(packed.tobytes() + bytes(-len(packed) % 8), np.uint64)


def time_calls(
    contenders: Mapping[str, Callable[[], object]], rounds: int, *, times: int = 200
) -> list[Figure]:
    """Return the time of one call of each contender, in microseconds. Rounds alternate, after one
    that is not counted.
    """
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name, work in contenders.items():
            begun = time.perf_counter()
            for _ in range(times):
                work()
            if number >= 0:
                seen[name].append((time.perf_counter() - begun) * 1e6 / times)
    return [Figure(name, "us", tuple(rounds)) for name, rounds in seen.items()]
