"""`latem predict`: names for pictures from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from latem.cli.answers import Format, Printer
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
from latem.cli.common import CONTINUES, START_AGAIN, failures, not_nan


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    pictures: Annotated[
        list[str],
        typer.Argument(
            metavar="PICTURES...",
            help="Pictures, folders of pictures, lists of them (.csv with the column image), or - "
            "for paths on standard input, one per line. Or features: one .npy file, one dataset "
            "folder, or .parquet files (several, or a folder of them).",
        ),
    ],
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
            callback=not_nan,
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
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column of .parquet files that says what each row is called.",
            show_default="the row's number",
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
            callback=not_nan,
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
    """Name pictures, or rows of features, with a trained model.

    A name with a question mark is doubtful: too many pictures of other classes look as much like
    one of these. Pictures that hardly look like any of the classes are none of these. Pictures that
    cannot be read are listed, and the exit code is then 3.

    Features are read a little ahead, and memory does not grow with their number if --out is given.
    A row is called by the image's name in a dataset folder, by --id, or by its number, from 0.

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
    with failures():
        of_features = printer.features(pictures)
    _check_kind(
        of_features,
        {"--explain": explain, "--album": album, "--weights": weights is not None},
        {"--id": id_column is not None},
    )
    likeness = Likeness(like, changes, most, least, called)
    with failures(CONTINUES if out is not None and not album else START_AGAIN):
        from latem.core.atomic import check_target
        from latem.core.progress import progress_bar
        from latem.models.answers import DOUBTFUL, NONE
        from latem.models.files import load
        from latem.workflows.answer_files import (
            check_bulk_target,
            check_there_is_one,
            write_answers,
        )
        from latem.workflows.bulk import name_in_bulk
        from latem.workflows.bulk_features import name_features, name_features_in_bulk
        from latem.workflows.name_album import name_album, read_labels
        from latem.workflows.name_pictures import name_pictures

        if out is not None and not of_features:
            read = (model, labels, groups, *pictures, *classes.split(","))
            check_bulk_target(out, explain=explain, inputs=read)
        fitted = load(model)
        found = [] if of_features else printer.find(pictures)
        if out is not None and not of_features:
            check_there_is_one(found)
            if not found:  # the reasons are told, and a file of earlier answers stays
                printer.finish()
        meant = candidates(classes, fitted, likeness)
        options = {} if weights is None else {"weights": weights}
        by_hand = None if labels is None else read_labels(labels, found)
        how: dict[str, Any] = {
            "top": top,
            "seen_penalty": seen_penalty,
            "false_accept_rate": false_accept_rate,
        }
        total = None if of_features else len(found)
        with progress_bar(not quiet, "naming", total=total, unit=printer.what[1]) as advance:
            if of_features and out is None:
                answers = name_features(
                    fitted, pictures, meant, id_column=id_column, progress=advance, **how
                )
            elif of_features and out is not None:
                check_target(out, (model, *classes.split(",")))
                bulk = name_features_in_bulk(
                    fitted, pictures, out, meant, id_column=id_column, progress=advance, **how
                )
            elif album:
                together = name_album(
                    fitted,
                    found,
                    meant,
                    labels=by_hand,
                    expected_share=expected_share,
                    encoder_options=options,
                    progress=lambda done: advance(done, len(found)),
                    **how,
                )
            elif out is None:
                answers = name_pictures(
                    fitted,
                    found,
                    meant,
                    explain=explain,
                    groups=groups,
                    encoder_options=options,
                    progress=lambda done: advance(done, len(found)),
                    **how,
                )
            else:
                bulk = name_in_bulk(
                    fitted,
                    found,
                    out,
                    meant,
                    explain=explain,
                    groups=groups,
                    encoder_options=options,
                    progress=advance,
                    **how,
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
            n_answers = (len(found) if album else bulk.n_pictures) - n_lost
            printer.n_answered += n_answers
            resumed = f", {n_resumed} of them by an earlier run" if n_resumed else ""
            lost = f" {n_lost} could not be read." if n_lost else ""
            how_many = f"{printer.counted(n_answers)} {'is' if n_answers == 1 else 'are'}"
            heading = among(classes, fitted, meant)
            typer.echo(f"{how_many} answered in {out}, {heading}{resumed}.{lost}")
            if not quiet:
                printer.judged(n_answers, n_unsure, n_none, rate)
        if album and not quiet:
            printer.transductive(n_answers, together.n_changed)
    printer.finish()


def _check_kind(of_features: bool, pictures: dict[str, bool], features: dict[str, bool]) -> None:
    """Refuse options that are for pictures only, or for features only."""
    wrong, others = (pictures, "pictures") if of_features else (features, "files of features")
    given = [name for name, is_given in wrong.items() if is_given]
    if given:
        raise typer.BadParameter(
            f"{given[0]} is for {others}; these are {'features' if of_features else 'pictures'}."
        )
