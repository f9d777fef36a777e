"""What a reader may do with any bytes at all: read them, or refuse them with a sentence.

A refusal is an error that the command line turns into a sentence (`latem.cli.common.failures`) and
that latem itself raises: one that comes up from NumPy, `csv` or anything else by chance is a
finding, whatever its type. So is an input that takes longer than `SECONDS`, or more memory than
the larger of `FLOOR` and ten times its size.
"""

import ast
import re
import time
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import latem

SECONDS = 10.0
TIMES = 10  # bytes of memory for a byte of the file
FLOOR = 64 * 2**20  # bytes that any reader may take: buffers, tables of decoders
REFUSALS = (OSError, ValueError, TypeError, ImportError)
_SOURCES = str(Path(latem.__file__).parent)


@dataclass(frozen=True)
class Finding:
    """What a reader did and may not do.

    `kind` and `where` tell findings apart; `detail` is for whoever mends it.
    """

    kind: str
    where: str
    detail: str

    def __str__(self):
        return f"{self.kind} at {self.where}"


def judge(read, data, *, floor=FLOOR, measure=True):
    """Let a reader have some bytes; the finding if it did what it may not, otherwise None."""
    before = _reset_peak() if measure else 0
    start = time.process_time()  # not by the clock on the wall: the machine may be busy
    finding = None
    try:
        read(data)
    except REFUSALS as error:
        if not is_deliberate(error):
            finding = _from(error)
    except Exception as error:
        finding = _from(error)
    except BaseException as error:  # a panic of pyo3 is no Exception
        if type(error).__name__ != "PanicException":
            raise
        finding = _from(error)
    if finding is not None:
        return finding
    seconds = time.process_time() - start
    if seconds > SECONDS:
        return Finding("slow", "reader", f"{seconds:.1f} s for {len(data)} bytes")
    taken = _peak() - before if measure else 0
    if taken > max(floor, TIMES * len(data)):
        return Finding("memory", "reader", f"{taken} bytes for {len(data)} bytes")
    return None


def is_deliberate(error):
    """Whether an error was raised by a `raise` statement of latem."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    filename = trace.tb_frame.f_code.co_filename
    return filename.startswith(_SOURCES) and trace.tb_lineno in _raises(filename)


@cache
def _raises(filename):
    tree = ast.parse(Path(filename).read_bytes())
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _from(error):
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_SOURCES)]
    last = (ours or frames)[-1]
    where = f"{Path(last.filename).name}:{last.name}"
    return Finding(type(error).__name__, where, "".join(traceback.format_exception(error)))


def _reset_peak():
    """Bytes in memory now; the peak is counted from here on. 0 where the system cannot tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0
    return _peak()


def _peak():
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) * 1024
