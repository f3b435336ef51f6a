"""Part of a benchmark in its own process, so that its CPU time is not counted as the server's.

The order arrives as JSON on standard input; the round is written as JSON to standard output.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvloop

from benchmarks.measure import percentile

Order = TypeVar("Order", bound=msgspec.Struct)
Round = TypeVar("Round", bound=msgspec.Struct)


def run_round(module: str, order: msgspec.Struct, kind: type[Round]) -> Round:
    """Run `python -m module` with this order and return its round.

    Raises RuntimeError with the output of the process if it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=msgspec.json.encode(order),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode:
        raise RuntimeError(f"{module} ended early:\n{done.stderr.decode()[-2_000:]}")
    return msgspec.json.decode(done.stdout, type=kind)


def serve_round(
    kind: type[Order], work: Callable[[Order], Coroutine[Any, Any, msgspec.Struct]]
) -> None:
    """Read the order, do the work and write the round. Runs in the process of its own."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=kind)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(work(order))))


def p50_and_p99_ms(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    return percentile(seconds, 0.5) * 1_000, percentile(seconds, 0.99) * 1_000
