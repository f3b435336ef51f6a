"""Priorities as Slurm's sprio prints them: its letters, widths, and ways to write a figure, byte for byte.

Pure formatting: who computed the factors makes no difference. A row is a job in one of its partitions.
"""

from fairbank.report.sprio.fields import (FIELDS, Field, in_order)
from fairbank.report.sprio.layout import (Cell, Format, csv_lines, lines, lines_of_weights, parse_format, usual_format)
from fairbank.report.sprio.row import (PriorityRow, Weights, chosen)

__all__ = [
    "FIELDS",
    "Cell",
    "Field",
    "Format",
    "PriorityRow",
    "Weights",
    "chosen",
    "csv_lines",
    "in_order",
    "lines",
    "lines_of_weights",
    "parse_format",
    "usual_format",
]
