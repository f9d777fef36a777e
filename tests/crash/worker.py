"""The process whose children are killed: it has imported everything, and forks one per order.

So a child is at work from its first moment, and a random moment of its life falls into the work
and not into its imports. Orders and answers are lines of JSON. A child may be told to send itself
a signal just before the n-th change that it makes to the file system below its folder.
"""

import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from crash.operations import OPERATIONS, world

PATIENCE = 300  # seconds after which a child is ended by the system
CHANGES = {"os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts the changes to files below a folder as they are about to be made."""

    def __init__(self, place, number, at):
        self.place, self.number, self.at = place, number, at
        self.count = 0

    def __call__(self, event, arguments):
        if self.concerns(event, arguments):
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), self.number)

    def concerns(self, event, arguments):
        if event == "open":
            path, _, flags = arguments
            if not flags & WRITES:
                return False
        elif event in CHANGES:
            path = arguments[0]
        else:
            return False
        if isinstance(path, int):
            return False
        path = os.fsdecode(path)  # a bare name: of a folder that is being removed
        return path.startswith(self.place) or not os.path.isabs(path)


def warm_up():
    """Load what is loaded when it is first needed, compiled functions above all."""
    import latem.cli.main
    import latem.experiments.runner
    import latem.features.embed
    import latem.features.onnx_encoder
    import latem.workflows.bulk
    import latem.workflows.bulk_features
    import latem.workflows.train

    data = world()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        latem.write_folder(data, place / "data")
        latem.workflows.train.train_model(
            place / "data", "att", kind="LatEm", preset="paper", verbose=False,
            given={"n_maps": 2, "learning_rate": 0.1, "n_epochs": 1},
        )  # fmt: skip


def start(order):
    """Fork a child that does what was ordered; it is at work when this returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        return child
    try:
        work(order, writing)
    finally:
        os._exit(99)


def work(order, ready):
    os.setpgid(0, 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    signal.alarm(PATIENCE)
    steps = Steps(order["place"], order["signal"], order["at"])
    sys.addaudithook(steps)
    os.write(ready, b".")
    os.close(ready)
    code = 0
    try:
        OPERATIONS[order["operation"]].run(Path(order["inputs"]), Path(order["place"]))
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:
        code = getattr(error, "exit_code", 70)  # of typer, outside of a command
        if code == 70:
            traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    Path(order["steps"]).write_text(str(steps.count))
    os._exit(code)


def main():
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            status = os.waitpid(order["wait"], 0)[1]
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            print(start(order), flush=True)


if __name__ == "__main__":
    main()
