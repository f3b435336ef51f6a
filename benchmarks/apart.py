"""A part of a benchmark in a process of its own, so that its work is not counted as what is measured: its order comes as JSON on
standard input, its round goes back on standard output."""

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


def carry_out(module: str, order: msgspec.Struct, kind: type[Round]) -> Round:
    """Run `python -m module` on this order and wait for its round. Raises RuntimeError when it ends early, with what it said."""
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


def obey(kind: type[Order], work: Callable[[Order], Coroutine[Any, Any, msgspec.Struct]]) -> None:
    """In the process of its own: read the order, do the work, tell the round."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=kind)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(work(order))))


def p50_and_p99_ms(seconds: Sequence[float]) -> tuple[float, float]:
    """How long most took, and nearly all."""
    return percentile(seconds, 0.5) * 1_000, percentile(seconds, 0.99) * 1_000
