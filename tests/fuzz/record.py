"""What all runs of a reader come to, in a JSON file: slow readers reach a million over several.

`runs` and `seconds` are sums over all runs that were recorded, also those with earlier versions of
the reader; `last` is what the last one did. All else, findings above all, is of the last one.
"""

import json


def recorded_runs(path, name, tool):
    """How often a reader was run with a tool, as far as recorded.

    Runs with a guide and without one are not the same: those of another tool do not count.
    """
    one = _read(path).get(name, {})
    return one["runs"] if one.get("tool") == tool else 0


def add(path, name, tool, figures):
    """Add the figures of a run to those of earlier ones; a change of the tool begins anew."""
    known = _read(path)
    before = known.get(name, {})
    if before.get("tool") != tool:
        before = {}
    last = {key: figures[key] for key in ("runs", "seconds", "runs_a_second")}
    sums = {
        "runs": before.get("runs", 0) + last["runs"],
        "seconds": round(before.get("seconds", 0) + last["seconds"], 1),
    }
    rest = {key: value for key, value in figures.items() if key not in last}
    known[name] = {"tool": tool, **sums, "last": last, **rest}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")  # a run that is ended here loses no figures
    new.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
    new.replace(path)


def _read(path):
    return json.loads(path.read_text()) if path.exists() else {}
