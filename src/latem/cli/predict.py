"""`latem predict`: names for pictures from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latem.cli.answers import Format, Pictures, Printer
from latem.cli.candidates import (
    Called,
    Changes,
    Classes,
    Least,
    Like,
    Likeness,
    Most,
    among,
    candidates,
)
from latem.cli.common import CONTINUES, START_AGAIN, failures


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    pictures: Pictures,
    classes: Classes = "unseen",
    like: Like = None,
    changes: Changes = None,
    most: Most = None,
    least: Least = None,
    called: Called = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes to give, best first.")] = 5,
    false_accept_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of pictures of none of the classes that may be named without doubt; 1 "
            "names every picture.",
            show_default="as chosen in training",
        ),
    ] = None,
    seen_penalty: Annotated[
        float | None,
        typer.Option(
            help="γ, subtracted from the scores of seen classes among seen and unseen ones; 0 "
            "switches it off.",
            show_default="as chosen in training",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which traits made the difference.")
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option(
            help="With --explain: table of traits and the family each belongs to (CSV); by "
            "default the part before '::' of their names."
        ),
    ] = None,
    output: Format = "table",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the answers to a .csv, .jsonl or .parquet file; the same command "
            "continues after an interruption."
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Local weight file of the encoder, if it needs one.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Name pictures with a trained model.

    A name with a question mark is doubtful: too many pictures of other classes look as much like
    one of these. Pictures that hardly look like any of the classes are none of these. Pictures that
    cannot be read are listed, and the exit code is then 3.
    """
    if groups is not None and not explain:
        raise typer.BadParameter("--groups is for explanations: give --explain as well.")
    if out is not None and output != "table":
        raise typer.BadParameter(
            "--format is for what is printed; the ending of --out says how the file is written."
        )
    printer = Printer(output, explain=explain)
    likeness = Likeness(like, changes, most, least, called)
    with failures(CONTINUES if out is not None else START_AGAIN):
        from latem.core.progress import progress_bar
        from latem.models.answers import DOUBTFUL, NONE
        from latem.models.files import load
        from latem.workflows.bulk import check_bulk_target, name_in_bulk
        from latem.workflows.name_pictures import name_pictures

        if out is not None:
            check_bulk_target(out, explain=explain)
        fitted = load(model)
        found = printer.find(pictures)
        meant = candidates(classes, fitted, likeness)
        options = {} if weights is None else {"weights": weights}
        with progress_bar(not quiet, "naming", total=len(found), unit="pictures") as advance:
            if out is None:
                answers = name_pictures(
                    fitted,
                    found,
                    meant,
                    top=top,
                    seen_penalty=seen_penalty,
                    false_accept_rate=false_accept_rate,
                    explain=explain,
                    groups=groups,
                    encoder_options=options,
                    progress=lambda done: advance(done, len(found)),
                )
            else:
                bulk = name_in_bulk(
                    fitted,
                    found,
                    out,
                    meant,
                    top=top,
                    seen_penalty=seen_penalty,
                    false_accept_rate=false_accept_rate,
                    explain=explain,
                    groups=groups,
                    encoder_options=options,
                    progress=advance,
                )
        rate = false_accept_rate
        if rate is None and hasattr(fitted, "acceptance_"):
            rate = fitted.acceptance_.false_accept_rate
        if out is None:
            printer.show(answers, among(classes, fitted, meant))
            n_answers = len(answers) - len(answers.errors)
            if not quiet and output == "table":
                printer.judged(n_answers, answers.count(DOUBTFUL), answers.count(NONE), rate)
        else:
            printer.n_failed += bulk.n_unreadable
            n_answers = bulk.n_pictures - bulk.n_unreadable
            printer.n_answered += n_answers
            resumed = f", {bulk.n_resumed} of them by an earlier run" if bulk.n_resumed else ""
            lost = f" {bulk.n_unreadable} could not be read." if bulk.n_unreadable else ""
            how_many = "1 picture is" if n_answers == 1 else f"{n_answers} pictures are"
            typer.echo(f"{how_many} answered in {out}{resumed}.{lost}")
            if not quiet:
                printer.judged(n_answers, bulk.n_doubtful, bulk.n_none, rate)
    printer.finish()
