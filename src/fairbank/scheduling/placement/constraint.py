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
    expression: Expression | None, having: Callable[[str], NodeSet], everybody: NodeSet
) -> NodeSet:
    """Return the nodes that match. `having` returns the nodes with a feature."""
    match expression:
        case None:
            return everybody
        case Feature(name):
            return having(name)
        case AllOf(left, right):
            return matching_nodes(left, having, everybody) & matching_nodes(
                right, having, everybody
            )
        case AnyOf(left, right):
            return matching_nodes(left, having, everybody) | matching_nodes(
                right, having, everybody
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
    """Parser of a constraint, from left to right with one token ahead."""

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
        self.at = 0

    def constraint(self) -> Constraint:
        found = self._bracket() if self._sees("[") else self._plain()
        if self.at < len(self.tokens):
            raise self._unexpected()
        return found

    def _plain(self) -> Constraint:
        """Parse terms from left to right. Only a single term may have a count."""
        term = self._term(counted=True)
        if isinstance(term, FeatureCount):
            if self.at < len(self.tokens) and self.tokens[self.at].text in "&|":
                raise self._wrong(
                    "a count beside others",
                    self.tokens[self.at].place,
                    "count groups in brackets, such as [a*2&b*4]",
                )
            return Constraint(groups=(term,))
        while sign := self._takes("&", "|"):
            if self._sees("["):
                return self._with_bracket(term, sign)
            term = _joined(term, sign, self._expression())
        return Constraint((term,))

    def _with_bracket(self, all_nodes: Expression, sign: str) -> Constraint:
        """`intel&[rack1|rack2]`: what stands before the brackets is true of every node."""
        if sign == "|":
            raise self._wrong("| before [", self.tokens[self.at].place, "join them with &")
        inside = self._bracket()
        return Constraint(
            tuple(
                all_nodes if each is None else AllOf(all_nodes, each)
                for each in inside.alternatives
            ),
            inside.groups,
        )

    def _bracket(self) -> Constraint:
        """All in one pair of brackets: alternatives, or groups of which some may be counted."""
        opened = self.tokens[self.at]
        self.at += 1
        terms, signs = [self._term(counted=True)], set[str]()
        while sign := self._takes("&", "|"):
            signs.add(sign)
            terms.append(self._term(counted=True))
        if not self._takes("]"):
            raise (
                self._unexpected()
                if self.at < len(self.tokens)
                else self._wrong("[ is never closed", opened.place)
            )
        if len(signs) > 1:
            raise self._wrong(
                "& and | stand side by side in brackets",
                opened.place,
                "put one of them into parentheses",
            )
        if self.at < len(self.tokens) and self.tokens[self.at].text in "&|":
            return self._behind(terms, signs)
        return self._together(terms, signs)

    def _behind(self, terms: list[Expression | FeatureCount], signs: set[str]) -> Constraint:
        """`[rack1|rack2]&intel`: what stands behind the brackets is true of every node."""
        sign = self._takes("&", "|")
        if sign == "|":
            raise self._wrong("| behind ]", self.tokens[self.at - 1].place, "join them with &")
        inside, every = self._together(terms, signs), self._expression()
        while sign := self._takes("&", "|"):
            every = _joined(every, sign, self._expression())
        return Constraint(
            tuple(every if each is None else AllOf(each, every) for each in inside.alternatives),
            inside.groups,
        )

    def _together(self, terms: list[Expression | FeatureCount], signs: set[str]) -> Constraint:
        counted = [term for term in terms if isinstance(term, FeatureCount)]
        if signs == {"|"} or (not signs and not counted):
            if counted:
                raise self._wrong(
                    "a count among alternatives",
                    1,
                    "count in groups that & joins, such as [a*2&b*4]",
                )
            return Constraint(tuple(term for term in terms if not isinstance(term, FeatureCount)))
        return Constraint(
            groups=tuple(
                term if isinstance(term, FeatureCount) else FeatureCount(term, 1) for term in terms
            )
        )

    def _term(self, *, counted: bool) -> Expression | FeatureCount:
        expression = self._expression()
        if not (counted and self._takes("*")):
            return expression
        return FeatureCount(expression, self._count())

    def _count(self) -> int:
        star = self.tokens[self.at - 1]
        if self.at < len(self.tokens):
            number = self.tokens[self.at].text
            if number.isascii() and number.isdecimal() and len(number) < 10 and int(number) > 0:
                self.at += 1
                return int(number)
        raise self._wrong(
            "* without a number of nodes behind it",
            star.place,
            "a whole number from 1 up, such as fat*2",
        )

    def _expression(self) -> Expression:
        """A feature, or features in parentheses."""
        if opening := self._takes("("):
            place = self.tokens[self.at - 1].place
            found: Expression = self._feature()
            while sign := self._takes("&", "|"):
                found = _joined(found, sign, self._feature())
            if not self._takes(")"):
                raise (
                    self._unexpected()
                    if self.at < len(self.tokens)
                    else self._wrong(f"{opening} is never closed", place)
                )
            return found
        return self._feature()

    def _feature(self) -> Feature:
        if self.at < len(self.tokens) and self.tokens[self.at].is_name:
            self.at += 1
            return Feature(self.tokens[self.at - 1].text)
        if self.at == len(self.tokens):
            raise self._wrong("a feature is missing", len(self.text) + 1)
        raise self._unexpected()

    def _sees(self, sign: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == sign

    def _takes(self, *signs: str) -> str:
        """The next token where it is one of these, and then it is behind us; empty where it is
        not."""
        if (
            self.at < len(self.tokens)
            and not self.tokens[self.at].is_name
            and self.tokens[self.at].text in signs
        ):
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def _unexpected(self) -> InvalidInput:
        token = self.tokens[self.at]
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


def _joined(left: Expression, sign: str, right: Expression) -> Expression:
    return AllOf(left, right) if sign == "&" else AnyOf(left, right)
