"""Which trainings come next.

Some trainings are known only when others are done: the final model is trained with the number of
maps that did best on the val classes. A plan names what can be trained now; when that is done,
the next plan names what has become known, until nothing is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from latem.experiments.cells import Cells, Wanted
from latem.experiments.fits import Fit
from latem.experiments.tables import PaperTable, detail_entries


@dataclass(frozen=True)
class Plan:
    """What some tables need, as far as it is known.

    Attributes
    ----------
    used : tuple of Fit
        All trainings known to be needed, whether done or not.
    missing : tuple of Fit
        Those that are not done.
    waiting : frozenset of Wanted
        Final models whose parameters are not chosen yet; each is one more training.
    """

    used: tuple[Fit, ...]
    missing: tuple[Fit, ...]
    waiting: frozenset[Wanted]

    @property
    def n_known(self) -> int:
        """Number of trainings that are needed at least, later ones included."""
        return len(self.used) + len(self.waiting)


def plan(cells: Cells, tables: Mapping[str, PaperTable]) -> Plan:
    """What some tables need, judged by the trainings that are done; nothing is changed.

    Parameters
    ----------
    cells : Cells
    tables : dict of str to PaperTable

    Returns
    -------
    Plan
        If nothing is missing in it, `summarise` has all it needs.
    """
    used: dict[Fit, None] = {}
    waiting: set[Wanted] = set()
    for wanted in wanted_models(cells, tables):
        trainings = cells.trainings(wanted)
        used |= dict.fromkeys(trainings.fits)
        if trainings.final is None:
            waiting.add(wanted)
    missing = tuple(fit for fit in used if cells.store.get(fit) is None)
    return Plan(tuple(used), missing, frozenset(waiting))


def wanted_models(cells: Cells, tables: Mapping[str, PaperTable]) -> list[Wanted]:
    """Models behind all entries of some tables and the details of the report, once each."""
    entries = [entry for table in tables.values() for entry in table.entries()]
    found: dict[Wanted, None] = {}
    for entry in (*entries, *detail_entries(tables)):
        if not cells.lacking(entry.dataset, entry.embeddings):
            found |= dict.fromkeys(cells.models(entry) + cells.held_out(entry))
    return list(found)
