"""Features of nodes that a job requests, in the grammar of `sbatch --constraint` (slurm-rules.md,
"Constraints").

    a&b   a,b      every node has both
    a|b            every node has one of them
    a&b|c          from left to right: (a and b) or c; parentheses group otherwise, one level only
    [a|b|c]        all nodes have the same one
    a*4            at least four of the nodes have a
    [a*2&b*4]      two nodes with a and four others with b; without a count, one. Here (x&y)*2 and
                   (x|y)*2 are allowed, too
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.placement.node_set import NodeSet


class Feature(NamedTuple):
    name: str


class AllOf(NamedTuple):
    left: Expression
    right: Expression


class AnyOf(NamedTuple):
    left: Expression
    right: Expression


Expression: TypeAlias = Feature | AllOf | AnyOf


class FeatureCount(NamedTuple):
    """Least number of nodes of a kind."""

    nodes: Expression
    least: int


class Constraint(NamedTuple):
    """Parsed `--constraint`: all nodes match the same one of `alternatives`, and of each of
    `groups` there are enough nodes.
    """

    alternatives: tuple[Expression | None, ...] = (None,)
    groups: tuple[FeatureCount, ...] = ()


ANY = Constraint()
"""Constraint that any node satisfies."""


def matching_nodes(
    expression: Expression | None, having: Callable[[str], NodeSet], all_nodes: NodeSet
) -> NodeSet:
    """Return the nodes that match.

    Args:
        expression: parsed constraint; None matches `all_nodes`.
        having: function from a feature to the nodes that have it.
        all_nodes: nodes that a job without a constraint may use.
    """
    match expression:
        case None:
            return all_nodes
        case Feature(name):
            return having(name)
        case AllOf(left, right):
            return matching_nodes(left, having, all_nodes) & matching_nodes(
                right, having, all_nodes
            )
        case AnyOf(left, right):
            return matching_nodes(left, having, all_nodes) | matching_nodes(
                right, having, all_nodes
            )


@lru_cache(maxsize=4_096)
def parse(text: str, field: str = "constraint") -> Constraint:
    """Parse a constraint. Raises InvalidInput, naming `field` and the place of the error."""
    return _Reader(text, field).constraint() if text.strip() else ANY


_TOKEN = re.compile(r"\s*(?:([^\s&|,()\[\]*]+)|(.))", re.DOTALL)
_REMEDY = "write for example intel&gpu, [rack1|rack2], fat*2, or [(x&y)*4&z*1]"


class _Token(NamedTuple):
    text: str
    place: int
    """Counted from one."""
    is_name: bool = False


class _Reader:
    """Parser of a constraint, from left to right with one token ahead. The last token is empty."""

    def __init__(self, text: str, field: str) -> None:
        self.text, self.field = text.rstrip(), field
        self.tokens = [
            _Token(
                match[1] or match[2].replace(",", "&"),
                match.start(1 if match[1] else 2) + 1,
                bool(match[1]),
            )
            for match in _TOKEN.finditer(self.text)
        ]
        self.tokens.append(_Token("", len(self.text) + 1))
        self.at = 0

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def constraint(self) -> Constraint:
        parsed = self._bracket() if self._next.text == "[" else self._plain()
        if self._next.text:
            raise self._unexpected()
        return parsed

    def _plain(self) -> Constraint:
        """Parse terms from left to right. Only a single term may have a count."""
        term = self._term()
        if isinstance(term, FeatureCount):
            if self._next.text in ("&", "|"):
                raise self._wrong(
                    "a count beside others",
                    self._next.place,
                    "count groups in brackets, such as [a*2&b*4]",
                )
            return Constraint(groups=(term,))
        while sign := self._takes("&", "|"):
            if self._next.text == "[":
                # intel&[rack1|rack2]: what stands before the brackets is true of every node.
                if sign == "|":
                    raise self._wrong("| before [", self._next.place, "join them with &")
                return _of_all(term, self._bracket())
            term = _joined(term, sign, self._expression())
        return Constraint((term,))

    def _bracket(self) -> Constraint:
        """Parse one pair of brackets: alternatives, or groups of which some may be counted."""
        opened = self._next
        self.at += 1
        terms, signs = [self._term()], set[str]()
        while sign := self._takes("&", "|"):
            signs.add(sign)
            terms.append(self._term())
        self._close("]", opened)
        if len(signs) > 1:
            raise self._wrong(
                "& and | stand side by side in brackets",
                opened.place,
                "put one of them into parentheses",
            )
        sign, place = self._takes("&", "|"), self.tokens[self.at - 1].place
        if sign == "|":
            raise self._wrong("| behind ]", place, "join them with &")
        inside = self._together(terms, signs)
        if not sign:
            return inside
        # [rack1|rack2]&intel: what stands behind the brackets is true of every node.
        return _of_all(self._chain(self._expression(), self._expression), inside)

    def _together(self, terms: list[Expression | FeatureCount], signs: set[str]) -> Constraint:
        plain = tuple(term for term in terms if not isinstance(term, FeatureCount))
        if signs == {"|"} or (not signs and plain):
            if len(plain) < len(terms):
                raise self._wrong(
                    "a count among alternatives",
                    1,
                    "count in groups that & joins, such as [a*2&b*4]",
                )
            return Constraint(plain)
        return Constraint(
            groups=tuple(
                term if isinstance(term, FeatureCount) else FeatureCount(term, 1) for term in terms
            )
        )

    def _term(self) -> Expression | FeatureCount:
        expression, star = self._expression(), self._next
        if not self._takes("*"):
            return expression
        number = self._next.text
        if number.isascii() and number.isdecimal() and len(number) < 10 and int(number) > 0:
            self.at += 1
            return FeatureCount(expression, int(number))
        raise self._wrong(
            "* without a number of nodes behind it",
            star.place,
            "a whole number from 1 up, such as fat*2",
        )

    def _expression(self) -> Expression:
        """Parse a feature, or features in parentheses."""
        opened = self._next
        if not self._takes("("):
            return self._feature()
        expression = self._chain(self._feature(), self._feature)
        self._close(")", opened)
        return expression

    def _chain(self, left: Expression, right: Callable[[], Expression]) -> Expression:
        while sign := self._takes("&", "|"):
            left = _joined(left, sign, right())
        return left

    def _feature(self) -> Feature:
        token = self._next
        if not token.text:
            raise self._wrong("a feature is missing", token.place)
        if not token.is_name:
            raise self._unexpected()
        self.at += 1
        return Feature(token.text)

    def _takes(self, *signs: str) -> str:
        """Return the next token and move on if it is one of these signs; else an empty text."""
        sign = self._next.text
        if sign not in signs:
            return ""
        self.at += 1
        return sign

    def _close(self, sign: str, opened: _Token) -> None:
        if not self._takes(sign):
            if self._next.text:
                raise self._unexpected()
            raise self._wrong(f"{opened.text} is never closed", opened.place)

    def _unexpected(self) -> InvalidInput:
        token = self._next
        before = self.tokens[self.at - 1].text if self.at else ""
        what = f"{token.text} stands {f'behind {before}' if before else 'at the beginning'}"
        if token.text == "*":
            return self._wrong(
                what,
                token.place,
                "count a feature on its own, such as fat*2, or groups in brackets, such as"
                " [a*2&b*4]",
            )
        return self._wrong(what, token.place)

    def _wrong(self, what: str, place: int, remedy: str = _REMEDY) -> InvalidInput:
        return InvalidInput(
            f"{what}, at place {place} of {self.text[:64]!r}", field=self.field, remedy=remedy
        )


def _of_all(every: Expression, inside: Constraint) -> Constraint:
    """Return the constraint with an expression that is true of every node."""
    return inside._replace(
        alternatives=tuple(
            every if alternative is None else AllOf(every, alternative)
            for alternative in inside.alternatives
        )
    )


def _joined(left: Expression, sign: str, right: Expression) -> Expression:
    return AllOf(left, right) if sign == "&" else AnyOf(left, right)
