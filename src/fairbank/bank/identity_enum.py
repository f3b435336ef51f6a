"""Enumeration for keys that are looked up very often."""

from __future__ import annotations

from enum import Enum


class IdentityEnum(Enum):
    """Enumeration hashed by identity: the hash of Enum calls Python code at each lookup."""

    __hash__ = object.__hash__
