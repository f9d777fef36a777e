"""What stands in a page of Markdown: blocks that run, and remarks that readers do not see.

Blocks of a page run from top to bottom in one folder (`workspace.py`) and, if they are Python, in
one namespace:

- ```python is run.
- ```sh is run: lines that begin with latem in this process, the others by a shell.
- Everything else between fences (```, ```text, ```toml, …) is for reading.

Remarks are comments of HTML, on lines of their own:

- `<!-- setup: CODE -->`, over one line or several, is Python that is run and not shown.
- `<!-- not run: REASON -->` directly above a block: it is not run.
- `<!-- needs: MODULE -->` directly above a block: it and all that follow are skipped if Python has
  no such module.
- `<!-- prints -->` directly above a ```text block: the block that ran last must print that,
  compared like a doctest with "..." and any white space.
- `<!-- slow -->` anywhere: the page takes more than a few seconds.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers import command

_REMARK = re.compile(r"<!--\s*(setup|not run|needs|prints|slow)\b:?(.*?)-->[ \t]*\n", re.S)
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,})(?P<kind>[^\n`]*)\n")
_RUN = ("python", "sh")
_LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Snippet(NamedTuple):
    """A block or a remark: its kind ("python", "sh", "text", "setup", …), text and line."""

    kind: str
    text: str
    line: int


def snippets(page):
    """All blocks and remarks of a page in order."""
    found, place = [], 0
    while place < len(page):
        line = page.count("\n", 0, place) + 1
        if remark := _REMARK.match(page, place):
            found.append(Snippet(remark[1], textwrap.dedent(remark[2]).strip(), line))
            place = remark.end()
        elif fence := _FENCE.match(page, place):
            end = re.compile(rf"^{fence['indent']}{fence['fence']}[ \t]*$", re.M)
            closed = end.search(page, fence.end())
            assert closed, f"line {line}: the block has no end"
            text = textwrap.dedent(page[fence.end() : closed.start()])
            found.append(Snippet(fence["kind"].strip() or "text", text, line))
            place = closed.end() + 1
        else:
            if page[place] != "\n" and found and found[-1].kind in ("not run", "needs", "prints"):
                kind = found[-1].kind
                raise AssertionError(f"line {line}: no block directly below <!-- {kind} -->")
            place = page.find("\n", place) + 1 or len(page)
    return found


def has_code(page):
    """Whether anything of a page is run."""
    before = ""
    for snippet in snippets(page):
        if snippet.kind in _RUN and before != "not run":
            return True
        before = snippet.kind
    return False


def is_slow(page):
    """Whether a page says that it is."""
    return any(snippet.kind == "slow" for snippet in snippets(page))


def run_page(page, name, monkeypatch):
    """Run all blocks of a page in the current folder; the names that its Python has in the end."""
    monkeypatch.setenv("COLUMNS", "100")
    names, printed, before = {"__name__": "page"}, "", None
    for snippet in snippets(page):
        kind = snippet.kind
        if kind in ("setup", *_RUN) and (before is None or before.kind != "not run"):
            print(f"{name}, line {snippet.line}:\n{snippet.text}", file=sys.stderr)
            printed = (_shell if kind == "sh" else _python)(snippet, name, names)
        elif kind == "needs" and importlib.util.find_spec(snippet.text) is None:
            pytest.skip(f"{name} from line {snippet.line} on: {snippet.text} is not installed")
        elif kind == "text" and before is not None and before.kind == "prints":
            checker = doctest.OutputChecker()
            assert checker.check_output(snippet.text, printed, _LIKE), (
                f"{name}, line {snippet.line}: what is printed is\n{printed}"
            )
        before = snippet
    return names


def _python(snippet, name, names):
    """Run Python and return what it prints; lines in tracebacks are those of the page."""
    shift = "\n" * (snippet.line if snippet.kind == "python" else snippet.line - 1)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(shift + snippet.text, name, "exec"), names)
    return out.getvalue()


def _shell(snippet, name, names):
    """Run the lines of a block and return what they print."""
    printed = ""
    for line in snippet.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "latem" and not set(line) & set("|<>$`;&*"):
            done = command(*words[1:])
            status, output, told = done.exit_code, done.stdout, done.output
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", _latem_as_function() + line],
                capture_output=True, text=True,
            )  # fmt: skip
            status, output, told = done.returncode, done.stdout, done.stdout + done.stderr
        assert not status, f"{name}, line {snippet.line}: {line}\nfailed with {status}:\n{told}"
        printed += output
    return printed


def _latem_as_function():
    """Lines after which a shell knows latem and python as those of the tests."""
    python = shlex.quote(sys.executable)
    source = shlex.quote(str(Path(sys.modules["latem"].__file__).parents[1]))
    path = f"{source}:{os.environ.get('PYTHONPATH', '')}"
    return (
        f'latem() {{ PYTHONPATH={path} {python} -m latem "$@"; }}\n'
        f'python() {{ PYTHONPATH={path} {python} "$@"; }}\n'
    )
