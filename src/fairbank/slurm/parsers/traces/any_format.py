"""Reader of recorded workloads in any supported format; the first line decides which."""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.fast_reader import FastTrace, read_lines
from fairbank.simulator.traces.job_line import is_like_a_job, parse_job
from fairbank.simulator.traces.swf import ByteStream, NumberedLines, is_remark

_NOT_TEXT = re.compile(rb"(?!\x1f\x8b)(?:[\x80-\xff]|.*?[\x00-\x08\x0e-\x1b\x7f])", re.DOTALL)
"""Bytes that no trace begins with: not ASCII, or a control character other than a delimiter (0x1c
on).

A trace that was compressed twice is recognised by the reader of lines.
"""
_FORMATS = (
    "name a trace in the Standard Workload Format, or what sacct --parsable2 printed, as text or"
    " compressed with gzip"
)


def read_any_trace(stream: ByteStream) -> FastTrace:
    """Read a trace in the Standard Workload Format, or output of sacct.

    Raises InvalidInput for others.
    """
    lines = NumberedLines(stream)
    number, first = next(lines, (0, b""))
    if not first:
        raise InvalidInput("the file is empty", field="FILE", remedy=_FORMATS)
    lines.put_back(first)
    if is_remark(first):  # sacct prints no comments
        return read_lines(lines)
    # Imported here, so that reading the Standard Workload Format does not pay for it.
    from fairbank.slurm.parsers.traces.sacct_trace import (  # noqa: PLC0415
        is_accounting,
        read_accounting_trace,
    )

    if strange := _NOT_TEXT.match(first):
        byte = f"byte 0x{strange[0][-1]:02x} at place {strange.end()}"
        what = f"line {number}: {byte}: this is not a trace"
        raise InvalidInput(what, field="FILE", remedy=_FORMATS)
    if is_accounting(first):
        return read_accounting_trace(lines)
    if not is_like_a_job(first):
        raise InvalidInput(
            f"line {number} is neither a job nor column names: this is not a trace",
            field="FILE",
            remedy=_FORMATS,
        )
    parse_job(first, number)  # before a header is missed that no such file has
    return read_lines(lines)
