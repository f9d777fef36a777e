"""Checks of parameters: the only use of parts of scikit-learn that it does not promise to keep.

`pyproject.toml` bounds scikit-learn to the versions this was tested with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition as Composition

__all__ = ["Composition", "HasMethods", "Interval", "StrOptions", "check_params", "validated"]

_Owner = TypeVar("_Owner")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def check_params(estimator: Any) -> None:
    """Raise scikit-learn's error for a parameter that breaks `_parameter_constraints`."""
    estimator._validate_params()


def validated(
    method: Callable[Concatenate[_Owner, _Rest], _Result],
) -> Callable[Concatenate[_Owner, _Rest], _Result]:
    """Method that checks its estimator's parameters first."""

    @functools.wraps(method)
    def checked(self: _Owner, *args: _Rest.args, **kwargs: _Rest.kwargs) -> _Result:
        check_params(self)
        return method(self, *args, **kwargs)

    return checked
