"""How time and memory grow with the sizes of a problem, and what that means for large ones.

Sizes: n images, d_x features, C classes, d_y dimensions of a class vector, K maps. Every one is
varied by itself around a base problem; costs are ratios to the base, measured in one run with one
thread, in seconds of the processor (on an idle machine, those of the clock). Measured are

- a visit of ranking SGD in each of the engine's four forms (one rival or many; maps seen through
  the classes, or as they are), with 15 % of the visits violating the margin: the margin is set so,
  and the step so small that it stays so;
- `ESZSL.fit`, and `LatEm.predict` for an image;
- the peak memory of `LatEm.fit` and `ESZSL.fit` above their inputs (tracemalloc).

A cost is a sum of products of sizes (`TERMS`), so its exponent differs from place to place. Printed
are the exponent of a power law through the measured points, and what theory says: the limit for
large sizes, from the term that grows fastest. The coefficients of the terms, fitted to all points
(never negative, relative errors least squared), are kept, and `estimate` computes from the kept
file what problems as large as ImageNet-21k would take. `check` trains on really as many classes,
dimensions and features, but fewer images, and compares.
"""

import argparse
import dataclasses
import json
import math
import tracemalloc
from time import process_time as clock

import numpy as np
from machine import RESULTS, best_time, keep, show
from scipy.optimize import nnls

from latem import ESZSL, LatEm
from latem.core.memory import in_bytes
from latem.core.threads import single_threaded_blas
from latem.models.latem import TUNED
from latem.models.scaling import FeatureScaler
from latem.models.sgd.dense import (
    DenseClassSpace,
    DenseEmbeddingSpace,
    dense_epoch,
    dense_form,
    dense_length,
    iter_rows,
)
from latem.models.sgd.loop import Schedule
from latem.models.sgd.pairs import (
    PairClassSpace,
    PairEmbeddingSpace,
    pair_epoch,
    pair_form,
    pair_length,
)

RATE, STEP, RIVALS = 0.15, 1e-6, 10
SECONDS = 0.05  # of one timing
PARTS = ("measure", "check", "estimate")


@dataclasses.dataclass(frozen=True)
class Size:
    n: int = 10_000
    d_x: int = 512
    C: int = 200
    d_y: int = 300
    K: int = 4


BASE = Size()
AXES = {
    "n": (10_000, 100_000, 1_000_000),
    "C": (50, 200, 1000, 5000, 20_000),
    "K": (1, 4, 16),
    "d_x": (128, 512, 2048),
    "d_y": (75, 300, 1200),
}
LARGEST = {
    "ESZSL.fit": 100_000,
    "memory of LatEm.fit": 100_000,
    "memory of ESZSL.fit": 100_000,
}  # n

# What a cost consists of. Memory is in bytes; the rest in seconds, for ESZSL of the whole fit.
TERMS = {
    "pair class": {
        "1": lambda s: 1, "d_x": lambda s: s.d_x, "K d_x": lambda s: s.K * s.d_x,
        "C d_x": lambda s: s.C * s.d_x, "√(C K) d_x": lambda s: math.sqrt(s.C * s.K) * s.d_x,
    },
    "pair embedding": {
        "1": lambda s: 1, "d_x": lambda s: s.d_x, "K d_x": lambda s: s.K * s.d_x,
        "d_x d_y": lambda s: s.d_x * s.d_y, "K d_x d_y": lambda s: s.K * s.d_x * s.d_y,
    },
    "dense class": {
        "1": lambda s: 1, "d_x": lambda s: s.d_x, "C d_x": lambda s: s.C * s.d_x,
        "K C": lambda s: s.K * s.C, "K C d_x": lambda s: s.K * s.C * s.d_x,
    },
    "dense embedding": {
        "1": lambda s: 1, "d_x": lambda s: s.d_x, "K C": lambda s: s.K * s.C,
        "C d_y": lambda s: s.C * s.d_y, "K C d_y": lambda s: s.K * s.C * s.d_y,
        "d_x d_y": lambda s: s.d_x * s.d_y, "K d_x d_y": lambda s: s.K * s.d_x * s.d_y,
    },
    "ESZSL.fit": {
        "1": lambda s: 1, "n d_x": lambda s: s.n * s.d_x, "n d_x²": lambda s: s.n * s.d_x**2,
        "d_x³": lambda s: s.d_x**3, "C d_x d_y": lambda s: s.C * s.d_x * s.d_y,
        "C d_y²": lambda s: s.C * s.d_y**2, "d_y³": lambda s: s.d_y**3, "C": lambda s: s.C,
        "d_x² d_y": lambda s: s.d_x**2 * s.d_y,
    },
    "LatEm.predict": {
        "1": lambda s: 1, "d_x": lambda s: s.d_x, "C": lambda s: s.C,
        "K C d_x": lambda s: s.K * s.C * s.d_x, "K d_x d_y": lambda s: s.K * s.d_x * s.d_y,
        "K C d_y": lambda s: s.K * s.C * s.d_y,
    },
    "memory of LatEm.fit": {
        "1": lambda s: 1, "n": lambda s: s.n, "d_x": lambda s: s.d_x,
        "C d_y": lambda s: s.C * s.d_y, "K d_x d_y": lambda s: s.K * s.d_x * s.d_y,
        "K C d_x": lambda s: s.K * s.C * s.d_x if latem_form(s) == "pair class" else 0,
        "C²": lambda s: s.C**2 if latem_form(s) == "pair class" else 0,
    },
    "memory of ESZSL.fit": {
        "1": lambda s: 1, "n": lambda s: s.n, "d_x": lambda s: s.d_x, "d_x²": lambda s: s.d_x**2,
        "C d_x": lambda s: s.C * s.d_x, "C d_y": lambda s: s.C * s.d_y,
        "d_y²": lambda s: s.d_y**2, "d_x d_y": lambda s: s.d_x * s.d_y,
    },
}  # fmt: skip
SPACES = {
    "pair class": PairClassSpace,
    "pair embedding": PairEmbeddingSpace,
    "dense class": DenseClassSpace,
    "dense embedding": DenseEmbeddingSpace,
}


def latem_form(s):
    """The form that `LatEm` takes for its default, one rival per visit."""
    return f"pair {pair_form(s.C, s.d_x, s.d_y, s.K)}"


def tuned_form(s):
    """The form that the tuned preset takes: several rivals per visit."""
    return f"dense {dense_form(s.C, s.d_x, s.d_y, s.K)}"


# -- measuring --------------------------------------------------------------------------------


def features(s):
    """Features in half precision, as files have them; some thousand rows over and over."""
    some = np.random.default_rng(0).standard_normal((2048, s.d_x)).astype(np.float16)
    X = np.empty((s.n, s.d_x), np.float16)
    for first in range(0, s.n, len(some)):
        X[first : first + len(some)] = some[: s.n - first]
    return X


def class_vectors(s):
    Y = np.random.default_rng(1).standard_normal((s.C, s.d_y)).astype(np.float32)
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


class Visits:
    """Visits to a problem of some size in one of the engine's forms."""

    def __init__(self, s, form, X):
        rng = np.random.default_rng(2)
        self.s, self.form = s, form
        scaler = FeatureScaler("zscore", np.zeros(s.d_x), np.full(s.d_x, 1 / math.sqrt(s.d_x)))
        self.load = lambda rows, out: scaler.load(X, rows, out)
        self.labels = rng.integers(0, s.C, s.n)
        self.order = rng.permutation(s.n)
        n_rivals = 1 if form.startswith("pair") else RIVALS
        self.rivals = rng.integers(0, s.C - 1, (s.n, n_rivals))
        self.rivals += self.rivals >= self.labels[self.order, None]
        maps = rng.standard_normal((s.K, s.d_x, s.d_y)).astype(np.float32)
        Y = class_vectors(s)
        margin = self.margin(maps, Y)
        self.schedule = Schedule(STEP, margin, 1)
        more = {"n_threads": 1} if form.startswith("pair") else {}
        more |= {"average": True} if form.startswith("dense") else {}
        self.space = SPACES[form](maps, Y, **more)
        self.counts = np.zeros((2, s.K), np.int64)

    def margin(self, maps, Y):
        """With which the wanted share of visits violates it."""
        rows = self.order[:2048]
        true, rival = np.empty(len(rows)), np.empty(len(rows))
        for first in range(0, len(rows), 256):
            part = rows[first : first + 256]
            X = self.load(part, np.empty((len(part), self.s.d_x), np.float32))
            projected = np.stack([X @ W for W in maps])  # (K, 256, d_y)
            own = np.einsum("kie,ie->ki", projected, Y[self.labels[part]]).max(axis=0)
            others = self.rivals[first : first + len(part)]
            scores = np.stack([(projected * Y[column]).sum(axis=2) for column in others.T])
            true[first : first + 256], rival[first : first + 256] = own, scores.max(axis=(0, 1))
        return float(np.quantile(true - rival, RATE))

    def run(self, n):
        order, rivals, s = self.order[:n], self.rivals[:n], self.s
        visits, violations = self.counts
        if self.form.startswith("pair"):
            length = pair_length(s.C, s.K, RATE)
            pair_epoch(self.space, self.load, self.labels, order, rivals[:, 0], self.schedule,
                       length, visits, violations)  # fmt: skip
        else:
            draw = iter_rows(rivals.astype(np.float32))
            dense_epoch(self.space, self.load, self.labels, order, draw, "drawn",
                        np.ones(s.C, np.float32), self.schedule, dense_length(s.C, s.K, RATE),
                        visits, violations)  # fmt: skip

    def seconds(self):
        """Seconds for a visit, and the share of visits that violated the margin."""
        n = min(512, self.s.n)
        with single_threaded_blas():
            self.run(n)  # compiles
            once = best_time(lambda: self.run(n), 1, clock)
            n = int(np.clip(n * SECONDS / max(once, 1e-6), n, self.s.n))
            self.counts[:] = 0
            best = best_time(lambda: self.run(n), 3, clock) / n
        return best, self.counts[1].sum() / self.counts[0].sum()


def labelled(s):
    X, y = features(s), np.arange(s.n) % s.C
    return X, y, (range(s.C), class_vectors(s))


def fit_seconds(s):
    X, y, table = labelled(s)
    return best_time(lambda: ESZSL(table, n_threads=1).fit(X, y), 1, clock)


def predict_seconds(s):
    n = 2048
    X = features(dataclasses.replace(s, n=n))
    names, vectors = range(s.C), class_vectors(s)
    model = LatEm((names, vectors), n_maps=s.K, n_epochs=1, n_threads=1, random_state=0)
    model.fit(X[:50], np.arange(50) % 50)
    model.predict(X[:10], "all")  # prepares the candidates
    return best_time(lambda: model.predict(X, "all"), 3, clock) / n


def peak_bytes(s, make):
    X, y, table = labelled(dataclasses.replace(s, n=max(s.n, s.C)))
    model = make(table)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


def measured(what, s, X):
    """A cost, and the violation rate it was measured at."""
    if what in SPACES:
        return Visits(s, what, X).seconds()
    if what == "ESZSL.fit":
        return fit_seconds(s), None
    if what == "LatEm.predict":
        return predict_seconds(s), None
    if what == "memory of ESZSL.fit":
        return peak_bytes(s, lambda table: ESZSL(table, n_threads=1)), None
    return peak_bytes(
        s, lambda table: LatEm(table, n_maps=s.K, n_epochs=1, n_threads=1, random_state=0)
    ), None


def axis_of(what, axis):
    """Values of a size at which something is measured; none if it does not depend on it."""
    if (axis == "K" and "ESZSL" in what) or (axis == "n" and what == "LatEm.predict"):
        return ()
    most = LARGEST.get(what, math.inf) if axis == "n" else math.inf
    return [value for value in AXES[axis] if value <= most]


def measure(axis):
    """Costs along one size."""
    points = []
    for value in AXES[axis]:
        s = dataclasses.replace(BASE, **{axis: value})
        X = features(s)
        for what in TERMS:
            if value not in axis_of(what, axis):
                continue
            really = dataclasses.replace(s, n=max(s.n, s.C)) if "fit" in what else s
            cost, rate = measured(what, really, X)
            point = {"what": what, "axis": axis, "size": vars(really), "cost": cost, "rate": rate}
            points.append(point)
        print(f"{axis} = {value}", flush=True)
    return points


# -- exponents and coefficients ---------------------------------------------------------------


def exponent(sizes, costs):
    """Slope of a line through points in a log-log plane."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def limit(terms, axis):
    """Exponent for large sizes: that of the term which grows fastest."""
    s = dataclasses.replace(BASE, C=10**6)  # beyond where forms change
    twice = dataclasses.replace(s, **{axis: 2 * getattr(s, axis)})
    slopes = [math.log2(f(twice) / f(s)) for f in terms.values() if f(s)]
    return max(slopes)


def coefficients(what, points):
    """What a unit of every term costs, and the largest relative error of the points."""
    sizes = [Size(**point["size"]) for point in points]
    costs = np.array([point["cost"] for point in points])
    matrix = np.array([[f(s) for f in TERMS[what].values()] for s in sizes]) / costs[:, None]
    scale = np.abs(matrix).max(axis=0)
    found, _ = nnls(matrix / scale, np.ones(len(costs)))
    ratios = matrix / scale @ found
    return dict(zip(TERMS[what], (found / scale).tolist(), strict=True)), ratios


def cost(what, kept, s):
    """What something costs at a size, by the fitted coefficients."""
    fitted = kept["fits"][what]["coefficients"]
    return sum(each * TERMS[what][name](s) for name, each in fitted.items())


def analyse(points):
    fits, rows = {}, []
    for what in TERMS:
        found = [p for p in points if p["what"] == what]
        fitted, errors = coefficients(what, found)
        base = float(np.median([p["cost"] for p in found if p["size"] == vars(BASE)]))
        exponents, cells = {}, []
        for axis in AXES:
            along = [p for p in found if p["axis"] == axis]
            if not along:
                cells.append("–")
                continue
            own = next(p["cost"] for p in along if p["size"] == vars(BASE))
            sizes = [p["size"][axis] for p in along]
            slope = exponent(sizes, [p["cost"] for p in along])
            last = exponent(sizes[-2:], [p["cost"] for p in along[-2:]])
            ratios = {str(p["size"][axis]): p["cost"] / own for p in along}
            theory = limit(TERMS[what], axis)
            exponents[axis] = {
                "measured": slope, "at_the_end": last, "theory": theory, "ratios": ratios
            }  # fmt: skip
            cells.append(f"{slope:.2f} → {last:.2f} ({theory:.1f})")
        fits[what] = {
            "base": base,
            "exponents": exponents,
            "coefficients": fitted,
            "fitted_over_measured": [float(errors.min()), float(errors.max())],
        }
        rows.append((what, *cells, f"{errors.min():.2f} to {errors.max():.2f}"))
    show(
        f"Exponents: measured over all points → over the last two (theory); base {vars(BASE)}",
        ("cost", *AXES, "fitted / measured"),
        rows,
    )
    ratios = [
        (what, axis, ", ".join(f"{size}: {r:.2f}" for size, r in found["ratios"].items()))
        for what, fit in fits.items()
        for axis, found in fit["exponents"].items()
    ]
    show("Costs, base = 1", ("cost", "size", "ratios"), ratios)
    return fits


def machine():
    """What the machine does with one thread: copies, and matrix products."""
    rng = np.random.default_rng(0)
    source = np.ones(2**26, np.float32)
    target = np.empty_like(source)
    np.copyto(target, source)
    copied = best_time(lambda: np.copyto(target, source), 5, clock)
    speeds = {"copy_gb_per_s": 2 * source.nbytes / copied / 1e9}
    with single_threaded_blas():
        for name, dtype in (("float32", np.float32), ("float64", np.float64)):
            A = rng.random((1024, 1024)).astype(dtype)
            speeds[f"gflops_{name}"] = 2 * 1024**3 / best_time(lambda A=A: A @ A, 5, clock) / 1e9
    return speeds


# -- problems beyond the machine --------------------------------------------------------------

PROBLEMS = {
    "ImageNet-21k-sized": Size(n=14_200_000, d_x=2048, C=21_841, d_y=500, K=1),
    "iNaturalist-2021-sized": Size(n=2_700_000, d_x=2048, C=10_000, d_y=300, K=1),
}


def bytes_for_an_image():
    """How the peaks of memory grow with the images, where little else takes any.

    Along n the measured peaks hardly move: there it is blocks of features that take most.
    """
    one = {"n_epochs": 1, "n_threads": 1, "random_state": 0}
    makes = {
        "LatEm": lambda table: LatEm(table, n_maps=1, **one),
        "tuned": lambda table: LatEm(table, **TUNED | one),
        "ESZSL": lambda table: ESZSL(table, n_threads=1),
    }
    few, many = (Size(n=n, d_x=8, C=50, d_y=5, K=1) for n in (50_000, 150_000))
    for make in makes.values():
        peak_bytes(Size(n=100, d_x=8, C=50, d_y=5, K=1), make)  # compiles
    return {
        name: (peak_bytes(many, make) - peak_bytes(few, make)) / (many.n - few.n)
        for name, make in makes.items()
    }


def estimate(kept):
    each = bytes_for_an_image()
    rows, found = [], {}
    for name, s in PROBLEMS.items():
        several = dataclasses.replace(s, K=6)
        file = 2 * s.n * s.d_x
        few = {"n": BASE.n}  # what the images add is known better from `each`
        one, six, closed = (
            cost(f"memory of {what}.fit", kept, dataclasses.replace(size, **few))
            for what, size in (("LatEm", s), ("LatEm", several), ("ESZSL", s))
        )
        tuned = one + closed + 4 * s.d_x * s.d_y  # a mean of the maps beside them
        entries = {
            "an epoch, 1 rival, K = 1": (s.n * cost(latem_form(s), kept, s),
                                         one + each["LatEm"] * s.n),
            "an epoch, 1 rival, K = 6": (s.n * cost(latem_form(several), kept, several),
                                         six + each["LatEm"] * s.n),
            f"an epoch, {RIVALS} rivals (tuned), K = 1": (
                s.n * cost(tuned_form(s), kept, s), tuned + each["tuned"] * s.n),
            "ESZSL.fit": (cost("ESZSL.fit", kept, s), closed + each["ESZSL"] * s.n),
            "a million answers among all classes": (
                1e6 * cost("LatEm.predict", kept, s), None),
        }  # fmt: skip
        found[name] = {"size": vars(s), "file_bytes": file, "entries": {}}
        for what, (seconds, memory) in entries.items():
            found[name]["entries"][what] = {"core_hours": seconds / 3600, "memory_bytes": memory}
            rows.append(
                (name, what, f"{seconds / 3600:.2f}", "" if memory is None else in_bytes(memory))
            )
        rows.append((name, "the file of features (half precision)", "", in_bytes(file)))
    speeds = kept["machine"]
    show(
        f"EXTRAPOLATED: core-hours of a machine with {speeds['copy_gb_per_s']:.0f} GB/s (copy), "
        f"{speeds['gflops_float32']:.0f} GFLOPS (float32), {speeds['gflops_float64']:.0f} "
        f"(float64); memory besides the file",
        ("problem", "what", "core-hours", "memory"),
        rows,
    )
    print("bytes for an image:", {name: round(value) for name, value in each.items()})
    return {"bytes_for_an_image": each, "problems": found}


class Timed(LatEm):
    """Notes how long an epoch takes."""

    def _visits(self, epoch, labels):
        self.began = clock()
        return super()._visits(epoch, labels)

    def note(self, info):
        self.epoch_seconds = clock() - self.began


def check(kept, n):
    """Really as many classes, features and dimensions as ImageNet-21k, with fewer images."""
    s = dataclasses.replace(PROBLEMS["ImageNet-21k-sized"], n=n)
    X, y, table = labelled(s)
    rows, found = [], {}

    def compare(what, really, expected, note=""):
        found[what] = {"measured": really, "extrapolated": expected, "note": note}
        rows.append((what, f"{really:.4g}", f"{expected:.4g}", f"{expected / really:.2f}", note))

    for form in (latem_form(s), tuned_form(s)):
        seconds, rate = Visits(s, form, X).seconds()
        expected = 1e6 * cost(form, kept, s)
        compare(f"µs a visit, {form}", 1e6 * seconds, expected, f"{rate:.0%} violations")

    for name, params in (("LatEm", {"n_maps": 1}), ("LatEm, tuned", dict(TUNED))):
        model = Timed(table, **params | {"n_epochs": 1, "n_threads": 1, "random_state": 0})
        model.fit(X, y, callback=model.note)
        form = latem_form(s) if name == "LatEm" else tuned_form(s)
        rate = model.history_["violation_rate"][-1]
        expected = n * cost(form, kept, s)
        compare(f"s for an epoch, {name}", model.epoch_seconds, expected, f"{rate:.0%} violations")
    compare("s for ESZSL.fit", fit_seconds(s), cost("ESZSL.fit", kept, s))
    for what in ("memory of LatEm.fit", "memory of ESZSL.fit"):
        really, _ = measured(what, s, X)
        compare(f"MB, {what}", really / 1e6, cost(what, kept, s) / 1e6)
    show(
        f"Really measured against extrapolated: {s}",
        ("what", "measured", "extrapolated", "ratio", ""),
        rows,
    )
    return {"size": vars(s), "results": found}


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="part",
        help=f"{', '.join(PARTS)}; by default all, in this order",
    )
    parser.add_argument("--check-images", type=int, default=22_000)
    parser.add_argument(
        "--axes", nargs="+", default=list(AXES), choices=AXES,
        help="sizes to measure along; the others stay as they are kept",
    )  # fmt: skip
    found = parser.parse_args(arguments)
    if odd := [part for part in found.parts if part not in PARTS]:
        parser.error(f"there is no part {odd[0]!r}; there are {', '.join(PARTS)}")
    found.parts = found.parts or list(PARTS)
    return found


def main(arguments):
    file = RESULTS / "growth.json"

    def change(**more):
        """Keep more figures beside those that are kept."""
        kept = json.loads(file.read_text()) if file.is_file() else {"points": []}
        kept.pop("versions", None)
        if "points" in more:
            old = [p for p in kept["points"] if p["axis"] not in arguments.axes]
            more["points"] = old + more["points"]
        keep("growth", kept | more)
        return kept | more

    if "measure" in arguments.parts:
        found = [point for axis in arguments.axes for point in measure(axis)]
        points = change(base=vars(BASE), machine=machine(), points=found)["points"]
        if {point["axis"] for point in points} == set(AXES):
            change(fits=analyse(points))
    kept = change()
    if "check" in arguments.parts:
        kept = change(check=check(kept, arguments.check_images))
    if "estimate" in arguments.parts:
        change(estimates=estimate(kept))


if __name__ == "__main__":
    main(options())
