"""Recorded workloads in any format that we read, told apart by how they begin."""

from __future__ import annotations

from fairbank.simulator.skim import Skim, skim_lines
from fairbank.simulator.swf import ByteStream, Lines, is_remark


def skim_any(stream: ByteStream) -> Skim:
    """A trace in the Standard Workload Format, or what sacct printed. Raises Malformed as the readers of these do."""
    lines = Lines(stream)
    _, first = next(lines, (0, b""))
    if first:
        lines.put_back(first)
    if is_remark(first):  # sacct knows no comments, and to read what it says takes imports that a trace need not pay for
        return skim_lines(lines)
    from fairbank.slurm.answers.trace import is_accounting, skim_accounting  # noqa: PLC0415

    return skim_accounting(lines) if is_accounting(first) else skim_lines(lines)
