"""Choosing hyper-parameters on held-out classes.

Parameters of a zero-shot model must be chosen on classes that the model was not fitted to, named
among themselves: accuracy on seen classes says little about unseen ones. `HeldOutSearch` does that
for any model; `LatEmCV` is LatEm with its number of maps and step size chosen that way, the
paper's cross-validation (Sec. 4), and `CommitteeCV` several models that answer together. Unseen
classes are never looked at: `fit` gets no image of them.
"""

from latem.selection.committee_cv import CommitteeCV
from latem.selection.grids import GRIDS
from latem.selection.held_out_search import HeldOutSearch
from latem.selection.latem_cv import LatEmCV

__all__ = ["GRIDS", "CommitteeCV", "HeldOutSearch", "LatEmCV"]
