"""Reader of recorded workloads in any supported format; the first line decides which."""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.fast_reader import FastTrace, read_lines
from fairbank.simulator.traces.job_line import parse_job
from fairbank.simulator.traces.swf import ByteStream, NumberedLines, is_remark

_NO_TEXT = re.compile(rb"(?!\x1f\x8b)(?:[\x80-\xff]|.*?[\x00-\x08\x0e-\x1b\x7f])", re.DOTALL)
"""Neither a number nor a name of a column begins with what is not ASCII; a delimiter may be one of the separators from 0x1c on. What is
compressed twice is told as that by whoever reads the line."""
_FORMATS = "name a trace in the Standard Workload Format, or what sacct --parsable2 printed, as text or compressed with gzip"


def skim_any(stream: ByteStream) -> FastTrace:
    """A trace in the Standard Workload Format, or what sacct printed. Raises InvalidInput as the readers of these do, and at once for a file
    that is neither."""
    lines = NumberedLines(stream)
    number, first = next(lines, (0, b""))
    if not first:
        raise InvalidInput("the file is empty", field="FILE", remedy=_FORMATS)
    lines.put_back(first)
    if is_remark(
        first
    ):  # sacct knows no comments, and to read what it says takes imports that a trace need not pay for
        return read_lines(lines)
    from fairbank.slurm.parsers.trace import is_accounting, skim_accounting  # noqa: PLC0415

    if strange := _NO_TEXT.match(first):
        what = (
            f"line {number}: byte 0x{strange[0][-1]:02x} at place {strange.end()}: this is no trace"
        )
        raise InvalidInput(what, field="FILE", remedy=_FORMATS)
    if is_accounting(first):
        return skim_accounting(lines)
    if first[:1].isalpha():
        raise InvalidInput(
            f"line {number} begins with neither a number nor heads of columns: this is no trace",
            field="FILE",
            remedy=_FORMATS,
        )
    parse_job(first, number)  # before a header is missed that no such file has
    return read_lines(lines)
