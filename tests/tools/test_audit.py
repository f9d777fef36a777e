"""What the audit says of pip-audit's answers: nothing passes that was not looked up."""

import json
import re
import subprocess
import sys

import pytest
from helpers import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools"))
import audit
from audit import Pin, judge, read_pins, rounds

JINJA, NUMPY = Pin("jinja2", "3.1.0"), Pin("numpy", "2.4.6")
UNREACHED = {"name": "jinja2", "skip_reason": "Dependency not found and could not be audited"}
CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
BAD = {
    "name": "jinja2",
    "version": "3.1.0",
    "vulns": [
        {"id": "PYSEC-1", "fix_versions": ["3.1.3", "3.1.4"], "aliases": [], "description": "a"},
        {"id": "PYSEC-2", "fix_versions": [], "aliases": [], "description": "b"},
    ],
}


def test_pins_of_all_systems_are_read_and_hashes_are_not():
    text = "# a note\nJinja2==3.1.0 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\n"
    text += "typing_extensions==4.16.0 ; python_full_version < '3.13'\nuv==1 --hash=sha256:2\n"
    assert read_pins(text) == [JINJA, Pin("typing-extensions", "4.16.0"), Pin("uv", "1")]
    with pytest.raises(ValueError, match="not a pinned version: 'numpy>=2'"):
        read_pins("numpy>=2\n")


def test_every_pin_of_the_project_is_read():
    ranges = {"predict.txt"}  # a part of pyproject's
    files = {path.name: path for path in (REPOSITORY / "requirements").glob("*.txt")}
    assert ranges < set(files)
    for path in (files[name] for name in set(files) - ranges):
        text = path.read_text(encoding="utf-8")
        pins = re.findall(r"^[^\s#]+==[^\s;]+", text, re.MULTILINE)
        assert [f"{name}=={version}" for name, version in read_pins(text)] == pins != []
        hashes = re.split(r"^(?=[^\s#]+==)", text, flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in pin for pin in hashes)
        assert "://" not in text


def test_two_versions_of_a_package_are_asked_about_one_by_one():
    other = Pin("numpy", "2.2.6")
    assert rounds([NUMPY, other, JINJA, NUMPY]) == [[NUMPY, JINJA], [other]]


def test_all_looked_up_and_nothing_found():
    verdict = judge([NUMPY], {NUMPY: CLEAN})
    assert verdict.passed
    assert verdict.lines == ["1 of 1 pinned versions audited, 0 vulnerable"]


def test_vulnerabilities_are_named_with_their_remedy():
    verdict = judge([JINJA, NUMPY], {JINJA: BAD, NUMPY: CLEAN})
    assert not verdict.passed
    assert verdict.lines == [
        "jinja2 3.1.0 is vulnerable: PYSEC-1, fixed in 3.1.3, 3.1.4",
        "jinja2 3.1.0 is vulnerable: PYSEC-2, fixed in no version",
        "2 of 2 pinned versions audited, 1 vulnerable",
    ]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({JINJA: UNREACHED, NUMPY: CLEAN}, "could not be audited"),
        ({NUMPY: CLEAN}, "does not mention it"),
        ({JINJA: {**CLEAN, "version": "3.1.9"}, NUMPY: CLEAN}, "another version"),
    ],
)
def test_what_was_not_looked_up_does_not_pass(answers, reason):
    verdict = judge([JINJA, NUMPY], answers)
    assert not verdict.passed
    assert "1 of 2 pinned versions were NOT audited, jinja2 3.1.0 for one" in verdict.lines[0]
    assert reason in verdict.lines[0]
    assert verdict.lines[-1] == "1 of 2 pinned versions audited, 0 vulnerable"


def fake_pip_audit(monkeypatch, stdout, code=0, stderr=""):
    def run(command, **_):
        asked.append(command)
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    asked = []
    monkeypatch.setattr(audit.subprocess, "run", run)
    return asked


def test_the_exit_code_is_that_of_the_verdict(tmp_path, monkeypatch, capsys):
    (tmp_path / "pins.txt").write_text("numpy==2.4.6\n")
    asked = fake_pip_audit(monkeypatch, json.dumps({"dependencies": [CLEAN], "fixes": []}))
    assert audit.main([str(tmp_path / "pins.txt")]) == 0
    assert len(asked) == 1
    skipped = {"dependencies": [{**UNREACHED, "name": "numpy"}]}
    fake_pip_audit(monkeypatch, json.dumps(skipped))  # and an exit code of 0
    assert audit.main([str(tmp_path / "pins.txt")]) == 1
    assert "1 of 1 pinned versions were NOT audited" in capsys.readouterr().out


def test_a_pip_audit_that_fails_has_audited_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "pins.txt").write_text("numpy==2.4.6\njinja2==3.1.0\n")
    fake_pip_audit(monkeypatch, "", code=1, stderr="Traceback\nConnectionError: no route")
    assert audit.main([str(tmp_path / "pins.txt")]) == 1
    told = capsys.readouterr().out
    assert "2 of 2 pinned versions were NOT audited" in told
    assert "pip-audit failed: ConnectionError: no route" in told


def test_files_without_pins_are_a_misuse(tmp_path, capsys):
    (tmp_path / "pins.txt").write_text("# nothing\n")
    with pytest.raises(SystemExit) as stopped:
        audit.main([str(tmp_path / "pins.txt")])
    assert stopped.value.code == 2
    assert "there is no pin in these files" in capsys.readouterr().err
