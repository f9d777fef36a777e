"""Known vulnerabilities of every pinned version, by pip-audit; what was not audited is told.

    python tools/audit.py requirements/*.txt

pip-audit exits with 0 where it could not look a package up, and leaves out pins that are meant for
other systems or versions of Python. Here every pin counts: the exit code is 0 only if all of them
were looked up and none has a known vulnerability.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([^\s;\\]+)")


class Pin(NamedTuple):
    """One package in one version; names are as pip-audit spells them."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Verdict(NamedTuple):
    """What is to be said, and whether all is well."""

    lines: list[str]
    passed: bool


def read_pins(text: str) -> list[Pin]:
    """Pins of a requirements file, whatever system they are for."""
    found = []
    for line in text.splitlines():
        if line[:1].isspace() or not line or line.startswith("#"):
            continue
        pin = _PIN.match(line)
        if pin is None:
            raise ValueError(f"not a pinned version: {line!r}; write NAME==VERSION")
        found.append(Pin(re.sub(r"[-_.]+", "-", pin[1]).lower(), pin[2]))
    return found


def rounds(pins: Iterable[Pin]) -> list[list[Pin]]:
    """Pins in as few lists as it takes for none to have a package twice: pip-audit allows one."""
    found: list[dict[str, Pin]] = []
    for pin in dict.fromkeys(pins):
        free = next((one for one in found if pin.name not in one), None)
        if free is None:
            found.append(free := {})
        free[pin.name] = pin
    return [list(one.values()) for one in found]


def ask(pins: Sequence[Pin]) -> dict[Pin, dict[str, Any]]:
    """What pip-audit says of pins, by pin; nothing of those it says nothing about."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "pins.txt"
        listed.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins))
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", "--requirement", str(listed), "--no-deps",
             "--disable-pip", "--format", "json", "--progress-spinner", "off"],
            capture_output=True, encoding="utf-8",
        )  # fmt: skip
    try:
        entries = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip() or "no answer").splitlines()[-1]
        return {pin: {"skip_reason": f"pip-audit failed: {reason}"} for pin in pins}
    by_name = {pin.name: pin for pin in pins}
    return {by_name[e["name"]]: e for e in entries if e["name"] in by_name}


def judge(pins: Sequence[Pin], answers: Mapping[Pin, Mapping[str, Any]]) -> Verdict:
    """Verdict about pins from what pip-audit says of each."""
    lines, missing, vulnerable = [], {}, 0
    for pin in pins:
        answer = answers.get(pin, {"skip_reason": "pip-audit does not mention it"})
        if "skip_reason" in answer or answer.get("version") != pin.version:
            missing[pin] = answer.get("skip_reason", "pip-audit looked at another version")
            continue
        vulnerable += bool(answer["vulns"])
        for vuln in answer["vulns"]:
            fixed = ", ".join(vuln["fix_versions"]) or "no version"
            lines.append(f"{pin} is vulnerable: {vuln['id']}, fixed in {fixed}")
    audited = len(pins) - len(missing)
    if missing:
        pin, reason = next(iter(missing.items()))
        lines.append(
            f"{len(missing)} of {len(pins)} pinned versions were NOT audited, {pin} for one "
            f"({reason}); run make audit where the advisory service can be reached."
        )
    lines.append(f"{audited} of {len(pins)} pinned versions audited, {vulnerable} vulnerable")
    return Verdict(lines, not missing and not vulnerable)


def main(argv: Sequence[str] | None = None) -> int:
    """Audit requirements files; gives 1 if anything is vulnerable or was not audited."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="requirements files with pins")
    files = parser.parse_args(argv).files
    pins = [pin for path in files for pin in read_pins(path.read_text(encoding="utf-8"))]
    pins = list(dict.fromkeys(pins))
    if not pins:
        parser.error("there is no pin in these files")
    answers = {pin: answer for part in rounds(pins) for pin, answer in ask(part).items()}
    verdict = judge(pins, answers)
    print("\n".join(verdict.lines))
    return int(not verdict.passed)


if __name__ == "__main__":
    sys.exit(main())
