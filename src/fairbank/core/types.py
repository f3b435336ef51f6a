"""Words: enumerations that decide something, in tables and in dictionaries."""

from __future__ import annotations

from enum import Enum


class IdentityEnum(Enum):
    """A member is one of a kind, so its identity hashes it: Enum's own way is a call into Python at each look into a table."""

    __hash__ = object.__hash__


new_tuple = tuple.__new__
"""`made(Slot, (begin, end, placement))` is `Slot(begin, end, placement)` in half of the time, for loops that make one for each job."""
