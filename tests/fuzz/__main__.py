"""`python -m fuzz`: every reader in turn, a process each, and a line of figures for each.

New inputs that take new branches go to `--work`, where the next run begins with them; `--keep` then
takes the fewest of them that reach the same branches over into the corpus that is kept, as far as
they are small. Figures add up in `--results`; `--until-total` goes on until they come to a number
of runs. Exit code 1 if anything was found.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz import record, watch
from fuzz.findings import CORPUS, RUNNING, former_failures
from fuzz.seeds import seeds
from fuzz.targets import TARGETS

_WORDS = (b"\xef\xbb\xbf", b"\0", b"\r\n", b"nan", b"1e400", b"4_0", b"-1", b"99999999999999999999")
_RSS = 4096  # MB: a reader that takes this much is stopped, not just told
_AT_ONCE = 100_000  # runs of a process: atheris keeps up to 20 kB of each that a mutator made
_KEPT = 30_000  # bytes of a reader's kept inputs, beside those that code makes


def main():
    """Fuzz the targets that were named, or all."""
    options = _options()
    tool = "atheris" if importlib.util.find_spec("atheris") else "hypothesis"
    if tool == "hypothesis":
        print("There is no atheris for this Python: Hypothesis makes the inputs, without a guide.")
    found = set()
    for name in options.targets or TARGETS:
        if options.until_total is None:
            found.update(_fuzz(name, tool, options.runs, options))
            continue
        while (left := options.until_total - record.recorded_runs(options.results, name, tool)) > 0:
            found.update(_fuzz(name, tool, left, options))
    return 1 if found else 0


def _fuzz(name, tool, runs, options):
    """One run of a target: its figures are told and recorded; what was found is returned."""
    work = options.work / name
    _plant(name, work / "corpus")
    run = _with_atheris if tool == "atheris" else _with_hypothesis
    start = time.monotonic()
    figures = run(name, work, runs, options.seconds)
    figures["seconds"] = round(time.monotonic() - start, 1)
    figures["runs_a_second"] = round(figures["runs"] / max(figures["seconds"], 1e-9))
    figures["findings"] = _findings(work)
    figures["mended"] = len(former_failures(name))
    if options.keep and tool == "atheris":
        figures["kept"] = _keep(name, work)
    print(_line(name, figures), flush=True)
    if options.results:
        record.add(options.results, name, tool, figures)
    return {(name, one) for one in figures["findings"]}


def _options():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(TARGETS))
    parser.add_argument("--runs", type=int, default=10**6, help="at most, for each target")
    parser.add_argument("--seconds", type=int, default=60, help="at most, for each run of a target")
    parser.add_argument(
        "--until-total",
        type=int,
        metavar="RUNS",
        help="run each target again and again, --seconds at a time, until --results counts as many "
        "runs of it, earlier ones included; a target that has them already is left out",
    )
    parser.add_argument("--work", type=Path, default=Path("build/fuzz"), help="folder of all else")
    parser.add_argument("--keep", action="store_true", help="take new inputs into the corpus")
    parser.add_argument("--results", type=Path, help="JSON file to add the figures to")
    options = parser.parse_args()
    if options.until_total is not None and options.results is None:
        parser.error("--until-total needs --results, where runs are counted")
    odd = [name for name in options.targets if name not in TARGETS]
    if odd:
        parser.error(f"there is no target {odd[0]!r}; there are {', '.join(TARGETS)}")
    return options


def _plant(name, folder):
    """Inputs to start from: the kept ones and those that code makes."""
    _write_seeds(name, folder)
    if (CORPUS / name).is_dir():
        shutil.copytree(CORPUS / name, folder, dirs_exist_ok=True)


def _write_seeds(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(data)


def _with_atheris(name, work, runs, seconds):
    """Fuzz a target until all runs are done; a crash is kept, and the rest is run after it."""
    target = TARGETS[name]
    words = work / "words"
    words.write_bytes(b"".join(b'"%s"\n' % _escaped(word) for word in (*_WORDS, *target.words)))
    end = time.monotonic() + seconds
    figures = {"runs": 0}
    while figures["runs"] < runs and time.monotonic() < end:
        told = _libfuzzer(
            name,
            work,
            f"-runs={min(runs - figures['runs'], _AT_ONCE)}",
            f"-max_total_time={max(int(end - time.monotonic()), 1)}",
            f"-max_len={target.largest}",
            f"-timeout={watch.SECONDS:.0f}",
            f"-rss_limit_mb={_RSS}",
            f"-dict={words}",
            f"-artifact_prefix={work / 'findings' / 'crash-'}",
            "-print_final_stats=1",
            "-reload=0",
            work / "corpus",
        )
        shown = re.findall(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", told, re.M)
        done = re.search(r"stat::number_of_executed_units:\s+(\d+)", told)
        if not shown:
            raise SystemExit(f"{name}: libFuzzer did not start:\n{told[-3000:]}")
        figures["runs"] += int(done[1]) if done else int(shown[-1][0])
        figures["branches"], figures["corpus"] = int(shown[-1][1]), int(shown[-1][3])
    return figures


def _libfuzzer(name, work, *arguments):
    """What libFuzzer says on a run of its own."""
    (work / "findings").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz.with_atheris", name, work / "findings", *arguments]
    with open(work / "log", "wb") as log:
        subprocess.run(list(map(str, command)), stdout=log, stderr=log, check=False)
    return (work / "log").read_text(errors="replace")


def _with_hypothesis(name, work, runs, seconds):
    """Fuzz a target; an input that ends the process is kept, and ends the fuzzing of its target."""
    command = [sys.executable, "-m", "fuzz.with_hypothesis", name, work / "findings"]
    command += [runs, seconds, work / "corpus"]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    running = work / "findings" / RUNNING
    if run.returncode:
        if not running.exists():
            raise SystemExit(f"{name}: Hypothesis did not start:\n{run.stderr[-3000:]}")
        running.rename(running.with_name(f"crash-{time.time_ns():x}"))
    return json.loads(run.stdout.splitlines()[-1])


def _escaped(word):
    """A word as libFuzzer's dictionaries have it."""
    return b"".join(
        bytes([c]) if 32 <= c < 127 and c not in b'"\\' else b"\\x%02x" % c for c in word
    )


def _findings(work):
    """What was found, in one line each."""
    found = []
    for path in sorted((work / "findings").glob("*")):
        if path.name.startswith("crash-"):
            found.append(path.name)
        elif path.suffix == ".json":
            note = json.loads(path.read_text())
            found.append(f"{note['kind']} at {note['where']} ({path.stem})")
    return found


def _keep(name, work):
    """Take the fewest inputs that reach all branches over into the corpus; how many there are.

    Inputs that code makes are not among them.
    """
    with tempfile.TemporaryDirectory() as made:
        merged = Path(made)
        _write_seeds(name, merged)
        planted = set(merged.iterdir())
        folders = [CORPUS / name] if (CORPUS / name).is_dir() else []
        flags = "-merge=1", f"-timeout={watch.SECONDS:.0f}"
        _libfuzzer(name, work, *flags, merged, *folders, work / "corpus")
        files = sorted(set(merged.iterdir()) - planted, key=lambda path: path.stat().st_size)
        shutil.rmtree(CORPUS / name, ignore_errors=True)
        (CORPUS / name).mkdir(parents=True)
        n_bytes = n_files = 0
        for path in files:
            n_bytes += path.stat().st_size
            if n_bytes > _KEPT:
                break
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            shutil.copyfile(path, CORPUS / name / digest)
            n_files += 1
    return n_files


def _line(name, figures):
    branches = f"{figures['branches']} branches, " if "branches" in figures else ""
    return (
        f"{name}: {figures['runs']:,} runs, {figures['runs_a_second']:,} a second, {branches}"
        f"{figures['corpus']} inputs, {len(figures['findings'])} findings"
        + "".join(f"\n    {one}" for one in figures["findings"])
    )


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    sys.exit(main())
