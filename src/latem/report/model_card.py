"""What a model file holds, for people: as plain lines, and as a model card in Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from latem.models.info import ModelInfo

_SHOWN = 8  # names in a line
_SILENT = ("class_embeddings", "n_threads", "verbose")  # parameters that say nothing of the model
_WIDTH = 22  # of the column of labels


def info_lines(info: ModelInfo) -> list[str]:
    """A quiet table: one line for everything the file says.

    Parameters
    ----------
    info : ModelInfo
    """
    return [f"{label:<{_WIDTH}}{value}".rstrip() for label, value in _entries(info)]


def _entries(info: ModelInfo) -> list[tuple[str, str]]:
    kind = info.model if info.chosen_model is None else f"{info.model} (chose {info.chosen_model})"
    entries = [
        ("model", kind),
        ("file", f"{info.path}, {_bytes(info.n_bytes)}, format {info.format}"),
        ("learned numbers", f"{info.n_numbers:,}"),
        ("parameters", _pairs(info.parameters)),
    ]
    entries += [
        (f"member {member.name}", f"{member.model}: {_pairs(member.parameters)}")
        for member in info.members
    ]
    entries += [
        ("seen classes", _listed(info.seen)),
        ("unseen classes", _listed(info.unseen)),
    ]
    entries += [("class table", _table(table)) for table in info.tables]
    entries += [
        ("features", f"{info.n_features}, encoder {_encoder(info)}"),
        ("answers", _answers(info) or "not calibrated"),
        *_scores(info),
        ("training images", _training(info)),
        ("written with", _pairs(info.versions)),
    ]
    return entries


def model_card(info: ModelInfo) -> str:
    """A model card in Markdown: what it is, what it can name, how good it is, its limits.

    Parameters
    ----------
    info : ModelInfo
    """
    kind = info.model if info.chosen_model is None else f"{info.chosen_model}, by {info.model}"
    title = f"# {_escaped(kind)}: names {len(info.known)} classes"
    parts = [
        [
            title,
            f"A zero-shot model: it learned from images of {len(info.seen)} classes, and names "
            f"any class that is described by the same table. {_bytes(info.n_bytes)}, "
            f"{info.n_numbers:,} learned numbers.",
        ],
        ["## What it can name", *_card_classes(info)],
        ["## How it was trained", *_card_training(info)],
        ["## How good it is", *_card_scores(info)],
        ["## Limits", *(f"- {line}" for line in _limits(info))],
        ["## Versions", *(f"- {name} {value}" for name, value in info.versions.items())],
    ]
    return "\n\n".join("\n".join(_spaced(part)) for part in parts) + "\n"


def _spaced(lines: Sequence[str]) -> list[str]:
    """Paragraphs apart from each other, items of a list together."""
    out: list[str] = []
    for line in lines:
        listed = line.startswith("- ") and bool(out) and out[-1].startswith("- ")
        out += [line] if listed or not out else ["", line]
    return out


def _card_classes(info: ModelInfo) -> list[str]:
    lines = [
        f"- {len(info.seen)} seen classes: {_escaped(_names(info.seen))}",
        f"- {len(info.unseen)} unseen classes: {_escaped(_names(info.unseen))}",
    ]
    for table in info.tables:
        columns = "" if table.columns is None else f": {_escaped(_names(table.columns))}"
        lines.append(
            f"- class table {_escaped(table.name) or '(no name)'}, {table.n_columns} "
            f"columns{columns}"
        )
    lines.append(f"- from {info.n_features} features, encoder {_escaped(_encoder(info))}")
    return lines


def _card_training(info: ModelInfo) -> list[str]:
    lines = [f"- model: {_escaped(info.model)}"]
    lines += [f"- parameters: `{_code(_pairs(info.parameters))}`"]
    lines += [
        f"- member {_escaped(one.name)}: {_escaped(one.model)}, `{_code(_pairs(one.parameters))}`"
        for one in info.members
    ]
    found = info.measured
    if found is not None and found.chosen:
        lines.append(f"- chosen on held-out classes: `{_code(_pairs(found.chosen))}`")
    if found is not None and found.dataset is not None:
        lines.append(f"- dataset: {_escaped(found.dataset)}, split {_escaped(str(found.split))}")
    lines.append(f"- training images: {_training(info)}")
    return lines


def _card_scores(info: ModelInfo) -> list[str]:
    lines = [f"- {label}: {value}" for label, value in _scores(info)]
    return lines or ["The file does not say: the model was not trained by `latem train`."]


def _limits(info: ModelInfo) -> list[str]:
    lines = [
        "A class without a description in the table's columns cannot be named.",
        "A picture of no candidate still gets the most compatible name"
        + (
            "."
            if info.false_accept_rate is None
            else f", unless it is called none of these; {info.false_accept_rate:.0%} of other "
            f"classes' pictures are named without doubt."
        ),
    ]
    if info.temperature is None:
        lines.append("Probabilities are not calibrated.")
    if info.encoder is None:
        lines.append("It does not know which encoder made its features, so it takes no pictures.")
    if len(info.tables) > 1:
        lines.append("Classes cannot be added by one table: its members have several.")
    return lines


def _scores(info: ModelInfo) -> list[tuple[str, str]]:
    found = info.measured
    entries = []
    if found is not None and found.held_out_score is not None:
        entries.append(("accuracy, held out", f"{found.held_out_score:.1%} per class"))
    if found is not None and found.unseen_score is not None and found.n_unseen:
        entries.append(
            (
                "accuracy, unseen",
                f"{found.unseen_score:.1%} per class, among {found.n_unseen} "
                f"(chance {1 / found.n_unseen:.1%})",
            )
        )
    return entries


def _answers(info: ModelInfo) -> str:
    known = {
        "temperature": info.temperature,
        "penalty on seen classes": info.seen_penalty,
        "false-accept rate": info.false_accept_rate,
        "smallest probability": info.rejection_threshold,
    }
    return ", ".join(f"{name} {value:.3g}" for name, value in known.items() if value is not None)


def _training(info: ModelInfo) -> str:
    if info.training_digest is None:
        return "not recorded" if info.n_training_images is None else f"{info.n_training_images:,}"
    count = "" if info.n_training_images is None else f"{info.n_training_images:,}, "
    return f"{count}digest {info.training_digest}"


def _encoder(info: ModelInfo) -> str:
    return "not known" if info.encoder is None else str(info.encoder.get("name", "without a name"))


def _table(table: Any) -> str:
    columns = "" if table.columns is None else f": {_names(table.columns)}"
    return f"{table.name or '(no name)'}, {table.n_columns} columns{columns}"


def _listed(names: Sequence[Any]) -> str:
    return f"{len(names)}" + (f": {_names(names)}" if names else "")


def _names(names: Sequence[Any]) -> str:
    shown = ", ".join(_plain(str(name)) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def _pairs(values: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in values.items() if name not in _SILENT}
    return ", ".join(f"{name} {_plain(_short(value))}" for name, value in shown.items())


def _short(value: Any) -> str:
    """A value with four digits that count; None as a dash."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


def _bytes(n: int) -> str:
    return f"{n / 1e6:.2f} MB" if n >= 1e5 else f"{n / 1e3:.1f} kB"


def _plain(text: str) -> str:
    """In one line, without characters that steer a terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", text)


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", _plain(text))


def _code(value: str) -> str:
    return _plain(value).replace("`", "'")
