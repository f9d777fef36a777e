"""Formulas as MathML, which browsers draw by themselves: pages need no script and no other host."""

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_SIZE = re.compile(r"\\([bB]igg?)(?![A-Za-z])")  # without a side, as docutils does not know it


def _mathml(node: Any, as_block: bool) -> str:
    text = _SIZE.sub(r"\\\1l", node.astext())
    if as_block and "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    try:
        return str(tex2mathml(text, as_block=as_block))
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, text, location=node)
        return f"<code>{html.escape(text)}</code>"


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    number = node.get("number")
    label = f'<span class="eqno">({number})</span>' if number else ""
    writer.body.append(f'<div class="math">{label}{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of the renderer, `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
