"""Check the pages that Sphinx made: links lead somewhere, and nothing is fetched from elsewhere.

    python tools/check_site.py build/docs/html

Every link to a page, an anchor or a file of the site must find it. No page may load anything from
another host: scripts, styles, fonts, pictures. Links that people follow may lead elsewhere; where
they lead is not looked at, only counted.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_LOADS = {  # what browsers fetch by themselves
    "img": ("src", "srcset"),
    "script": ("src",),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
}
_NOT_LOADED = {"canonical", "index", "search", "next", "prev", "author", "copyright"}
_IN_STYLES = re.compile(r"url\(\s*['\"]?(?P<url>[^'\")]+)|@import\s+['\"](?P<other>[^'\"]+)")


class Link(NamedTuple):
    """An address, whether a browser fetches it by itself, and the line it stands in."""

    address: str
    loaded: bool
    line: int


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element leads to and what it is called."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        line = self.getpos()[0]
        if tag == "a" and "href" in given:
            self.links.append(Link(given["href"], False, line))
        loaded = not _NOT_LOADED & set(given.get("rel", "").split())
        for name in _LOADS.get(tag, ()):
            addresses = (
                given.get(name, "").split(",") if name == "srcset" else [given.get(name, "")]
            )
            for address in addresses:
                if address.strip():
                    self.links.append(Link(address.split()[0], loaded, line))
        for found in _IN_STYLES.finditer(given.get("style", "")):
            self.links.append(Link(found["url"] or found["other"], True, line))


def _html(site: Path) -> list[Path]:
    """The pages; what themes keep among their own files is none."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def problems(site: Path) -> Iterator[str]:
    """One sentence for everything that is wrong with a folder of pages."""
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in _html(site)}
    for path, page in pages.items():
        place = path.relative_to(site.resolve()).as_posix()
        for link in page.links:
            wrong = _wrong(link, path, pages)
            if wrong:
                yield f"{place}, line {link.line}: {link.address} {wrong}"
    for path in sorted(site.rglob("*.css")):
        for found in _IN_STYLES.finditer(path.read_text(encoding="utf-8")):
            address = found["url"] or found["other"]
            wrong = _wrong(Link(address, True, 1), path.resolve(), pages)
            if wrong:
                yield f"{path.relative_to(site).as_posix()}: {address} {wrong}"


def _wrong(link: Link, page: Path, pages: dict[Path, _Page]) -> str:
    """What is wrong with a link of a page; "" if nothing is."""
    parts = urlsplit(link.address)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "is fetched from another host" if link.loaded else ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "is not there"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "has no such anchor"
    return ""


def counted(site: Path) -> str:
    """How many pages and links there are."""
    pages = [_Page(path.read_text(encoding="utf-8")) for path in _html(site)]
    links = [link.address for page in pages for link in page.links]
    abroad = {address for address in links if urlsplit(address).netloc}
    return (
        f"{len(pages)} pages with {len(links)} links; {len(abroad)} addresses elsewhere that only "
        "people follow were not tried."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder of the pages")
    site = parser.parse_args(argv).site
    if not (site / "index.html").is_file():
        print(f"{site} has no index.html: it is no site.", file=sys.stderr)
        return 2
    found = list(problems(site))
    for problem in found:
        print(problem, file=sys.stderr)
    print(counted(site))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
