"""Priorities in the output format of Slurm's sprio, byte for byte.

Source: docs/reference/slurm-rules.md, "sprio output". A row is a job in one of its partitions.
"""

from fairbank.report.sprio.fields import FIELDS, PriorityField, sort_rows
from fairbank.report.sprio.layout import (
    Cell,
    Format,
    csv_lines,
    default_format,
    lines,
    parse_format,
    weight_lines,
)
from fairbank.report.sprio.row import PriorityRow, WeightRow, select_rows

__all__ = [
    "FIELDS",
    "Cell",
    "Format",
    "PriorityField",
    "PriorityRow",
    "WeightRow",
    "csv_lines",
    "default_format",
    "lines",
    "parse_format",
    "select_rows",
    "sort_rows",
    "weight_lines",
]
