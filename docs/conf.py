"""The documentation as a site: `make docs` writes it to build/docs, and every warning is an error."""

import re

from sphinx.application import Sphinx

from wingspan import __version__

project = "Wingspan"
author = "The Wingspan engineers"
version = release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]  # index.rst shows it; on GitHub it is the page of the folder
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # GitHub pages may start a level lower
html_theme = "furo"
html_title = f"Wingspan {version}"
html_show_sphinx = False
REPOSITORY = "https://github.com/wingspan-ner/wingspan/blob/main/"


def link_to_repository(app: Sphinx, name: str, source: list[str]) -> None:
    """What lies outside docs/ is no page of the site: such links lead to the repository."""
    source[0] = re.sub(r"\]\(\.\./", f"]({REPOSITORY}", source[0])


def setup(app: Sphinx) -> None:
    """Registers the change of links."""
    app.connect("source-read", link_to_repository)
