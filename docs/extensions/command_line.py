"""Pages of the command line: one for each command, from what its help knows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from latem.cli import app as latem_app

FOLDER = "generated/commands"
_OPTION = re.compile(r"(?<![`\w-])(--[a-z][a-z-]*)(?![\w`-])")
_HEAD = """# Commands

`latem COMMAND --help` says the same in a terminal. Results go to the standard output, everything
else to the error stream. Exit code 0 is success, 1 failure, 2 misuse; `predict` and `name` have
[more](../../pictures.md#very-many-pictures).

"""


def commands() -> dict[str, Any]:
    """Every command that does something by itself, under its whole name."""
    return dict(_walk(typer.main.get_command(latem_app), "latem"))


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, inner in below.items():
        yield from _walk(inner, f"{name} {word}")


def page(name: str, command: Any) -> str:
    """Page about a command, in Markdown."""
    parts = [f"# {name}", _text(command.help)]
    context = command.context_class(command)
    params = command.get_params(context)
    shown = [
        param
        for param in params
        if "--help" not in param.opts and not getattr(param, "hidden", False)
    ]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    usage = [name, *(_in_usage(param) for param in arguments), *(["[OPTIONS]"] if options else [])]
    parts.append(f"```text\n{' '.join(usage)}\n```")
    if command.epilog:
        example = command.epilog.removeprefix("Example: ")
        parts += ["For example:", f"```sh\n{example}\n```"]
    for title, params in (("Arguments", arguments), ("Options", options)):
        if params:
            rows = [f"| {_names(param, context)} | {_meaning(param)} |" for param in params]
            parts += [f"## {title}", "\n".join(["| | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _text(text: str | None) -> str:
    """Text of a help in Markdown; lines after a backspace (as in typer) stay as they are."""
    paragraphs = (text or "").replace("\f", "\n").split("\n\n")
    return "\n\n".join(
        "```text\n" + paragraph.strip("\b\n") + "\n```"
        if paragraph.lstrip("\n").startswith("\b")
        else _plain(paragraph)
        for paragraph in paragraphs
    )


def _plain(text: str) -> str:
    for sign in "|<*_":
        text = text.replace(sign, "\\" + sign)
    return " ".join(_OPTION.sub(r"`\1`", text).split())


def _in_usage(param: Any) -> str:
    name = (param.metavar or param.name).upper() + ("..." if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _names(param: Any, context: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{(param.metavar or param.name).upper()}`"
    value = _type(param, context)
    names = [*param.opts, *param.secondary_opts]
    return ", ".join(f"`{name}`" for name in names) + (f" `{value}`" if value else "")


def _type(param: Any, context: Any) -> str:
    """What follows an option, as its help shows it."""
    if getattr(param, "is_flag", False) or getattr(param, "count", False):
        return ""
    if param.metavar:
        return str(param.metavar)
    if hasattr(param, "display_type_rich"):
        return str(param.display_type_rich(ctx=context) or "").replace("|", "\\|")
    return f"<{param.type.name}>"


def _meaning(param: Any) -> str:
    if param.required:
        return f"{_plain(param.help or '')} Required."
    default = _default(param)
    return _plain(param.help or "") + (f" Default: {_plain(default)}." if default else "")


def _default(param: Any) -> str:
    """What holds if an option is not given, as its help shows it, or ""."""
    if isinstance(param.show_default, str):
        return param.show_default
    default = getattr(param.default, "value", param.default)
    if not param.show_default or default is None or default is False or callable(default):
        return ""
    if default is True:
        return str(param.opts[0]) if param.secondary_opts else ""
    if isinstance(default, (list, tuple)):
        return ", ".join(map(str, default))
    return str(default)


def write(folder: Path) -> None:
    """Write all pages, and one that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    found = commands()
    rows, files = ["| command | what it does |", "|---|---|"], []
    for name, command in found.items():
        file = name.replace(" ", "-")
        first = _plain((command.help or "").split("\n\n")[0])
        rows.append(f"| [`{name}`]({file}.md) | {first} |")
        files.append(file)
        _keep(folder / f"{file}.md", page(name, command))
    tree = ["```{toctree}", ":hidden:", "", *files, "```"]
    _keep(folder / "index.md", _HEAD + "\n".join([*rows, "", *tree]) + "\n")


def _keep(path: Path, text: str) -> None:
    """Write a file if it changes, so that Sphinx reads again only what has changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx write the pages before it looks for sources."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
