"""Progress: plain lines where there is no terminal, bars where there is one."""

import io

import pytest
from helpers import Terminal

from latem.core.progress import FIRST_LINE, NEXT_LINE, PlainLines, bars_by_title, progress_bar


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def run(clock, n, seconds, **options):
    with progress_bar(True, "choosing", unit="trainings", clock=clock, **options) as advance:
        for _ in range(n):
            clock.now += seconds
            advance()


def test_lines_come_after_a_while_and_not_too_often(clock, capsys):
    run(clock, 40, 4, total=40)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "choosing: 3 of 40 trainings, 2:28 left",
        "choosing: 11 of 40 trainings, 1:56 left",
        "choosing: 19 of 40 trainings, 1:24 left",
        "choosing: 27 of 40 trainings, 0:52 left",
        "choosing: 35 of 40 trainings, 0:20 left",
    ]
    assert "\x1b" not in err


def test_the_time_left_is_not_guessed_from_a_moment(clock, capsys):
    with bars_by_title(True, "steps", clock=clock) as advance:
        clock.now += FIRST_LINE
        advance("training", 1, 150)
        clock.now += NEXT_LINE
        advance("training", 10, 150)
    assert capsys.readouterr().err.splitlines() == [
        "training: 1 of 150 steps",
        "training: 10 of 150 steps, 7:00 left",
    ]


def test_short_work_says_nothing(clock, capsys):
    run(clock, 9, 1, total=9)
    run(clock, 1, 500, total=1)  # it has ended: what follows says so
    assert capsys.readouterr() == ("", "")


def test_nobody_wants_to_see_it(clock, capsys):
    with progress_bar(False, "choosing", total=40, clock=clock) as advance:
        clock.now += 100
        advance()
    with bars_by_title(False, "epochs", clock=clock) as advance:
        clock.now += 100
        advance("training", 1, 50)
    assert capsys.readouterr() == ("", "")


def test_without_a_total_the_time_so_far(clock, capsys):
    run(clock, 30, 130)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "choosing: 1 trainings, 2:10 so far"
    assert lines[-1] == "choosing: 30 trainings, 1:05:00 so far"


def test_what_an_earlier_run_did_took_no_time(clock, capsys):
    with progress_bar(True, "embedding", unit="pictures", clock=clock) as advance:
        advance(5000, 10000)
        clock.now += 20
        advance(5100, 10000)
    assert capsys.readouterr().err == "embedding: 5100 of 10000 pictures, 16:20 left\n"


def test_bytes_and_texts(clock, capsys):
    with progress_bar(True, "downloading", in_bytes=True, clock=clock) as advance:
        advance(0, 80_000_000)
        clock.now += 20
        advance(20_000_000, 80_000_000, "birds.zip")
    assert capsys.readouterr().err == "downloading: 20.0 of 80.0 MB, 1:00 left, birds.zip\n"


def test_several_titles_share_the_pauses(clock, capsys):
    with bars_by_title(True, "epochs", clock=clock) as advance:
        for epoch in (1, 2, 3):
            for title in ("one map", "eight maps"):
                clock.now += 6
                advance(title, epoch, 50)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["eight maps"]


def test_a_terminal_gets_a_bar_and_a_dumb_one_does_not(clock, monkeypatch):
    for term, bar in (("xterm", True), ("dumb", False)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr("sys.stderr", stream := Terminal())
        run(clock, 2, 20, total=2)
        assert ("2/2" in stream.getvalue()) == bar
        assert (stream.getvalue() == "choosing: 1 of 2 trainings, 0:20 left\n") != bar


def test_colours_that_are_asked_for_bring_no_bar_into_a_file(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run(clock, 2, 20, total=5)
    assert capsys.readouterr().err == "choosing: 1 of 5 trainings, 1:20 left\n"


def test_the_pauses_are_those_of_the_documentation(clock):
    stream = io.StringIO()
    lines = PlainLines(stream, "steps", clock=clock)
    lines.begin("working", 1000)
    said = []
    for second in range(1, 100):
        clock.now += 1
        before = stream.tell()
        lines.advance("working")
        if stream.tell() > before:
            said.append(second)
    assert said == [FIRST_LINE, FIRST_LINE + NEXT_LINE, FIRST_LINE + 2 * NEXT_LINE]
