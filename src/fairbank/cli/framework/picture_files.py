"""Picture files: writing them, and checking beforehand that this is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.framework.options import add_option
from fairbank.core.errors import InvalidInput
from fairbank.core.os_errors import translate_os_error
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairbank.cli.framework.parser import Parser
    from fairbank.report.plots.figures import Caption, Figure

FILE_COLUMNS = (Column("FILE", text("file")), Column("SHOWS", text("about"), drop=1))


class PictureFile(NamedTuple):
    """File of a picture that was written, and what it shows."""

    file: str
    caption: Caption


def add_png(parser: Parser) -> None:
    add_option(parser, "--png", "draw PNG files, for where SVG is not taken (default: SVG)")


def write_pictures(
    directory: str,
    figures: Iterable[tuple[str, Figure]],
    *,
    as_png: bool,
    option: str = "DIRECTORY",
) -> list[PictureFile]:
    """Write pictures, each whole or not at all.

    Args:
        directory: directory, made if it is missing.
        figures: what to draw, with file names without the ending.
        as_png: write PNG files instead of SVG.
        option: option or argument that an error names.
    """
    # Reports and simulations without pictures do not pay for these imports.
    from pathlib import Path

    from fairbank.report.plots import canvas
    from fairbank.service.ops.atomic_file import atomic_write

    form: canvas.Format = "png" if as_png else "svg"
    written = []
    for name, figure in figures:
        content = canvas.render(figure, form)
        file = Path(directory, f"{name}.{form}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as out:
                out.write(content)
        except OSError as error:
            raise translate_os_error(error, f"cannot write {file}", field=option) from error
        written.append(PictureFile(str(file), figure.caption))
    return written


def check_directory(directory: str, option: str) -> None:
    """Check that pictures can be written to a directory, or to one that would be made.

    Raises InvalidInput if it is no directory, Unavailable if matplotlib is not installed, and what
    `translate_os_error` makes of a failure to write.
    """
    from pathlib import Path  # as in `write_pictures`

    from fairbank.report.plots import canvas
    from fairbank.service.ops.atomic_file import check_writable

    canvas.check_installed()
    place = Path(directory)
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise InvalidInput(
            f"{place} is not a directory",
            field=option,
            remedy="name a directory, or one that can be made",
        )
    try:
        # Not access(2): it allows root to write in /proc, where no user can create a file.
        check_writable(place / "picture")
    except OSError as error:
        raise translate_os_error(error, f"cannot write in {place}", field=option) from error
