"""Recorded workloads in any format that we read, told apart by how they begin."""

from __future__ import annotations

from itertools import chain

from fairbank.simulator.skim import Skim, skim_lines
from fairbank.simulator.swf import ByteStream, is_remark, lines


def skim_any(stream: ByteStream) -> Skim:
    """A trace in the Standard Workload Format, or what sacct printed. Raises Malformed as the readers of these do."""
    numbered = lines(stream)
    first = next(numbered, None)
    if first is None:
        return skim_lines(numbered)
    whole = chain([first], numbered)
    if is_remark(first[1]):  # sacct knows no comments, and to read what it says takes imports that a trace need not pay for
        return skim_lines(whole)
    from fairbank.slurm.answers.trace import is_accounting, skim_accounting  # noqa: PLC0415

    return skim_accounting(whole) if is_accounting(first[1]) else skim_lines(whole)
