"""What a machine that only answers can leave out.

Loading a model and naming pictures needs none of pandas, numba, matplotlib and jinja2: they are for
tables, training, plots and pages, and are imported where that work begins. They are requirements of
the package all the same; where one was left out (requirements/predict.txt), `needed` says what
needs it, and the command line turns any missing package into a sentence.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs


def needed(package: str, task: str) -> Any:
    """A package that some work cannot do without.

    Parameters
    ----------
    package : str
        A package or a module of it, as for `import`; it is installed under the package's name.
    task : str
        What needs it, in the plural: the beginning of a sentence.

    Raises
    ------
    ImportError
        With the command that installs it.
    """
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f"{task} need {name}: pip install {name}.") from None


def is_frame(value: Any) -> TypeIs[pd.DataFrame]:
    """Whether something is a pandas DataFrame; does not import pandas."""
    return _is_from_pandas(value, "DataFrame")


def is_series(value: Any) -> TypeIs[pd.Series]:
    """Whether something is a pandas Series; does not import pandas."""
    return _is_from_pandas(value, "Series")


def is_index(value: Any) -> TypeIs[pd.Index]:
    """Whether something is a pandas Index; does not import pandas."""
    return _is_from_pandas(value, "Index")


def _is_from_pandas(value: Any, kind: str) -> bool:
    pandas = sys.modules.get("pandas")  # where nobody imported it, there is nothing of its kind
    return pandas is not None and isinstance(value, getattr(pandas, kind))
