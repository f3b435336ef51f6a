"""Priorities as Slurm's sprio prints them: its letters, widths, and ways to write a figure, byte for byte.

Pure formatting: who computed the factors makes no difference. A row is a job in one of its partitions.
"""

from fairbank.report.sprio.fields import FIELDS, PriorityField, in_order
from fairbank.report.sprio.layout import (
    Cell,
    Format,
    csv_lines,
    lines,
    lines_of_weights,
    parse_format,
    usual_format,
)
from fairbank.report.sprio.row import PriorityRow, WeightRow, chosen

__all__ = [
    "FIELDS",
    "Cell",
    "Format",
    "PriorityField",
    "PriorityRow",
    "WeightRow",
    "chosen",
    "csv_lines",
    "in_order",
    "lines",
    "lines_of_weights",
    "parse_format",
    "usual_format",
]
