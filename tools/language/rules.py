"""Rules of the language check. Each reads the files and yields the places that break it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOTS = ("src", "tests", "tools", "benchmarks", "plugins", "packaging", "docs")
SKIPPED = ("tests/golden/", "src/fairbank/rest/static/")  # recordings and vendored files
SUFFIXES = (".py", ".md", ".lua", ".c", ".h", ".js", ".service", ".timer", ".yaml")
SCRIPTS = (
    ".ci/run",
    "Makefile",
    "packaging/container/Containerfile",
    "packaging/container/fairbank.def",
    "packaging/slurm/prolog_slurmctld",
    "plugins/build",
)
PRODUCT = "src/fairbank/"

COLUMNS = 100
MODULES = 16  # in one folder, without __init__.py
QUESTION_WORDS = frozenset("what who whom whose whether how which when where why".split())
NOUNS_IN_ING = frozenset(
    "backing billing encoding heading logging packaging parsing pending planning pricing ring "
    "routing rounding scheduling setting spring string timing tuning".split()
)
VERBS_IN_S = frozenset(
    "asks considers fills gives has keeps knows lacks makes reads says takes tells wants works "
    "writes".split()
)
PRIVATE_WORDS = re.compile(
    r"(?<![-.])\b(anew|astray|befell|cards?|doorkeepers?|foretells?|foretold|heads|licences?|"
    r"mend(?:s|ed|ing)?|misfits?|mishaps?|nobody|objections?|offices?|"
    r"rehears(?:e[ds]?|als?|ing)|rooms?|somebody|streets?|tellers?|told|usual|whoever|wish|"
    r"wishes)\b",
    re.IGNORECASE,
)
# Words that are right in a sentence, but do not say what a variable, class or function is.
PRIVATE_IN_NAMES = re.compile(r"\b(booked|patience)\b", re.IGNORECASE)
# `audit heads` is a command: the last entry of each hash chain.
STANDARD_PHRASES = re.compile(r"\baudit heads\b|^\s*heads:")
ALLOWED_IN_NAMES = frozenset({"heads", "nobody"})  # of hash chains; a Unix user
ALLOWED_NAMES = frozenset({"patience"})  # a setting of the agent
OWN = frozenset({"self", "cls", "super()"})
STANDARD_NAMES = frozenset({"_actions", "_exit", "_fields", "_option_string_actions", "_replace"})
ACT_WORDS = frozenset("asked each found got heard said told".split())
MARKDOWN_CODE = re.compile(r"`[^`]*`")
ARGS = re.compile(r"^Args:\n((?:    .*\n?|\n)*)", re.MULTILINE)
DESCRIBED = re.compile(r"^    (\S[^:\n]*):", re.MULTILINE)


class Place(NamedTuple):
    """A place that breaks a rule."""

    path: str
    line: int
    message: str

    @property
    def package(self) -> str:
        """Top-level package of fairbank, or the top folder outside of it."""
        inside = self.path.removeprefix(PRODUCT)
        first, slash, _ = inside.partition("/")
        return first if slash else "fairbank" if inside != self.path else "(top)"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class File:
    """A file of the repository. The path is relative to its root."""

    path: str
    text: str

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def is_product(self) -> bool:
        return self.is_python and self.path.startswith(PRODUCT)

    @property
    def is_markdown(self) -> bool:
        return self.path.endswith(".md")

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(ast.parse(self.text))) if self.is_python else []

    def docstrings(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each docstring."""
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in self.nodes:
            if isinstance(node, kinds) and (text := ast.get_docstring(node, clean=False)):
                yield node.body[0].lineno, text

    def strings(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each string with a space, docstrings included."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, node.value

    def names(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the name of each function, class, parameter and assigned variable."""
        for node in self.nodes:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield node.lineno, name
                case ast.ClassDef(name=name) | ast.arg(arg=name):
                    yield node.lineno, name
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield node.lineno, name

    def variables(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the name of each variable and parameter; fields are no variables."""
        fields = {
            id(statement.target)
            for node in self.nodes
            if isinstance(node, ast.ClassDef)
            for statement in node.body
            if isinstance(statement, ast.AnnAssign)
        }
        for node in self.nodes:
            match node:
                case ast.arg(arg=name):
                    yield node.lineno, name
                case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                    yield node.lineno, name

    def comments(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each comment of a Python file."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def read_files(root: Path) -> list[File]:
    """Return the files to check below the root of the repository."""
    paths = [*root.glob("*.md"), *(root / name for name in SCRIPTS)]
    for top in ROOTS:
        paths += [path for path in (root / top).rglob("*") if path.suffix in SUFFIXES]
    names = sorted(
        path.relative_to(root).as_posix()
        for path in paths
        if path.is_file() and not path.is_symlink()
    )
    return [
        File(name, (root / name).read_text(encoding="utf-8"))
        for name in names
        if not name.startswith(SKIPPED)
    ]


def ambiguous_classes(files: Sequence[File]) -> Iterator[Place]:
    """Yield product classes whose name another product class has, too."""
    classes = [
        (node.name, file.path, node.lineno)
        for file in files
        if file.is_product
        for node in file.nodes
        if isinstance(node, ast.ClassDef)
    ]
    counts = Counter(name for name, _, _ in classes)
    for name, path, line in classes:
        if counts[name] > 1:
            yield Place(path, line, f"{counts[name]} classes have the name {name}")


def question_docstrings(files: Sequence[File]) -> Iterator[Place]:
    """Yield docstrings that begin with a question word."""
    for file in files:
        for line, text in file.docstrings():
            first = (re.findall(r"\w+", text) or [""])[0]
            if first.lower() in QUESTION_WORDS:
                yield Place(
                    file.path, line, f"docstring begins with {first!r}; use a verb or a noun phrase"
                )


def described_arguments(files: Sequence[File]) -> Iterator[Place]:
    """Yield names that the Args of a docstring describe, and that are no parameters."""
    for file in files:
        for node in file.nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if section := ARGS.search(ast.get_docstring(node) or ""):
                known = {child.arg for child in ast.walk(node.args) if isinstance(child, ast.arg)}
                for names in DESCRIBED.findall(section[1]):
                    for name in {name.strip("* ") for name in names.split(",")} - known:
                        yield Place(file.path, node.lineno, f"Args: {name} is no parameter")


def verb_file_names(files: Sequence[File]) -> Iterator[Place]:
    """Yield Python, C and Lua files and folders named after a gerund or a third-person verb."""
    sources = [file.path for file in files if not file.is_markdown and "/" in file.path]
    paths = sources + sorted({path.rpartition("/")[0] + "/" for path in sources})
    for path in paths:
        word = re.split(r"[_/.-]", re.sub(r"(\.\w+|/)$", "", path))[-1]
        gerund = len(word) > 4 and word.endswith("ing") and word not in NOUNS_IN_ING
        if gerund or word in VERBS_IN_S:
            yield Place(path, 1, f"file name ends with the verb {word!r}; use a noun")


def long_lines(files: Sequence[File]) -> Iterator[Place]:
    """Yield lines over 100 columns.

    In Markdown, table rows, images, URLs and blocks, which show output as it is, may be longer.
    """
    for file in files:
        is_block = False
        for number, line in enumerate(file.text.split("\n"), 1):
            is_block ^= file.is_markdown and line.lstrip().startswith("```")
            is_exempt = file.is_markdown and (
                is_block or line.lstrip().startswith(("|", "![")) or "://" in line
            )
            columns = len(line.expandtabs(8))
            if columns > COLUMNS and not is_exempt:
                yield Place(file.path, number, f"{columns} columns; at most {COLUMNS}")


def large_folders(files: Sequence[File]) -> Iterator[Place]:
    """Yield product folders with too many modules."""
    folders = Counter(
        file.path.rpartition("/")[0]
        for file in files
        if file.is_product and not file.path.endswith("/__init__.py")
    )
    for folder, count in sorted(folders.items()):
        if count > MODULES:
            yield Place(f"{folder}/", 1, f"{count} modules; at most {MODULES}")


def private_words(files: Sequence[File]) -> Iterator[Place]:
    """Yield words of the former private vocabulary: in Markdown prose, in docstrings, in names, and
    in the strings and comments of the product. A string without a space is a name, not prose.
    """
    for file in files:
        if file.is_markdown:
            texts = [(1, _prose(file.text))]
        elif file.is_product:
            texts = [*file.strings(), *file.comments()]
        else:
            texts = list(file.docstrings())
        for start, text in texts:
            for number, line in enumerate(text.split("\n"), start):
                prose = STANDARD_PHRASES.sub("", MARKDOWN_CODE.sub("", line))
                for word in PRIVATE_WORDS.findall(prose):
                    yield Place(file.path, number, f"private word {word!r}; use a standard term")
        for number, name in file.names():
            words = re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", name)
            for word in PRIVATE_WORDS.findall(words) + PRIVATE_IN_NAMES.findall(words):
                if word.lower() not in ALLOWED_IN_NAMES and name not in ALLOWED_NAMES:
                    yield Place(file.path, number, f"private word {word!r} in {name}")


def private_access(files: Sequence[File]) -> Iterator[Place]:
    """Yield private names of the product that tests and benchmarks import, read or replace."""
    private = {
        name
        for file in files
        if file.is_product
        for _, name in file.names()
        if name.startswith("_") and not name.startswith("__")
    }
    for file in files:
        if file.path.startswith(("tests/", "benchmarks/")):
            for node in file.nodes:
                for name in _names_of_others(node):
                    if name in private:
                        message = f"{name} is private; test what others see, or make it public"
                        yield Place(file.path, node.lineno, message)  # type: ignore[attr-defined]


def _names_of_others(node: ast.AST) -> Iterator[str]:
    """Yield the names that an import takes, an attribute of another object, a replaced name."""
    match node:
        case ast.ImportFrom(module=str(module), names=names) if module.startswith("fairbank"):
            yield from (alias.name for alias in names)
        case ast.Attribute(value=value, attr=name):
            if ast.unparse(value) not in OWN and name not in STANDARD_NAMES:
                yield name
        case ast.Call(func=ast.Attribute(attr="setattr"), args=[_, ast.Constant(value=name), *_]):
            yield str(name)


def act_names(files: Sequence[File]) -> Iterator[Place]:
    """Yield variables and parameters that are named after the act of finding their value."""
    for file in files:
        for number, name in file.variables():
            if name.strip("_") in ACT_WORDS:
                yield Place(file.path, number, f"variable {name}; name it after what it holds")


def _prose(markdown: str) -> str:
    """Return Markdown with code replaced by blanks; the line numbers stay."""
    lines, is_code = [], False
    for line in markdown.split("\n"):
        is_fence = line.lstrip().startswith("```")
        lines.append("" if is_code or is_fence else MARKDOWN_CODE.sub("", line))
        is_code ^= is_fence
    return "\n".join(lines)


RULES: Mapping[str, Callable[[Sequence[File]], Iterator[Place]]] = {
    "class names": ambiguous_classes,
    "docstrings": question_docstrings,
    "docstring arguments": described_arguments,
    "file names": verb_file_names,
    "line length": long_lines,
    "folder size": large_folders,
    "private words": private_words,
    "private names": private_access,
    "act names": act_names,
}
