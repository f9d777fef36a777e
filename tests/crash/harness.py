"""Kills operations at random moments, and looks at what they leave.

`Harness.undisturbed` runs an operation to its end and keeps the files. `Harness.kill` runs it
again, kills it at moments that are drawn over its duration or over the changes it makes to files,
several times in a row, and lets it end at last: the files must be the same, hidden ones included.
In between, every file that others may read is the old one or the new one.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crash.operations import OPERATIONS, without_times
from helpers import REPOSITORY, with_small_disk
from range_server import range_server

DISK = 2**24  # bytes of the small disk
STOP_SECONDS = 60  # a busy machine takes long
PAUSE = 0.004  # of the server after every 16 kB


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code (minus the signal), and what it printed."""

    code: int
    stdout: str
    stderr: str
    n_steps: int | None


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing disturbed: files before and after, its seconds, its changes to files."""

    before: dict
    after: dict
    seconds: float
    n_steps: int


class Running:
    """A child that is at work."""

    def __init__(self, harness, pid, texts):
        self.harness, self.pid, self.texts = harness, pid, texts

    def send(self, number):
        os.killpg(self.pid, number)

    def wait_until_stopped(self):
        """Wait until it has stopped itself; it must not end before."""
        end = time.monotonic() + STOP_SECONDS
        while (state := self.state()) != "T":
            assert state != "Z", "it has ended and was to stop"
            assert time.monotonic() < end, f"it does not stop: {state}"
            time.sleep(0.005)

    def state(self):
        """A letter: T if it is stopped, Z if it has ended."""
        return Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1][0]

    def holds_a_lock(self):
        """Whether it has locked any file."""
        locks = Path("/proc/locks").read_text().splitlines()
        return any(line.split()[4] == str(self.pid) for line in locks)

    def wait(self):
        """Wait until it has ended."""
        code = int(self.harness.ask({"wait": self.pid}))
        stdout, stderr = (self.texts[name].read_text() for name in ("stdout", "stderr"))
        counted = self.texts["steps"]
        steps = counted.read_text() if counted.exists() else ""  # killed at its very end
        return Ended(code, stdout, stderr, int(steps) if steps else None)


class Harness:
    """Inputs of all operations, a warm process to fork from, and places to write to.

    Parameters
    ----------
    root : Path
        An empty folder.
    """

    def __init__(self, root):
        self.root = root
        self.n_runs = 0
        self.known = {}
        self.tally = {name: Counter() for name in OPERATIONS}
        self.disk = root / "disk"
        self.disk.mkdir()
        (root / "cache").mkdir()

    def __enter__(self):
        self.server = range_server(files={}, pause=PAUSE)
        self.files = self.server.__enter__()
        line = [sys.executable, "-m", "crash.worker"]
        self.has_disk = (mounted := with_small_disk(self.disk, DISK, line)) is not None
        tests = os.pathsep.join(str(REPOSITORY / name) for name in ("src", "tests"))
        environment = {**os.environ, "PYTHONPATH": tests, "LATEM_CACHE": str(self.root / "cache")}
        self.worker = subprocess.Popen(
            mounted or line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        assert self.worker.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *error):
        self.worker.stdin.close()
        self.worker.stdout.close()
        self.worker.wait()
        self.server.__exit__(*error)

    def ask(self, order):
        self.worker.stdin.write(json.dumps(order) + "\n")
        self.worker.stdin.flush()
        answer = self.worker.stdout.readline()
        assert answer, "the process that others are forked from has ended"
        return answer

    def inputs(self, operation):
        """Folder of an operation's inputs, made when they are first asked for."""
        folder = self.root / "inputs" / operation.name
        if not folder.exists():
            folder.mkdir(parents=True)
            operation.prepare(folder)
            (folder / "address").write_text(self.files.url)
            self.files.files |= {
                f"/{file.name}": file.read_bytes() for file in folder.glob("*.zip")
            }
        return folder

    def place(self, operation, where=None):
        """A folder to write to, with what is there before the operation begins.

        It has the same path each time, as have all files that tell of paths.
        """
        place = where or self.root / "places" / operation.name
        for old in list(place.iterdir()) if place.exists() else []:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        place.mkdir(parents=True, exist_ok=True)
        operation.before(self.inputs(operation), place)
        return place

    def start(self, operation, place, number=0, at=0):
        """Begin; with `at`, the child sends itself a signal before that change to files."""
        self.n_runs += 1
        texts = {
            name: self.root / f"{self.n_runs}.{name}" for name in ("stdout", "stderr", "steps")
        }
        order = {
            **{name: str(path) for name, path in texts.items()},
            "operation": operation.name,
            "inputs": str(self.inputs(operation)),
            "place": str(place),
            "signal": int(number),
            "at": at,
        }
        return Running(self, int(self.ask(order)), texts)

    def undisturbed(self, operation):
        """What a run leaves that nothing disturbs."""
        if operation.name not in self.known:
            place = self.place(operation)
            before = files(operation, place)
            start = time.monotonic()
            ended = self.start(operation, place).wait()
            seconds = time.monotonic() - start
            assert ended.code in (0, 3), ended.stderr  # 3: some pictures cannot be read
            after = files(operation, place)
            assert after != before
            self.known[operation.name] = Undisturbed(before, after, seconds, ended.n_steps)
        return self.known[operation.name]

    def kill(self, operation, rng, n_kills):
        """Kill it so many times, in rows of up to three, and let it end after each row."""
        known, tally = self.undisturbed(operation), self.tally[operation.name]
        wanted = tally["kills"] + n_kills
        while tally["kills"] < wanted:
            place = self.place(operation)
            for _ in range(min(int(rng.integers(1, 4)), wanted - tally["kills"])):
                by_time = rng.random() < 0.5
                if by_time:
                    running = self.start(operation, place)
                    time.sleep(rng.uniform(0, known.seconds))
                    running.send(signal.SIGKILL)
                else:
                    at = int(rng.integers(1, known.n_steps + 1))
                    running = self.start(operation, place, signal.SIGKILL, at)
                ended = running.wait()
                self.check_readable(operation, place)
                if ended.code != -signal.SIGKILL:
                    tally["missed"] += 1  # it had ended before
                    break
                tally.update(["kills", "by time" if by_time else "by step"])
                tally[self.what_is_left(operation, place)] += 1
            self.end_well(operation, place)
            tally["ended"] += 1

    def what_is_left(self, operation, place):
        """What the next run begins with: all is done, some is kept, or nothing."""
        if self.is_done(operation, place):
            return "done"
        kept = [path for pattern in operation.keeps for path in place.glob(pattern)]
        return "continued" if any(path.stat().st_size for path in kept) else "anew"

    def is_done(self, operation, place):
        known, found = self.undisturbed(operation), files(operation, place)
        return all(found.get(name) == content for name, content in known.after.items())

    def check_readable(self, operation, place):
        """Every file that others may read is the old one or the new one; a folder is whole."""
        known = self.undisturbed(operation)
        found = files(operation, place)
        for name, content in found.items():
            path = Path(name)
            passing = any(path.match(pattern) for pattern in operation.keeps)
            if any(part.startswith(".") for part in path.parts) or passing or ".part" in name:
                continue
            allowed = [known.before.get(name), known.after.get(name)]
            assert content in allowed, f"{operation.name}: {name} is neither old nor new"
        for name in known.before:
            assert name in found or name in operation.varies, f"{operation.name}: {name} is lost"
        if operation.folder and (place / operation.folder).exists():
            inside = {n for n in known.after if Path(n).is_relative_to(operation.folder)}
            assert inside <= set(found), f"{operation.name}: {operation.folder} is not whole"

    def end_well(self, operation, place, within=None):
        """Run to the end: the files are those of an undisturbed run, and nothing else is there.

        `within` is how the run itself sees the folder, if not as this process does.
        """
        known = self.undisturbed(operation)
        done = operation.refuses is not None and self.is_done(operation, place)
        ended = self.start(operation, within or place).wait()
        if done:
            check_sentence(ended, operation.refuses)
        else:
            assert ended.code in (0, 3), ended.stderr
        compare(operation, files(operation, place), known.after)

    # -- the small disk -------------------------------------------------------------------------

    def disk_place(self, operation):
        """A folder on the small disk, and how this process sees it."""
        seen = self.place(operation, self.seen_disk() / "place")
        return self.disk / "place", seen

    def seen_disk(self):
        """The small disk, which is mounted for the other process, as this one sees it."""
        return Path(f"/proc/{self.worker.pid}/root{self.disk}")

    @contextmanager
    def full_disk(self, free):
        """Leave so many bytes of the small disk free."""
        facts = os.statvfs(self.seen_disk())
        ballast = self.seen_disk() / "ballast"
        try:
            with open(ballast, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, facts.f_bavail * facts.f_frsize - free)
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def read_only_disk(self):
        """Nothing can be written to the small disk."""
        self.make_disk("ro")
        try:
            yield
        finally:
            self.make_disk("rw")

    def make_disk(self, how):
        """Let the small disk be "ro" or "rw"."""
        line = ("nsenter", "--target", str(self.worker.pid), "--mount", "mount", "-o")
        subprocess.run((*line, f"remount,{how}", self.disk), check=True)


def files(operation, place):
    """Bytes by path of all files of a tree, hidden ones included, as they are compared."""
    return {
        name: without_times(operation, name, path.read_bytes())
        for path in sorted(place.rglob("*"))
        if path.is_file()
        for name in [path.relative_to(place).as_posix()]
    }


def compare(operation, found, wanted):
    """Say which files differ."""
    differing = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    missing, more = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
    assert not differing, f"{operation.name}: {differing} differ; {missing=}, {more=}"


def check_sentence(ended, words):
    """A failure is told in one sentence, with some words in it, and with the exit code 1."""
    assert ended.code == 1, (ended.code, ended.stderr)
    assert ended.stderr.startswith("latem: "), ended.stderr
    assert re.search(words, ended.stderr), ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert "Errno" not in ended.stderr, ended.stderr
    assert ended.stderr.rstrip().endswith("."), ended.stderr


def share_kills(n_kills):
    """How many of so many kills each operation gets: the same, and the first ones the rest."""
    each, rest = divmod(n_kills, len(OPERATIONS))
    return {name: each + (i < rest) for i, name in enumerate(OPERATIONS)}


def summary(harness):
    """The kills as a table.

    Of the kills: at a random time, or before a random change to files; whether the next run went on
    from what was kept, began anew, or found everything done. How many times the operation was let
    end after some kills, with the same bytes, and how many kills came too late.
    """
    columns = ("kills", "by time", "by step", "continued", "anew", "done", "ended", "missed")
    rows = [(name, tally) for name, tally in harness.tally.items() if tally]
    rows.append(("all", sum((tally for _, tally in rows), Counter())))
    lines = ["operation".ljust(22) + "".join(name.rjust(10) for name in columns)]
    for name, tally in rows:
        lines.append(name.ljust(22) + "".join(str(tally[key]).rjust(10) for key in columns))
    return "\n".join(lines)
