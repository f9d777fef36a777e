"""Links of Markdown files lead to files and headings that are there, and pages have their place."""

import doctest
import re
import sys

import pytest
from helpers import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs" / "extensions"))
import repository_links
from repository_links import on_the_site

DOCS = REPOSITORY / "docs"
FILES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted((REPOSITORY / "examples").rglob("*.md")),
]
_BLOCK = re.compile(r"^[ \t]*(`{3,}).*?^[ \t]*\1[ \t]*$|<!--.*?-->", re.S | re.M)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.M)


def text_of(path):
    """A page without blocks of code and remarks."""
    return _BLOCK.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The anchors that a browser of repositories makes of a page's headings."""
    found = {}
    for title in _HEADING.findall(text_of(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        n = found.get(slug, 0)
        found[slug] = n + 1
        if n:
            found[f"{slug}-{n}"] = 1
    return set(found)


def links(path):
    """Where a page leads; what stands in code is no link."""
    return _LINK.findall(_CODE.sub(lambda code: "`" * len(code[1]), text_of(path)))


def wrong(path, link):
    """What is wrong with a link of a page; "" if nothing is."""
    if re.match(r"[a-z]+:", link):
        return ""
    file, _, anchor = link.partition("#")
    target = (path.parent / file).resolve() if file else path
    if not target.exists():
        return "is not there"
    if REPOSITORY.resolve() not in target.parents:
        return "leads out of the repository"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"has no such heading; there are {sorted(anchors(target))}"
    return ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(path):
    assert [f"{link} {why}" for link in links(path) if (why := wrong(path, link))] == []


def test_what_is_wrong_with_a_link_is_found(tmp_path):
    page = REPOSITORY / "docs" / "own-data.md"
    assert wrong(page, "#describing-classes") == wrong(page, "pictures.md#your-own-folder") == ""
    assert wrong(page, "https://example.org/nowhere") == ""
    assert wrong(page, "nowhere.md") == "is not there"
    assert wrong(page, "../../elsewhere.md") in ("is not there", "leads out of the repository")
    assert wrong(page, "#nothing-of-the-kind").startswith("has no such heading")
    other = tmp_path / "page.md"
    other.write_text(
        "# A `b` (c)\n\n[x](#y) `[no](link)` ``a`[no](l)``\n\n```\n[no](link)\n```\n\n# A b c\n"
    )
    assert anchors(other) == {"a-b-c", "a-b-c-1"}
    assert links(other) == ["#y"]


def test_every_page_is_in_the_list_of_the_site():
    listed = re.findall(r"^[a-z][\w/-]*$", (DOCS / "index.md").read_text(encoding="utf-8"), re.M)
    pages = {path.stem for path in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")]} - {"index"}
    generated = {"generated/commands/index", "generated/gallery/index"}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | generated


def test_every_guide_is_in_the_readme():
    linked = set(links(REPOSITORY / "README.md"))
    inside = {  # read by those who change latem, or led to by CONTRIBUTING.md or by the site
        "index", "api", "changelog", "contributing", "adding-a-description", "adding-a-command",
    }  # fmt: skip
    guides = {path.stem for path in DOCS.glob("*.md")} - inside
    assert {
        name for name in guides if not any(f"docs/{name}.md" in link for link in linked)
    } == set()


def test_links_of_the_repository_lead_to_pages_of_the_site():
    text = "[a](../README.md#two-commands) [b](../CONTRIBUTING.md#to-add) [c](own-data.md#fusion)"
    assert (
        on_the_site(text, REPOSITORY)
        == "[a](index.md) [b](contributing.md#to-add) [c](own-data.md#fusion)"
    )
    assert doctest.testmod(repository_links) == (0, 1)
    text = "[a](../examples/browser) [b](../examples/cifar.py)"
    assert on_the_site(text, REPOSITORY) == (
        "[a](path:../examples/browser/README.md) [b](path:../examples/cifar.py)"
    )
