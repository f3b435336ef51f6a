"""Words of a command line as getopt_long(3) reads them, and its sentences about wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeVar

from fairbank.core.errors import InvalidInput

T = TypeVar("T")
TakesValue = Literal["no", "in its word", "yes"]
"""How an option takes a value: not, only as in `--nice=5`, or also as the next word."""


def read_words(
    words: Iterator[str], options: Mapping[str, T], takes: Callable[[T], TakesValue]
) -> Iterator[str | tuple[T | None, str, str | None]]:
    """Yield each option with its flag and its value, None for none; other words as they are.

    An option is None if it is unknown. Its flag may be shortened if only one begins so, and is
    yielded in full. An option that needs a value takes the next word, whatever it is. After `--`
    there are only other words. What was not read yet remains in `words`. `options` has each form in
    which an option can be written. Raises InvalidInput if the last one lacks its value.
    """

    def with_value(flag: str, value: str | None) -> tuple[T | None, str, str | None]:
        option = options.get(flag)
        if value is None and option is not None and takes(option) == "yes":
            value = next(words, None)
            if value is None:
                what = f"option '{flag}' requires an argument"
                if not flag.startswith("--"):
                    what = f"option requires an argument -- '{flag[1:]}'"
                raise InvalidInput(what, field=flag, remedy=f"write it after {flag}")
        return option, flag, value

    for word in words:
        if word == "--":
            yield from words
        elif word.startswith("--"):
            name, has_value, text = word.partition("=")
            yield with_value(_full_flag(name, options), text if has_value else None)
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                flag, letters = f"-{letters[0]}", letters[1:]
                option = options.get(flag)
                if option is not None and takes(option) == "no":
                    yield option, flag, None
                    continue
                yield with_value(flag, letters or None)
                break
        else:
            yield word


def _full_flag(name: str, options: Mapping[str, T]) -> str:
    """Return the flag of the only option that begins with this name; else the name itself."""
    begun = {option: flag for flag, option in options.items() if flag.startswith(name)}
    return begun.popitem()[1] if len(begun) == 1 and name not in options else name


def unknown_option(flag: str, options: Mapping[str, object]) -> str:
    """Return the sentence about a word that is no option, or the beginning of several."""
    if not flag.startswith("--"):
        return f"invalid option -- '{flag[1:2]}'"
    near = sorted(other for other in options if len(flag) > 2 and other.startswith(flag))
    if not near:
        return f"unrecognized option '{flag[:40]}'"
    names = " ".join(f"'{other}'" for other in near)
    return f"option '{flag[:40]}' is ambiguous; possibilities: {names}"
