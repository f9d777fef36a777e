"""What is answered about pictures: names, how sure they are, "none of these", or an error."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from latem.core.slim import needed

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("picture", "place", "class", "probability", "score", "verdict", "strangeness"),
    "error",
)
_TYPES = {
    **{"place": "Int64", "probability": "float64", "score": "float64", "strangeness": "float64"},
}
NAMED, DOUBTFUL, NONE = VERDICTS = ("named", "doubtful", "none of these")


@dataclass(frozen=True)
class Answer:
    """A picture and its best classes.

    Attributes
    ----------
    picture : str
        Its path, or what else it is known by.
    names : list of class names
        The best ones, best first, also where the answer is none of these; empty if the picture
        cannot be read.
    scores : list of float
        With the penalty on seen classes, if there is one, already subtracted.
    probabilities : list of float, or None
        None if the model was never calibrated.
    verdict : {"named", "doubtful", "none of these"} or None
        "named" where no more than the wanted share of outsiders (pictures of none of the
        candidates) looks as much like one of them, and the name is more likely than all others
        together; "none of these" where hardly any picture of a
        candidate (one in twenty) looks so little like one; "doubtful" in between. None if the
        model cannot tell.
    strangeness : float or None
        Share of outsiders that look at least as much like one of the candidates.
    error : str
        Why the picture cannot be read, if it cannot.
    explanation : dict or None
        Why the first name was given, if that was asked for.
    """

    picture: str
    names: list[Any]
    scores: list[float]
    probabilities: list[float] | None = None
    verdict: str | None = None
    strangeness: float | None = None
    error: str = ""
    explanation: Any = None

    @property
    def name(self) -> Any:
        """The answer: a class name, or None for none of these and where there is no answer."""
        return self.names[0] if self.names and not self.none_of_these else None

    @property
    def none_of_these(self) -> bool:
        """Whether the verdict is none of these."""
        return self.verdict == NONE

    def rows(self) -> list[tuple[Any, ...]]:
        """As lines of a table, one for each name, with the entries of `COLUMNS`."""
        if self.error:
            return [(self.picture, None, None, None, None, None, None, self.error)]
        sure: Sequence[float | None] = self.probabilities or [None] * len(self.names)
        return [
            (self.picture, place, name, p, score, self.verdict, self.strangeness, None)
            for place, (name, p, score) in enumerate(
                zip(self.names, sure, self.scores, strict=True), start=1
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        if self.error:
            return {"picture": self.picture, "error": self.error}
        sure: Sequence[float | None] = self.probabilities or [None] * len(self.names)
        return {
            "picture": self.picture,
            "answer": None if self.name is None else _plain(self.name),
            "verdict": self.verdict,
            "strangeness": self.strangeness,
            "classes": [
                {"class": _plain(name), "probability": p, "score": score}
                for name, p, score in zip(self.names, sure, self.scores, strict=True)
            ],
            **({} if self.explanation is None else {"explanation": self.explanation}),
        }

    def __str__(self) -> str:
        if self.error:
            return f"{self.picture}: {self.error}"
        sure = f" ({self.probabilities[0]:.0%})" if self.probabilities else ""
        if self.none_of_these:
            return f"{self.picture}: {NONE}; most like {self.names[0]}{sure}"
        return f"{self.picture}: {self.names[0]}{sure}{', doubtful' * (self.verdict == DOUBTFUL)}"


class Answers(Sequence[Answer]):
    """Answers about several pictures, in the order of the pictures.

    Parameters
    ----------
    answers : sequence of Answer

    Attributes
    ----------
    columns : tuple of str
        Of `to_frame`; the entries of `Answer.rows`.
    """

    columns: ClassVar[tuple[str, ...]] = COLUMNS

    def __init__(self, answers: Sequence[Answer]):
        self._answers = list(answers)

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> Answers: ...

    def __getitem__(self, place: int | slice) -> Answer | Answers:
        found = self._answers[place]
        return Answers(found) if isinstance(found, list) else found

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def __repr__(self) -> str:
        shown = "\n".join(f"  {answer}" for answer in self._answers[:10])
        more = f"\n  … and {len(self) - 10} more" if len(self) > 10 else ""
        n = "1 picture" if len(self) == 1 else f"{len(self)} pictures"
        return f"Answers for {n}\n{shown}{more}"

    @property
    def names(self) -> np.ndarray:
        """The answers, of shape (n_pictures,): class names, None for none of these or an error."""
        return np.array([answer.name for answer in self._answers], dtype=object)

    def count(self, verdict: Any) -> int:
        """Number of pictures with a verdict."""
        return sum(answer.verdict == verdict for answer in self._answers)

    @property
    def errors(self) -> list[Answer]:
        """Those of pictures that cannot be read."""
        return [answer for answer in self._answers if answer.error]

    def to_frame(self) -> pd.DataFrame:
        """As a table with a line for each name of each picture.

        Returns
        -------
        DataFrame
            With the columns picture, place (1 is the best), class, probability, score, verdict,
            strangeness and error, as `latem predict` writes them.
        """
        pd = needed("pandas", "Frames")
        rows = [row for answer in self._answers for row in answer.rows()]
        return pd.DataFrame(rows, columns=list(self.columns)).astype(_TYPES)

    def to_csv(self) -> str:
        """The table of `to_frame` as text, as `latem predict` prints and writes it."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.columns)
        for answer in self._answers:
            lines.writerows(answer.rows())
        return text.getvalue()

    def to_dicts(self) -> list[dict[str, Any]]:
        """As plain data, ready for JSON."""
        return [answer.to_dict() for answer in self._answers]


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
