"""`latem embed …`: class tables from names, words, hierarchies and sentences."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latem.cli.common import NOTHING_WRITTEN, Group, example, failures
from latem.cli.embed_images import register
from latem.core.progress import progress_bar
from latem.core.text_files import read_lines

if TYPE_CHECKING:
    import pandas as pd

    from latem.embeddings import ClassEmbeddings

app = typer.Typer(
    cls=Group,
    help="Make class tables from names or words, and datasets from pictures.",
    no_args_is_help=True,
)
register(app)


class Kind(str, Enum):
    """Kinds of class tables."""

    att = "att"
    w2v = "w2v"
    glo = "glo"
    hie = "hie"
    text = "text"


NEEDS = {
    Kind.att: "--attributes, a table or the folder of AwA or CUB",
    Kind.w2v: "--vectors, a file of word vectors",
    Kind.glo: "--vectors, a file of word vectors",
    Kind.text: "--descriptions, a CSV with the columns class,text",
}


@app.command(**example("embed classes names.txt --kind hie --hint animal --out hie.csv"))
def classes(
    names: Annotated[Path, typer.Argument(help="Text file with one class name per line.")],
    kind: Annotated[Kind, typer.Option(help="What describes the classes.")],
    out: Annotated[Path, typer.Option(help="The new class table (.csv).")],
    attributes: Annotated[
        Path | None, typer.Option(help="att: table of attributes, or folder of AwA or CUB.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="w2v, glo: file of word vectors (text, binary, .gz).")
    ] = None,
    synonyms: Annotated[
        Path | None, typer.Option(help="w2v, glo: CSV class,words; what to look up instead.")
    ] = None,
    senses: Annotated[
        Path | None, typer.Option(help="hie: CSV class,synset that fixes meanings.")
    ] = None,
    hint: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="hie: preferred kind, such as animal; repeatable."),
    ] = None,
    descriptions: Annotated[
        Path | None, typer.Option(help="text: CSV class,text; several lines per class allowed.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Where to write what was used for each class (.csv).")
    ] = None,
) -> None:
    """Describe classes by attributes, word vectors, WordNet's hierarchy or sentences."""
    with failures(NOTHING_WRITTEN):
        if out.suffix.lower() != ".csv":
            raise ValueError(f"{out}: a class table is written as .csv.")
        wanted = read_lines(names, "class names")
        given = {Kind.att: attributes, Kind.text: descriptions}.get(kind, vectors)
        if given is None and kind in NEEDS:
            raise ValueError(f"--kind {kind.value} needs {NEEDS[kind]}.")
        options = {
            "--attributes": (attributes, (Kind.att,)),
            "--vectors": (vectors, (Kind.w2v, Kind.glo)),
            "--synonyms": (synonyms, (Kind.w2v, Kind.glo)),
            "--senses": (senses, (Kind.hie,)),
            "--hint": (hint, (Kind.hie,)),
            "--descriptions": (descriptions, (Kind.text,)),
            "--report": (report, (Kind.w2v, Kind.glo, Kind.hie)),
        }
        for option, (value, kinds) in options.items():
            if value and kind not in kinds:
                raise ValueError(f"{option} does not go with --kind {kind.value}.")
        from latem.core.atomic import check_target

        read = (names, given, synonyms, senses)
        check_target(out, read)
        if report is not None:
            if report.resolve() == out.resolve():
                raise ValueError(f"--report needs another file than --out, {out}.")
            check_target(report, read)
        table, used = _embed(kind, wanted, given, synonyms, senses, hint)
        _write(table, out)
        if used is not None and report is not None:
            _write_frame(used, report)
    typer.echo(f"{out}: {table!r}")
    if used is not None:
        _tell(used, report)


@app.command(**example("embed train-words texts.txt --names names.txt --out w2v.txt"))
def train_words(
    corpus: Annotated[Path, typer.Argument(help="Text file, one sentence or document per line.")],
    out: Annotated[Path, typer.Option(help="The new file of word vectors (.txt).")],
    dimensions: Annotated[int, typer.Option(min=1, help="Width of the vectors.")] = 400,
    window: Annotated[int, typer.Option(min=1, help="Words of context on each side.")] = 5,
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out words that occur less often.")
    ] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the corpus.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads; only with one is the result reproducible.")
    ] = 1,
    names: Annotated[
        Path | None, typer.Option(help="Class names that become single words, one per line.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train word vectors (word2vec) on your own texts."""
    from latem.embeddings.words import train_word_vectors

    with (
        failures(NOTHING_WRITTEN),
        progress_bar(not quiet, "training word vectors", unit="epochs") as progress,
    ):
        from latem.core.atomic import check_target

        check_target(out, (corpus, names))
        trained = train_word_vectors(
            corpus,
            vector_size=dimensions,
            window=window,
            min_count=min_count,
            epochs=epochs,
            seed=seed,
            workers=workers,
            phrases=None if names is None else read_lines(names, "class names"),
            out=out,
            progress=progress,
        )
    typer.echo(f"{out}: {len(trained)} words × {trained.vector_size} dimensions")


def _embed(
    kind: Kind,
    names: list[str],
    given: Path | None,
    synonyms: Path | None,
    senses: Path | None,
    hint: list[str] | None,
) -> tuple[ClassEmbeddings, pd.DataFrame | None]:
    """The table, and a report of what was used where names had to be understood."""
    if kind is Kind.att:
        from latem.embeddings.attributes import read_attributes

        return read_attributes(given or "", name="att").select(names), None
    if kind is Kind.text:
        from latem.embeddings.text import text_embeddings

        return text_embeddings(given or "").select(names), None
    if kind is Kind.hie:
        from latem.embeddings.hierarchy import hierarchy_embeddings

        return hierarchy_embeddings(names, senses=senses, hint=hint)
    from latem.embeddings.words import word_embeddings

    return word_embeddings(names, given, synonyms=synonyms, name=kind.value)


def _write(table: ClassEmbeddings, path: Path) -> None:
    _write_frame(table.to_frame(), path)


def _write_frame(frame: pd.DataFrame, path: Path) -> None:
    from latem.core.atomic import write_text

    write_text(path, frame.to_csv(lineterminator="\n"))


def _tell(used: pd.DataFrame, report: Path | None) -> None:
    """Say in a few lines what was used, and what deserves a look."""
    odd = used["missing"] != "" if "missing" in used else used["ambiguous"]
    if odd.any():
        what = "were found by some of their words only" if "missing" in used else "are ambiguous"
        names = used.index[odd].tolist()
        first = ", ".join(map(str, names[:5])) + (", …" if len(names) > 5 else "")
        typer.echo(f"{len(names)} of {len(used)} names {what}: {first}")
    if report is None:
        typer.echo("Write what was used for each class to a file with --report FILE.csv.")
    else:
        typer.echo(f"{report}: what was used for each class")
