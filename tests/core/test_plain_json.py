"""JSON that others may have made."""

import json
import time

import pytest

from latem.core import plain_json
from latem.core.plain_json import DEEPEST, parse_json


@pytest.mark.parametrize(
    "content",
    [
        *([], {}, "", 0, None, 1.5, True, 'é\\"[[', {"a": [1, {"b": None}]}),
        *("[" * 500, ["\\", "[" * 500, '"' + "{" * 500, "\\" * 7 + '"' + "[" * 200]),
    ],
)
def test_what_json_writes_is_read_again(content):
    for text in (json.dumps(content), json.dumps(content, ensure_ascii=False, indent=1)):
        assert parse_json(text) == content
        assert parse_json(text.encode()) == content


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('["\\\\",', "]")])
def test_depth(opening, closing):
    parse_json(opening * DEEPEST + "0" + closing * DEEPEST)
    with pytest.raises(ValueError, match="more than 100 deep"):
        parse_json(opening * (DEEPEST + 1) + "0" + closing * (DEEPEST + 1))
    with pytest.raises(ValueError, match="more than 100 deep"):
        parse_json(opening * 10**5)


def test_lists_beside_each_other_are_not_deep():
    assert parse_json("[" + "[],[[]]," * 10**4 + "0]")[-1] == 0


def test_size(monkeypatch):
    monkeypatch.setattr(plain_json, "LARGEST", 100)
    assert parse_json(" " * 99 + "1") == 1
    with pytest.raises(ValueError, match="101 bytes of JSON, where 100 bytes are read"):
        parse_json(" " * 100 + "1")


@pytest.mark.parametrize("values", ["[],", '{"":0},', "1,"])
def test_what_takes_far_more_memory_than_its_text(values, monkeypatch):
    text = "[" + values * 10_000 + "0]"
    assert len(parse_json(text)) == 10_001  # little enough for anybody
    monkeypatch.setattr(plain_json, "LARGEST_UNPACKED", 10**5)
    with pytest.raises(ValueError, match="JSON of .* that takes"):
        parse_json(text)
    assert len(parse_json("[" + '"a name",' * 10_000 + "0]")) == 10_001


@pytest.mark.parametrize(
    "text", ["", "{", "]", "[1", '"', '"\\', "{'a': 1}", b"\xff", b"\xef\xbb\xbf[]", "\ud800"]
)
def test_what_is_no_json(text):
    with pytest.raises((json.JSONDecodeError, UnicodeError)):
        parse_json(text)


@pytest.mark.parametrize("text", [None, 5, ["[]"]])
def test_what_is_no_text(text):
    with pytest.raises(TypeError, match="JSON is text, not"):
        parse_json(text)


@pytest.mark.parametrize("part", ['\\"', '"', "\\", '"\\'])
def test_a_text_without_an_end_takes_no_time(part):
    start = time.process_time()
    with pytest.raises(json.JSONDecodeError):
        parse_json('["' + part * 200_001)
    assert time.process_time() - start < 5  # a search from every quote would take minutes
