"""Every block of the README and of the documentation runs as it stands there."""

import pytest
from helpers import REPOSITORY
from pages.snippets import Snippet, has_code, is_slow, run_page, snippets

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def texts():
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        if has_code(page):
            yield pytest.param(page, path.name, id=path.stem,
                               marks=[pytest.mark.slow] if is_slow(page) else [])  # fmt: skip


@pytest.mark.parametrize(("page", "name"), texts())
def test_a_page_runs(page, name, folder, monkeypatch):
    run_page(page, name, monkeypatch)


PAGE = """
Text with `code`.

<!-- setup:
x = 1
-->
```python
y = x + 1
print("it is", y)
```
<!-- prints -->
```text
it   is ...
```

- In a list:
  ```sh
  printf 'a\\nb\\n' \\
    > letters.txt  # two lines
  latem --version
  ```

<!-- not run: there is no such thing -->
```python
nothing
```

````
```python
wrong
```
````
"""


def test_blocks_run_in_order_in_one_namespace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE, "page.md", monkeypatch)["y"] == 2
    assert (tmp_path / "letters.txt").read_text() == "a\nb\n"
    assert snippets(PAGE)[1] == Snippet("python", 'y = x + 1\nprint("it is", y)\n', 7)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("it   is ...", "it is 3", "line 12: what is printed is\nit is 2"),
        ("x + 1", "x + nobody", "name 'nobody' is not defined"),
        ("latem --version", "latem train nowhere", "latem train nowhere\nfailed with 2"),
        ("latem --version", "cat nowhere", "cat nowhere\nfailed with 1"),
        ("not run:", "needed:", "name 'nothing' is not defined"),
        ("<!-- prints -->", "<!-- prints -->\n\nText", "line 13: no block directly below"),
        ("wrong\n```\n````", "wrong\n```", "line 28: the block has no end"),
    ],
)
def test_what_is_wrong_is_found(old, new, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, NameError)) as error:
        run_page(PAGE.replace(old, new), "page.md", monkeypatch)
    assert says in str(error.value)


def test_what_needs_a_missing_module_is_skipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "<!-- needs: json -->\n```python\nx = 1\n```\n"
    assert run_page(page, "page.md", monkeypatch)["x"] == 1
    with pytest.raises(pytest.skip.Exception, match="no_such_module is not installed"):
        run_page(page.replace("json", "no_such_module"), "page.md", monkeypatch)


def test_pages_are_slow_if_they_say_so():
    assert not is_slow(PAGE)
    assert is_slow(PAGE + "<!-- slow -->\n")
    assert not has_code(
        "```python\nx\n```\n".replace("```python", "<!-- not run: x -->\n```python")
    )
