"""`latem data …`: look at, check, convert, split, index and fetch datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from latem.cli.common import CONTINUES, NOTHING_WRITTEN, Group, example, failures
from latem.core.progress import progress_bar
from latem.core.text_files import read_lines

if TYPE_CHECKING:
    from latem.datasets import ZeroShotDataset

app = typer.Typer(
    cls=Group,
    help="Look at, check, convert, split, index and fetch datasets.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(help="A dataset folder.")]
Out = Annotated[Path, typer.Option(help="The new dataset folder.")]
TableOption = Annotated[
    list[str],
    typer.Option(
        "--table", metavar="NAME=FILE", help="A class table, as NAME=FILE or FILE; repeatable."
    ),
]
OrderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--order",
        metavar="COLUMN=ORDER",
        help="Ordered categories of a raw trait: 'size=small<medium<large'; repeatable.",
    ),
]
UnseenOption = Annotated[
    Path | None, typer.Option(help="Text file with one unseen (test) class per line.")
]


@app.command(**example("data check birds"))
def check(folder: Folder) -> None:
    """Say what is wrong with a dataset folder, line by line.

    Lines that begin with "warning:" tell of what works but deserves a look; with nothing else the
    folder is sound, and the exit code 0.
    """
    from latem.datasets.check import inspect_folder

    with failures():
        report = inspect_folder(folder)
    wrong = report.problems + report.obstacles
    for problem in wrong:
        typer.echo(problem)
    for warning in report.warnings:
        typer.echo(f"warning: {warning}")
    if wrong:
        raise typer.Exit(1)
    typer.echo(f"{folder} is sound{', but see the warnings' if report.warnings else ''}.")


@app.command(**example("data info birds --json"))
def info(
    folder: Folder,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a dataset folder holds."""
    from latem.datasets import read_folder
    from latem.datasets.check import describe

    with failures():
        dataset = read_folder(folder)
        facts = describe(dataset)
    if as_json:
        typer.echo(json.dumps({"name": dataset.name, **facts}, indent=2, ensure_ascii=False))
        return
    smallest, median, largest = facts["images_per_class"]
    tables = ", ".join(f"{name} ({width})" for name, width in facts["embeddings"].items())
    typer.echo(
        f"{dataset.name}: {facts['images']} images × {facts['features']} features "
        f"({facts['dtype']}, {facts['megabytes']} MB), {facts['classes']} classes "
        f"({smallest} to {largest} images each, median {median:g})"
    )
    typer.echo(f"class tables: {tables or 'none'}")
    if facts["splits"]:
        table = Table("split", "train", "val", "test", "seen images", "unseen", "held out")
        for name, counts in facts["splits"].items():
            table.add_row(name, *(str(count) for count in counts.values()))
        Console().print(table)
    for warning in facts["warnings"]:
        typer.echo(f"warning: {warning}")


convert = typer.Typer(
    cls=Group, help="Make a dataset folder from files in other formats.", no_args_is_help=True
)
app.add_typer(convert, name="convert")


def _write(dataset: ZeroShotDataset, out: Path) -> None:
    from latem.datasets.folder_writer import write_folder

    write_folder(dataset, out)
    typer.echo(f"{out}: {dataset!r}")


def tables_of(given: list[str], order: list[str] | None = None) -> dict[str, object]:
    """Class tables of --table options, by name; says what was done to raw traits."""
    from latem.embeddings.attributes import read_attributes

    tables: dict[str, object] = {}
    orders = orders_of(order)
    if orders and len(given) > 1:
        raise ValueError(
            "--order is for one --table; make the other tables with latem embed classes."
        )
    for entry in given:
        name, found, path = entry.partition("=")
        if not found:
            name, path = Path(entry).stem, entry
        if name in tables:
            raise ValueError(f"Two tables would be called {name!r}; name them: --table NAME=FILE.")
        tables[name] = table = read_attributes(path, name=name, ordered=orders)
        for note in table.encoding.notes if table.encoding is not None else ():
            typer.echo(f"latem: {path}: {note}", err=True)
    return tables


def orders_of(given: list[str] | None) -> dict[str, list[str]]:
    """Ordered categories of --order options, such as "size=small<medium<large"."""
    orders = {}
    for entry in given or []:
        name, _, values = entry.partition("=")
        parts = [value.strip() for value in values.split("<")]
        if not name or len(parts) < 2 or not all(parts):
            raise ValueError(f"--order takes COLUMN=LEAST<...<MOST, not {entry!r}.")
        orders[name.strip()] = parts
    return orders


def unseen_of(path: Path | None) -> list[str]:
    """Class names of an --unseen file."""
    if path is None:
        return []
    return read_lines(path, "unseen classes")


@convert.command(**example("data convert gbu CUB/res101.mat CUB/att_splits.mat --out birds"))
def gbu(
    features: Annotated[Path, typer.Argument(help="res101.mat")],
    splits: Annotated[Path, typer.Argument(help="att_splits.mat")],
    out: Out,
    standard: Annotated[
        Path | None, typer.Option(help="Folder with testclasses.txt of the standard split.")
    ] = None,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
) -> None:
    """The pair of MATLAB files of "The Good, the Bad and the Ugly"."""
    from latem.datasets.matlab import from_gbu

    with failures(NOTHING_WRITTEN):
        _write(from_gbu(features, splits, standard=standard, name=name), out)


@convert.command(**example("data convert release data_CUB.mat --out birds"))
def release(
    file: Annotated[Path, typer.Argument(help="data_*.mat")],
    out: Out,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
) -> None:
    """A data_*.mat file of the LatEm authors' release."""
    from latem.datasets.matlab import from_release

    with failures(NOTHING_WRITTEN):
        _write(from_release(file, name=name), out)


@convert.command(**example("data convert npz birds.npz --table att=traits.csv --out birds"))
def npz(
    file: Annotated[Path, typer.Argument(help="NPZ file with arrays features and labels.")],
    out: Out,
    table: TableOption,
    unseen: UnseenOption = None,
    order: OrderOption = None,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
) -> None:
    """An NPZ file, with class tables beside it."""
    from latem.datasets.arrays import from_npz

    with failures(NOTHING_WRITTEN):
        _write(
            from_npz(file, tables_of(table, order), unseen=unseen_of(unseen), name=name),
            out,
        )


@convert.command(
    name="table",
    **example("data convert table features.csv --table att=traits.csv --out birds"),
)
def from_lines(
    file: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet with a line per image.")],
    out: Out,
    table: TableOption,
    unseen: UnseenOption = None,
    order: OrderOption = None,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
) -> None:
    """A CSV, TSV or Parquet file of images × features, with class tables beside it."""
    from latem.datasets.arrays import from_table

    with failures(NOTHING_WRITTEN):
        _write(
            from_table(file, tables_of(table, order), unseen=unseen_of(unseen), name=name),
            out,
        )


@convert.command(
    **example("data convert pictures photos --features photos.npy --table traits.csv --out birds")
)
def pictures(
    folder: Annotated[Path, typer.Argument(help="One folder of pictures per class.")],
    features: Annotated[
        Path, typer.Option(help=".npy file: a row per picture, sorted by folder and file name.")
    ],
    out: Out,
    table: TableOption,
    unseen: UnseenOption = None,
    order: OrderOption = None,
    name: Annotated[str, typer.Option(help="The dataset's name.")] = "",
) -> None:
    """Class folders of pictures whose features are in a .npy file."""
    from latem.datasets.arrays import from_pictures

    with failures(NOTHING_WRITTEN):
        tables = tables_of(table, order)
        _write(
            from_pictures(folder, features, tables, unseen=unseen_of(unseen), name=name),
            out,
        )


@app.command(**example("data index birds --model birds.safetensors"))
def index(
    images: Annotated[Path, typer.Argument(help="A dataset folder, or a .npy file of features.")],
    model: Annotated[Path, typer.Option(help="Model file that pictures are to be found with.")],
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results only, no progress.")
    ] = False,
) -> None:
    """Make an index beside features, by which latem find and latem serve find pictures.

    It takes about half a millisecond for each picture and processor; worthwhile from some hundred
    thousand on. One index serves all models that divide features by their length, as those of latem
    train do.
    """
    from latem.inspection.stored_index import BEST
    from latem.models.files import load
    from latem.workflows.find import image_index, index_images, stored_images

    with failures(NOTHING_WRITTEN):
        X = stored_images(images).X
        n, trained = len(X), load(model)
        with progress_bar(not quiet, "indexing", total=n, unit="pictures") as advance:
            done = 0

            def step(more: int) -> None:
                nonlocal done
                done += more
                advance(done, n)

            path = index_images(trained, images, progress=step)
        made = image_index(trained, X, use_index=True).stored
    told = f"{path}: {n} pictures, {path.stat().st_size / 1e6:.1f} MB"
    if made is not None and made.recall is not None:
        told += f"; it finds {100 * made.recall:.1f} % of a class's best {min(BEST, n)}"
    typer.echo(told)


@app.command(**example("data split birds --sizes 100,50,50 --n 5"))
def split(
    folder: Folder,
    sizes: Annotated[
        str | None, typer.Option(help="TRAIN,VAL,TEST numbers of classes, or CUB/AWA/Dogs.")
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(min=1, help="With --sizes: how many splits.", show_default="5"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    prefix: Annotated[
        str | None,
        typer.Option(
            help="With --sizes: splits are called PREFIX1, PREFIX2, …", show_default="random"
        ),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Share of seen classes' images to hold out; 0 for none.",
            show_default="0; with --keep-unseen the images held out so far",
        ),
    ] = None,
    keep_unseen: Annotated[
        str | None,
        typer.Option(help="Instead of --sizes: a split whose unseen (test) classes are kept."),
    ] = None,
    val: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With --keep-unseen: number of val classes to draw from the seen ones.",
            show_default="the val classes so far",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="With --keep-unseen: name of the new split.")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="With --keep-unseen: write over a split of that name; without --name, over the "
            "kept one.",
        ),
    ] = False,
) -> None:
    """Draw splits and save them with the dataset; the features stay as they are.

    Either random class-disjoint ones (--sizes), or one with the unseen classes of an existing
    split and other val classes or held-out images (--keep-unseen).
    """
    _check_split_options(
        sizes,
        keep_unseen,
        for_sizes={"--n": n, "--prefix": prefix},
        for_keeping={"--val": val, "--name": name, "--replace": replace or None},
    )
    with failures(NOTHING_WRITTEN if sizes is None else CONTINUES):
        if sizes is not None:
            _draw_splits(folder, sizes, n or 5, prefix or "random", held_out or 0.0, seed)
            return
        from latem.datasets import read_folder, redraw_seen, write_split

        assert keep_unseen is not None  # checked above
        if name is None and not replace:
            raise ValueError(
                f"Give the new split a name (--name), or write over {keep_unseen!r} (--replace)."
            )
        if val is None and held_out is None:
            raise ValueError("Nothing would change: give --val, --held-out or both.")
        dataset = read_folder(folder)
        drawn = redraw_seen(dataset, keep_unseen, n_val=val, held_out=held_out, seed=seed)
        typer.echo(write_split(folder, name or keep_unseen, drawn, replace=replace))
        typer.echo(
            f"{len(drawn.train)} train, {len(drawn.val)} val and {len(drawn.test)} test classes, "
            f"{len(drawn.held_out)} held-out images"
        )


def _check_split_options(
    sizes: str | None,
    keep_unseen: str | None,
    *,
    for_sizes: dict[str, object],
    for_keeping: dict[str, object],
) -> None:
    """Refuse options of `latem data split` that do not go together."""
    if (sizes is None) == (keep_unseen is None):
        raise typer.BadParameter(
            "give either --sizes, for random splits, or --keep-unseen, to change an existing one."
        )
    needed, others = (
        ("--keep-unseen", for_keeping) if keep_unseen is None else ("--sizes", for_sizes)
    )
    odd = [option for option, value in others.items() if value is not None]
    if odd:
        raise typer.BadParameter(f"{', '.join(odd)} can only be given with {needed}.")


def _draw_splits(folder: Path, sizes: str, n: int, prefix: str, held_out: float, seed: int) -> None:
    """Random splits of a dataset, saved with it."""
    from latem.datasets import hold_out, random_class_splits, read_folder, write_split

    dataset = read_folder(folder)
    numbers = [part.strip() for part in sizes.split(",")]
    wanted: tuple[int, int, int] | str = sizes
    if len(numbers) == 3 and all(part.isdigit() for part in numbers):
        wanted = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    splits = random_class_splits(dataset.classes.tolist(), wanted, n, seed)
    drawn = {
        f"{prefix}{i}": hold_out(dataset, one, held_out, seed) if held_out else one
        for i, one in enumerate(splits, start=1)
    }
    there = [name for name in drawn if name in dataset.splits]
    other = [name for name in there if dataset.splits[name] != drawn[name]]
    if other or len(there) == n:  # otherwise those of a run that was interrupted
        raise FileExistsError(
            f"The dataset already has splits {other or there}; give another --prefix."
        )
    for name, one in drawn.items():
        if name not in there:
            typer.echo(write_split(folder, name, one))


@app.command(**example("data fetch xlsa17 --out datasets"))
def fetch(
    name: Annotated[str, typer.Argument(help="A known name, or an address.")],
    out: Annotated[Path, typer.Option(help="Folder for the file and what is in it.")] = Path(
        "data"
    ),
    checksum: Annotated[str | None, typer.Option(help="sha256:… or md5:…")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Download a dataset and make dataset folders of it; a stopped download continues."""
    from latem.datasets import fetch as fetching

    with failures(CONTINUES), progress_bar(not quiet, "downloading", in_bytes=True) as progress:
        file, made = fetching.fetch(name, out, checksum=checksum, progress=progress)
    typer.echo(file)
    for folder in made:
        typer.echo(folder)
    if not made:
        typer.echo(
            "It holds no dataset folders. Word vectors: unpack them and use latem embed classes "
            "--vectors; other data: see latem data convert."
        )
