"""What is wrong with pages is found: links that lead nowhere, things fetched from elsewhere."""

import importlib.util

import pytest
from helpers import REPOSITORY

PAGE = """<!doctype html>
<link rel="stylesheet" href="style.css"><script src="code.js?v=1"></script>
<h1 id="top-of-all">A</h1> <a href="b/page.html#there">b</a> <a href="#top-of-all">up</a>
<a href="https://example.org/">elsewhere</a> <img src="data:image/png;base64,AA"> <a href="b/">c</a>
"""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("t", REPOSITORY / "tools" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "b" / "page.html").write_text('<p id="there"><a href="../index.html">a</a>')
    (tmp_path / "b" / "index.html").write_text("<p>")
    (tmp_path / "style.css").write_text("p { background: url(code.js) }")
    (tmp_path / "code.js").write_text("")
    return tmp_path


def test_a_sound_site(tool, site, capsys):
    assert tool.main([str(site)]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "3 pages with 8 links; 1 addresses elsewhere that only people follow were not tried.\n"
    )
    assert printed.err == ""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("#there", "#nowhere", "index.html, line 3: b/page.html#nowhere has no such anchor"),
        ("b/page.html", "b/none.html", "line 3: b/none.html#there is not there"),
        ('"style.css"', '"https://a.org/s.css"', "line 2: https://a.org/s.css is fetched from"),
        ('"code.js?v=1"', '"//a.org/c.js"', "line 2: //a.org/c.js is fetched from another host"),
        ("<h1 ", '<h1 style="background: url(http://a.org/x)" ', "line 3: http://a.org/x is"),
        ("<h1 ", '<img srcset="code.js 1x, none.png 2x"><h1 ', "line 3: none.png is not there"),
    ],
)
def test_what_is_wrong_is_told(old, new, says, tool, site, capsys):
    (site / "index.html").write_text(PAGE.replace(old, new))
    assert tool.main([str(site)]) == 1
    assert says in capsys.readouterr().err


def test_styles_fetch_nothing_from_elsewhere(tool, site, capsys):
    (site / "style.css").write_text('@import "https://a.org/f.css"; p { background: url(none) }')
    assert tool.main([str(site)]) == 1
    told = capsys.readouterr().err
    assert "style.css: https://a.org/f.css is fetched from another host" in told
    assert "style.css: none is not there" in told


def test_a_folder_without_pages_is_no_site(tool, tmp_path, capsys):
    assert tool.main([str(tmp_path)]) == 2
    assert "it is no site" in capsys.readouterr().err
