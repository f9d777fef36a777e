"""Fuzzing one target with atheris: libFuzzer's search, guided by the branches taken in Python.

A finding does not stop the run: it is kept once per kind and place. What does stop it, a crash of
a library or an input without an end, libFuzzer keeps.
"""

import random
import shlex
import sys

PARSERS = ["tomllib", "csv", "gzip", "zipfile", "openpyxl", "PIL"]
"""Packages in Python that do the parsing, besides latem."""


def main(name, findings, options):
    """Fuzz a target; libFuzzer ends the process.

    Parameters
    ----------
    name : str
    findings : path
        Folder for inputs that show something wrong.
    options : list of str
        Of libFuzzer: flags, and folders of inputs.
    """
    import atheris

    with atheris.instrument_imports(
        include=["latem", *PARSERS],
        exclude=[f"latem.models.sgd.{name}kernels" for name in ("", "dense_", "team_")],  # compiled
    ):
        from fuzz.findings import Findings, inputs_in
        from fuzz.targets import TARGETS

        target = TARGETS[name]
        found = Findings(target, findings)
        found.warm_up(inputs_in(*(one for one in options if not one.startswith("-"))))

    def mutate(data, size, seed):
        def inner(part, largest):
            return atheris.Mutate(part, max(largest, 1))

        return target.mutate(data, size, random.Random(seed), inner)

    extra = {} if target.mutate is None else {"custom_mutator": mutate}
    again = shlex.join([sys.executable, "-m", "fuzz.with_atheris", name, str(findings)])
    atheris.Setup([again, *options], found.look_at, **extra)  # a merge starts processes by it
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
