import pytest

from latem.core.text_files import read_lines, read_utf8


def test_lines_as_people_write_them(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeffokapi \r\n\n\tblue jay\nzebra".encode())
    assert read_lines(path, "class names") == ["okapi", "blue jay", "zebra"]


def test_what_is_wrong_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file of class names '.*none.txt'"):
        read_lines(tmp_path / "none.txt", "class names")
    (tmp_path / "empty.txt").write_text(" \n\n")
    with pytest.raises(ValueError, match="holds no unseen classes; write one per line"):
        read_lines(tmp_path / "empty.txt", "unseen classes")
    (tmp_path / "bytes.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(ValueError, match="not UTF-8 text"):
        read_lines(tmp_path / "bytes.txt", "class names")


def test_text_without_its_mark(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffcafé\r\n".encode())
    assert read_utf8(path) == "café\n"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match="text is not UTF-8 text; save it as UTF-8"):
        read_utf8(path)
