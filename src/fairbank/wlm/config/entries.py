"""Entries of a settings file: keyword, text and place; equal for wlm.toml and slurm.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.words import quote_unknown
from fairbank.wlm.config.keyword import NAMES, Keyword, KeywordEffect
from fairbank.wlm.config.keywords import SETTINGS
from fairbank.wlm.config.record_keywords import RECORDS

KEYWORDS = (*SETTINGS, *RECORDS)
"""All keywords."""


def invalid(place: str, message: str, *, field: str, remedy: str | None = None) -> InvalidInput:
    """Return the error for a place in a file.

    Args:
        place: file and line.
        message: what is wrong there.
        field: the keyword, as it is written.
        remedy: the accepted form, or what to do.
    """
    return InvalidInput(f"{place}, {field}: {message}", field=field, remedy=remedy)


class FileEntry(NamedTuple):
    """Keyword and its value as they are written at a place in a file."""

    keyword: Keyword
    place: str
    written: str
    text: str

    def value(self) -> Any:
        """Return the value; None for a keyword that is accepted with any.

        Raises InvalidInput for a refused keyword and for another form.
        """
        keyword = self.keyword
        if keyword.effect is KeywordEffect.REFUSED:
            raise self.error(f"is not supported: {keyword.note}", "remove it")
        if keyword.form is None:
            return None
        try:
            return keyword.form.read(self.text, self.written)
        except InvalidInput as bad:
            raise self.error(bad.message, keyword.form.words) from bad

    def error(self, message: str, remedy: str | None) -> InvalidInput:
        """Return the error for this entry."""
        return invalid(self.place, message, field=self.written, remedy=remedy)


class Record(NamedTuple):
    """Entries that belong together: a line or table of a group that is there several times, or
    settings of groups that are there once. `place` is where it begins.
    """

    group: str
    place: str
    entries: tuple[FileEntry, ...]


Report = Callable[[FileEntry], None]
"""Receiver of entries that have no effect."""


def read_values(
    entries: Iterable[FileEntry], report: Report
) -> tuple[dict[str, Any], dict[str, FileEntry]]:
    """Return the values by field, and the entries by field.

    Raises:
        InvalidInput: a value is not accepted, or a keyword is there twice.
    """
    values: dict[str, Any] = {}
    by_field: dict[str, FileEntry] = {}
    for entry in entries:
        value, fields = entry.value(), entry.keyword.targets
        other = by_field.get(fields[0])
        repeats = entry.keyword.repeats and other is not None and other.keyword == entry.keyword
        if other is not None and not repeats:
            what = f"is given twice, first in {other.place} as {other.written}"
            raise entry.error(what, "give it once")
        by_field |= dict.fromkeys(fields, entry)
        if entry.keyword.effect is KeywordEffect.NO:
            report(entry)
            continue
        if repeats:
            value = values[fields[0]] + value
        values |= zip(fields, value if len(fields) > 1 else (value,), strict=True)
    return values, by_field


# --- keywords by name ---


@cache
def slurm_conf_keywords(group: str) -> Mapping[str, Keyword]:
    """Return the keywords of slurm.conf by name in lower case.

    Args:
        group: nodes or partitions; empty: all groups that are there once.
    """
    return {
        keyword.name.lower(): keyword
        for keyword in KEYWORDS
        if keyword.is_in_slurm_conf
        and (keyword.group == group if group else keyword.group not in NAMES)
    }


@cache
def toml_keywords(group: str) -> Mapping[str, Keyword]:
    """Return the keys of a table of wlm.toml."""
    return {keyword.key: keyword for keyword in KEYWORDS if keyword.group == group}


def find_keyword(name: str, known: Mapping[str, Keyword]) -> Keyword | None:
    """Return the keyword of this name, or one by that with `*` whose beginning it has, or None."""
    if name in known:
        return known[name]
    patterns = (key for key in known if key.endswith("*") and name.startswith(key[:-1]))
    return next((known[key]._replace(name=name) for key in patterns), None)


def unknown(place: str, written: str, names: Iterable[str], elsewhere: str) -> InvalidInput:
    """Return the error for an unknown keyword.

    Args:
        place: file and line.
        written: the keyword.
        names: the known ones, in the form of the file.
        elsewhere: where it would belong; empty: nowhere.
    """
    is_plain = written.isascii() and written.isprintable()
    field = written[:64] if is_plain else quote_unknown(written)
    if elsewhere:
        remedy = f"it belongs {elsewhere}"
        return invalid(place, "is not a keyword here", field=field, remedy=remedy)
    by_name = {name.lower(): name for name in names}
    near = get_close_matches(field.lower(), by_name, n=1)
    remedy = f"did you mean {by_name[near[0]]}?" if near else "remove it"
    return invalid(place, "is not a known keyword", field=field, remedy=remedy)
