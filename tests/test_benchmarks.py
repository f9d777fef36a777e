"""Benchmarks, tools and examples can at least be imported: they use names that exist."""

import json
import re
import subprocess
import sys

from helpers import REPOSITORY

SCRIPTS = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("benchmarks", "tools", "examples")
    for path in (REPOSITORY / folder).glob("*.py")
)
IMPORT = """
import importlib.util, json, sys, traceback
failed = {}
for number, (folder, path) in enumerate(json.loads(sys.argv[1])):
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"script_{number}", path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except BaseException:
        failed[path] = traceback.format_exc()
    sys.path.remove(folder)
print("\\0" + json.dumps(failed))
"""


def imported(paths):
    """Why scripts cannot be imported, by path; each in a process that has imported the others."""
    given = json.dumps([(str(path.parent), str(path)) for path in paths])
    run = subprocess.run(
        [sys.executable, "-c", IMPORT, given],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    return json.loads(run.stdout.rpartition("\0")[2])


PARSE = """
import argparse, json, runpy, sys, traceback
class Parsed(BaseException):
    pass
parse = argparse.ArgumentParser.parse_args
def only_parse(*arguments):
    parse(*arguments)
    raise Parsed
argparse.ArgumentParser.parse_args = only_parse
sys.path.insert(0, "benchmarks")
failed = {}
for command in json.loads(sys.argv[1]):
    sys.argv = command.split()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Parsed:
        pass
    except BaseException:
        failed[command] = traceback.format_exc()
print("\\0" + json.dumps(failed))
"""


def misunderstood(commands):
    """Why scripts do not understand their arguments, by command; none goes on after that."""
    run = subprocess.run(
        [sys.executable, "-c", PARSE, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    return json.loads(run.stdout.rpartition("\0")[2])


def test_the_commands_of_make_bench_are_understood():
    lines = (REPOSITORY / "Makefile").read_text().partition("\nbench:")[2].split("\n\n")[0]
    commands = re.findall(r"python (benchmarks/.*)", lines)
    takes_some = [
        one for one in commands if "parse_args" in (REPOSITORY / one.split()[0]).read_text()
    ]
    assert len(takes_some) > 10
    assert misunderstood(takes_some) == {}
    assert misunderstood(["benchmarks/growth.py --gros"])


def test_imports():
    assert SCRIPTS
    assert imported([REPOSITORY / script for script in SCRIPTS]) == {}


def test_failures_are_seen(tmp_path):
    (tmp_path / "good.py").write_text("x = 1")
    (tmp_path / "bad.py").write_text("from latem import nothing_of_this_name")
    failed = imported([tmp_path / "good.py", tmp_path / "bad.py"])
    assert list(failed) == [str(tmp_path / "bad.py")]
    assert "nothing_of_this_name" in failed[str(tmp_path / "bad.py")]
