"""What the commands share: interruptions, the log, and the help of every command."""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import latem
from latem.cli import app
from latem.cli.common import CONTINUES, NOTHING_WRITTEN, Terminated, failures, pairs, show_log


@pytest.fixture(autouse=True)
def _silent_again():
    yield
    show_log(0)


# -- failures and interruptions ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ValueError("There is no split 'x'."), 1, "latem: There is no split 'x'.\n"),
        (KeyboardInterrupt(), 130, f"latem: interrupted; {CONTINUES}.\n"),
        (Terminated(), 143, f"latem: interrupted; {CONTINUES}.\n"),
    ],
)
def test_what_ends_a_command_is_one_sentence(error, code, told, capsys):
    with pytest.raises(typer.Exit) as ended, failures(CONTINUES):
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr() == ("", told)


def test_a_closed_pipe_is_left_to_click():
    with pytest.raises(BrokenPipeError), failures():
        raise BrokenPipeError


LONG = [  # the command, the function that does its work, how it goes on
    ("demo", "latem.workflows.demo.run_demo", "starts from the beginning"),
    ("reproduce --data .", "latem.experiments.runner.reproduce", "continues where"),
    ("data fetch xlsa17", "latem.datasets.fetch.fetch", "continues where"),
    ("data check .", "latem.datasets.check.inspect_folder", "starts from the beginning"),
    ("data convert release a.mat --out b", "latem.datasets.matlab.from_release", "nothing was"),
    ("embed train-words a --out b", "latem.embeddings.words.train_word_vectors", "nothing was"),
    ("embed images a --table b --out c", "latem.features.embed.embed_pictures", "continues where"),
    ("train a --embedding att --out b", "latem.workflows.train.train_model", "nothing was written"),
    ("evaluate a b", "latem.models.files.load", "the same command"),
    ("gallery a b", "latem.models.files.load", "the same command"),
    ("predict a b", "latem.models.files.load", "the same command"),
    (
        "name a --names okapi,tapir",
        "latem.workflows.name_by_words.name_pictures_by_words",
        "the same command",
    ),
]


@pytest.mark.parametrize(("line", "work", "told"), LONG, ids=[line for line, *_ in LONG])
def test_every_long_command_says_how_to_go_on(line, work, told, monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(work, interrupt)
    monkeypatch.setattr("latem.cli.embed_images.tables_of", lambda *_: {})
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.startswith("latem: interrupted; ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_process_politely(number, code, tmp_path):
    script = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
import latem.workflows.demo
def run_demo(*_, **__):
    os.kill(os.getpid(), {int(number)})
    for _ in range(10**9): pass
latem.workflows.demo.run_demo = run_demo
sys.argv = ["latem", "demo"]
from latem.cli import main
main()
"""
    env = {**os.environ, "PYTHONPATH": str(Path(latem.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        timeout=120,
    )
    assert result.returncode == code
    assert result.stderr == "latem: interrupted; the same command starts from the beginning.\n"
    assert "nothing was written" in NOTHING_WRITTEN


# -- the log ----------------------------------------------------------------------------------


def run(*line):
    result = CliRunner().invoke(app, [str(part) for part in line])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_verbose_shows_what_is_read_and_chosen(tmp_path):
    world = latem.make_latent_world(n_poses=1, n_unseen=4, random_state=0)
    folder, model = tmp_path / "world", tmp_path / "m.safetensors"
    latem.write_folder(world, folder)
    train = ("train", folder, "--embedding", "att", "--model", "ESZSL", "--out", model, "-q")
    quiet = run(*train)
    told = run("-v", *train)
    more = run("-vv", *train)
    again = run(*train)
    assert quiet[0] == told[0] == more[0] == again[0]  # the log is no result
    assert quiet[1] == again[1]
    assert f"latem.datasets.folder: read the dataset folder {folder}" in told[1]
    assert f"latem.core.storage: wrote the model {model}" in told[1]
    assert "latem.selection.search: chose {" in told[1]
    assert len(more[1].splitlines()) > len(told[1].splitlines()) > len(quiet[1].splitlines())
    assert "\x1b" not in more[1]


def test_the_library_is_silent_unless_somebody_listens(tmp_path, capsys, caplog):
    world = latem.make_latent_world(n_poses=1, n_unseen=4, random_state=0)
    with caplog.at_level(logging.INFO, logger="latem"):
        latem.write_folder(world, tmp_path / "world")
    assert [record.name for record in caplog.records if record.levelno >= logging.INFO] == [
        "latem.datasets.folder_writer"
    ]
    assert capsys.readouterr() == ("", "")
    handlers = logging.getLogger("latem").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]


# -- the help ---------------------------------------------------------------------------------


def commands(group, path=()):
    """Every command with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_all_commands_are_found():
    assert {("train",), ("embed", "images"), ("data", "convert", "npz")} <= set(COMMANDS)
    assert len(COMMANDS) >= 18


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example_that_parses(path):
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    last = result.output.strip().splitlines()[-1].strip()
    start = f"Example: latem {' '.join(path)} "
    assert last.startswith(start)
    command = COMMANDS[path]
    words = re.findall(r"'[^']*'|\S+", last.removeprefix(start))
    command.make_context("latem", [word.strip("'") for word in words])  # raises if it is wrong


@pytest.mark.parametrize("path", [(), ("data",), ("embed",), *COMMANDS], ids=" ".join)
def test_help_names_no_types_of_python(path):
    output = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).output
    assert re.findall(r"<(?:list|tuple|dict|str|bool|int range|float range)\b[^>]*>", output) == []
    assert re.findall(r"list\[|Optional\[|\bPath\b", output) == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_leaves_it_to_the_terminal_where_lines_end(path):
    assert re.search(r"[^\n]\n[^\n]", COMMANDS[path].help) is None
    words = " ".join(COMMANDS[path].callback.__doc__.split())
    assert " ".join(COMMANDS[path].help.split()) == words


def test_pairs():
    assert pairs(["CUB=a", "AWA=b=c"], "--dataset") == {"CUB": "a", "AWA": "b=c"}
    with pytest.raises(typer.BadParameter, match="--dataset takes KEY=FOLDER, not 'CUB'"):
        pairs(["CUB"], "--dataset")
