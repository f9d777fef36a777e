"""Requests and answers as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Among = Literal["unseen", "seen", "all"]
ClassName = Annotated[str, Field(min_length=1, max_length=300)]
Candidates = Annotated[
    Among | Annotated[list[ClassName], Field(min_length=1, max_length=20_000)],
    Field(
        description="Which classes may be the answer: a group, or a list of names (invented ones "
        "included) and groups."
    ),
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
TraitValue = Finite | Annotated[str, Field(max_length=300)] | list[str] | None
Traits = Annotated[list[ClassName], Field(max_length=1000)]
Row = Annotated[int, Field(ge=0, le=2**53)]
Handle = Annotated[str, Field(max_length=64)]


class Body(BaseModel):
    """A request; fields that do not exist are refused."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        default=None, max_length=300, description="Which model; the first one."
    )


class Options(Body):
    """How images are to be named."""

    classes: Candidates = "unseen"
    top: int = Field(default=5, ge=1, le=50)
    explain: bool = False
    keep: bool = Field(default=False, description="Remember the features for explanations.")
    false_accept_rate: Share | None = None
    seen_penalty: Finite | None = None


class PredictRequest(Options):
    """Images of the dataset, or feature vectors, to be named."""

    row: Row | None = Field(default=None, description="An image of the dataset.")
    rows: list[Row] | None = Field(default=None, max_length=4096)
    features: list[list[float]] | None = Field(default=None, description="One vector per image.")


class Image(Body):
    """One image: a row of the dataset, a picture that was kept, or a feature vector."""

    row: Row | None = None
    image: Handle | None = None
    features: list[float] | None = None


class ExplainRequest(Image):
    """Why an image is named as it is."""

    classes: Candidates = "unseen"
    of: ClassName | None = Field(
        default=None, description="Explain this class instead of the best."
    )
    against: ClassName | None = Field(default=None, description="Compare with this one.")
    n: int = Field(default=10, ge=1, le=200)


class NeighboursRequest(Image):
    """Which training pictures are most like an image."""

    n: int = Field(default=8, ge=1, le=100)


class DescribedClass(Body):
    """A class that is like another one, with changes, or that is described in words."""

    like: ClassName | None = Field(
        default=None, description="The class it is like; else the mean of all."
    )
    set: dict[str, TraitValue] = Field(default_factory=dict, max_length=5000)
    most: Traits = Field(default_factory=list)
    least: Traits = Field(default_factory=list)
    text: str | None = Field(default=None, max_length=2000)


class NewClass(DescribedClass):
    """A class to be kept for the session."""

    name: ClassName
    write: bool = Field(default=False, description="Also write it to the server's file of classes.")


class RetrieveRequest(DescribedClass):
    """A class whose pictures are wanted: by name, or by its description."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: ClassName | None = Field(default=None, alias="class")
    among: Among = "unseen"
    k: int = Field(default=60, ge=1, le=500)


class AlbumRequest(Body):
    """An album to be filled."""


class NamesRequest(Body):
    """How the pictures of an album are to be named."""

    classes: Candidates = "unseen"
    together: bool = False
    labels: dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], ClassName] = Field(
        default_factory=dict, max_length=5000
    )
    top: int = Field(default=5, ge=1, le=50)
    expected_share: Share | None = None


class SignIn(BaseModel):
    """The token."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(max_length=1000)


# -- answers --------------------------------------------------------------------------------------


class Ranked(BaseModel):
    """A class and how well it fits."""

    class_: str | int | float = Field(alias="class")
    label: str
    symbol: str
    probability: float | None
    score: float
    picture: int | None
    seen: bool
    invented: bool


class AnswerOut(BaseModel):
    """An image and its best classes, or why it cannot be read."""

    picture: str
    answer: str | int | float | None = None
    verdict: Literal["named", "doubtful", "none of these"] | None = None
    strangeness: float | None = None
    classes: list[Ranked] = Field(default_factory=list)
    explanation: dict[str, Any] | None = None
    image: str | None = None
    error: str | None = None


class PredictResponse(BaseModel):
    """Answers, in the order of the images."""

    model: str
    version: int
    among: str
    temperature: float | None
    false_accept_rate: float | None
    answers: list[AnswerOut]
