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
    album: Annotated[
        bool,
        typer.Option(
            "--album",
            help="Name the pictures together (transductive): pictures that resemble each other "
            "tend to get the same name, and every answer depends on all pictures.",
        ),
    ] = False,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="With --album: names given by hand (.csv with image and class, paths from its own "
            "folder); pictures like these follow."
        ),
    ] = None,
    expected_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --album: share of the classes that occur in it.",
            show_default="learned",
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

    With --album all pictures are read before the first is named: memory grows with their number,
    and an interrupted command starts from the beginning, also with --out.
    """
    if groups is not None and not explain:
        raise typer.BadParameter("--groups is for explanations: give --explain as well.")
    if out is not None and output != "table":
        raise typer.BadParameter(
            "--format is for what is printed; the ending of --out says how the file is written."
        )
    if not album and (labels is not None or expected_share is not None):
        raise typer.BadParameter("--labels and --expected-share are for albums: give --album too.")
    if album and explain:
        raise typer.BadParameter(
            "--explain tells why the model gives a picture its name; with --album the other "
            "pictures have their part in it. Leave one of the two."
        )
    printer = Printer(output, explain=explain)
    likeness = Likeness(like, changes, most, least, called)
    with failures(CONTINUES if out is not None and not album else START_AGAIN):
        from latem.core.progress import progress_bar
        from latem.models.answers import DOUBTFUL, NONE
        from latem.models.files import load
        from latem.workflows.bulk import check_bulk_target, name_in_bulk, write_answers
        from latem.workflows.name_album import name_album, read_labels
        from latem.workflows.name_pictures import name_pictures

        if out is not None:
            check_bulk_target(out, explain=explain)
        fitted = load(model)
        found = printer.find(pictures)
        meant = candidates(classes, fitted, likeness)
        options = {} if weights is None else {"weights": weights}
        by_hand = None if labels is None else read_labels(labels, found)
        with progress_bar(not quiet, "naming", total=len(found), unit="pictures") as advance:
            if album:
                together = name_album(
                    fitted,
                    found,
                    meant,
                    labels=by_hand,
                    expected_share=expected_share,
                    top=top,
                    seen_penalty=seen_penalty,
                    false_accept_rate=false_accept_rate,
                    encoder_options=options,
                    progress=lambda done: advance(done, len(found)),
                )
            elif out is None:
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
        if album:
            answers = together
        if out is None:
            heading = among(classes, fitted, meant)
            printer.show(answers, f"album (transductive), {heading}" if album else heading)
            n_answers = len(answers) - len(answers.errors)
            if not quiet and output == "table":
                printer.judged(n_answers, answers.count(DOUBTFUL), answers.count(NONE), rate)
        else:
            if album:
                counts = write_answers(together, out, together.columns)
                n_lost, n_unsure, n_none = (counts[key] for key in ("error", DOUBTFUL, NONE))
                n_resumed = 0
            else:
                n_lost, n_unsure, n_none = bulk.n_unreadable, bulk.n_doubtful, bulk.n_none
                n_resumed = bulk.n_resumed
            printer.n_failed += n_lost
            n_answers = len(found) - n_lost
            printer.n_answered += n_answers
            resumed = f", {n_resumed} of them by an earlier run" if n_resumed else ""
            lost = f" {n_lost} could not be read." if n_lost else ""
            how_many = "1 picture is" if n_answers == 1 else f"{n_answers} pictures are"
            typer.echo(f"{how_many} answered in {out}{resumed}.{lost}")
            if not quiet:
                printer.judged(n_answers, n_unsure, n_none, rate)
        if album and not quiet:
            printer.transductive(n_answers, together.n_changed)
    printer.finish()
