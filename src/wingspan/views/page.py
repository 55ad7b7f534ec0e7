"""A whole HTML page in one file: style and script inside, nothing from the network, written as it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from wingspan.views.markup import escaped, style

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
"""What the browser is told: this page may load nothing, whatever is in it."""


def asset(package: str, name: str) -> str:
    """A style sheet or script that lies beside the modules of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> Iterator[str]:
    """The page around its body, piece by piece; light or dark as the system is, with a button for the other."""
    sheets = "\n".join([asset("wingspan.views", "page.css"), style(), *styles])
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escaped(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{sheets}\n</style>\n</head>\n<body>\n"
        '<button id="theme" type="button" hidden aria-label="Switch between light and dark">Dark</button>\n'
    )
    yield from body
    for script in [asset("wingspan.views", "theme.js"), *scripts]:
        yield f"<script>\n{script}\n</script>\n"
    yield "</body>\n</html>\n"


def write_page(path: Path, parts: Iterable[str]) -> None:
    """Writes under a temporary name, then renames, so that a failure leaves no half page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(parts)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
