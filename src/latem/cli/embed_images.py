"""`latem embed images`: a dataset folder from pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latem.cli.common import CONTINUES, example, failures
from latem.cli.data import OrderOption, Out, TableOption, UnseenOption, tables_of, unseen_of
from latem.core.progress import progress_bar

if TYPE_CHECKING:
    from latem.features import Embedded

_SHOWN = 10  # pictures that could not be read, on the screen


def register(app: typer.Typer) -> None:
    """Add the command to the app of `latem embed`."""
    line = "embed images photos --table att=traits.csv --unseen unseen.txt --out birds"
    app.command(**example(line))(images)


def images(
    source: Annotated[
        Path,
        typer.Argument(help="Folder with a folder of pictures per class, or a CSV image,class."),
    ],
    out: Out,
    table: TableOption,
    encoder: Annotated[
        str,
        typer.Option(
            help="efficientnet-lite0 (needs no download), googlenet, resnet101, timm:NAME, "
            "open_clip:NAME/PRETRAINED or FILE.onnx."
        ),
    ] = "efficientnet-lite0",
    unseen: UnseenOption = None,
    order: OrderOption = None,
    weights: Annotated[
        Path | None, typer.Option(help="Local weight file; without it the library downloads one.")
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="ONNX: side of the input.")] = None,
    mean: Annotated[
        str | None, typer.Option(help="ONNX: mean of red, green, blue (0 to 1), as R,G,B.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(help="ONNX: their standard deviations, as R,G,B.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="ONNX: the output to take; by default the first.")
    ] = None,
    val_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=0.99, help="Share of the seen classes for val; a third if not given."
        ),
    ] = None,
    held_out: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.99,
            help="Share of each seen class's pictures kept from training, for latem evaluate "
            "--generalized.",
        ),
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for choosing val classes and held-out pictures.")
    ] = 0,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out classes that no table describes.")
    ] = False,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures per call of the encoder.")] = 32,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default every core.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Turn pictures into a dataset folder, by a pretrained encoder; continues if interrupted.

    Pictures that cannot be read are left out and listed in skipped.csv.
    """
    given = {
        "weights": weights,
        "size": size,
        "mean": _numbers("--mean", mean),
        "std": _numbers("--std", std),
        "output": output,
    }
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    with failures(CONTINUES):
        from latem.features.embed import VAL_SHARE, embed_pictures

        with progress_bar(not quiet, "embedding pictures", unit="pictures") as progress:
            made = embed_pictures(
                source,
                out,
                tables_of(table, order),
                encoder=encoder,
                encoder_options=options,
                unseen=unseen_of(unseen),
                val_share=VAL_SHARE if val_share is None else val_share,
                held_out=held_out,
                seed=seed,
                skip_unknown=skip_unknown,
                name=name,
                batch_size=batch_size,
                n_threads=threads,
                progress=progress,
            )
    _tell(made, out)


def _numbers(option: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3:
        raise typer.BadParameter(f"{option} must be three numbers R,G,B, not {text!r}.")
    return numbers


def _tell(made: Embedded, out: Path) -> None:
    typer.echo(f"{out}: {made.dataset!r}")
    for name, split in made.dataset.splits.items():
        typer.echo(
            f"split {name}: {len(split.train)} train, {len(split.val)} val and "
            f"{len(split.test)} test classes"
            + (f", {len(split.held_out)} held-out pictures" if split.held_out else "")
        )
    if made.n_reused:
        typer.echo(f"{made.n_reused} pictures were already done by an interrupted run.")
    for note in made.notes:
        typer.echo(f"latem: {note}", err=True)
    if made.skipped:
        from latem.features.embed import UNDESCRIBED

        listed = f"{out / 'skipped.csv'} lists"
        typer.echo(f"latem: {len(made.skipped)} left out; {listed} them:", err=True)
        odd_first = sorted(made.skipped, key=lambda item: item.reason == UNDESCRIBED)
        for item in odd_first[:_SHOWN]:
            typer.echo(f"  {item.image}: {item.reason}", err=True)
        if len(made.skipped) > _SHOWN:
            typer.echo(f"  and {len(made.skipped) - _SHOWN} more", err=True)
