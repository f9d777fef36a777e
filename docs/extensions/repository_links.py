"""Links of Markdown pages as they are followed in the repository, on the site.

Files of the repository that are pages of the site lead there; Sphinx offers other files for
download, and a folder's README for the folder.
"""

import re
from pathlib import Path
from typing import Any

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_the_site(text: str, repository: Path) -> str:
    """Markdown of a page in docs/ whose links to files outside work on the site.

    >>> on_the_site("[a](../README.md#it), [b](own-data.md)", Path())
    '[a](index.md), [b](own-data.md)'
    """

    def lead(link: re.Match[str]) -> str:
        path, anchor = link[1].rstrip("/"), link[2] or ""
        if path in PAGES:
            return f"]({PAGES[path]}{'' if path == 'README.md' else anchor})"
        if (repository / path).is_dir():
            path += "/README.md"
        return f"](path:../{path})"

    return _LINK.sub(lead, text)


def setup(app: Any) -> dict[str, Any]:
    """Change links when pages are read."""

    def change(app: Any, name: str, source: list[str]) -> None:
        if "/" not in name:  # what is made for the site has its own links
            source[0] = on_the_site(source[0], Path(app.srcdir).parent)

    app.connect("source-read", change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
