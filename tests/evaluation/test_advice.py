"""What to do next: every rule speaks when it should, and only then."""

from dataclasses import replace

import numpy as np
import pytest

from latem import ClassEmbeddings
from latem.evaluation import (
    Evaluation,
    GeneralizedEvaluation,
    ProbabilityEvaluation,
    Scored,
)
from latem.evaluation import advice as rules
from latem.evaluation.advice import Learned, advice, closeness
from latem.metrics import GeneralizedScores, per_class_accuracy, risk_coverage_curve
from latem.metrics.calibration import CalibrationReport

CLASSES = np.array(list("abcd"))
TABLE = ClassEmbeddings(CLASSES, [[0, 0], [0, 1], [9, 0], [0, 9]], columns=["red", "round"])


def evaluation(y, named, **more):
    y, named = np.array(list(y)), np.array(list(named))
    scores = (named[:, None] == CLASSES).astype(float)
    per_class = per_class_accuracy(y, named)
    return Evaluation(
        *("M", "data", "standard", len(y), len(CLASSES), float(per_class.mean()), None),
        per_class.to_dict(),
        scored=Scored(np.arange(len(y)), y, CLASSES, scores),
        **more,
    )


FINE = evaluation("abcd" * 5, "abcd" * 5)


def generalized(plain, stacked):
    return GeneralizedEvaluation(
        1, 1, 1, 1, *(GeneralizedScores(0.5, 0.5, h) for h in (plain, stacked)), 0.25, 0.5
    )


def probabilities(before, after, confidence=(0.9, 0.8, 0.7, 0.6), right=(1, 1, 1, 1)):
    report = CalibrationReport(0.5, 4, 4, 1.0, 1.0, before, after)
    return ProbabilityEvaluation(report, report, risk_coverage_curve(confidence, right))


def test_nothing_stands_out():
    assert advice(FINE, Learned(100, TABLE)) == [
        "Nothing stands out. More classes with pictures to learn from, and descriptions with more "
        "traits, are what usually helps."
    ]


def test_near_chance():
    assert rules.near_chance(FINE) == ""
    assert "hardly better than guessing (25.0%)" in rules.near_chance(
        evaluation("abcd" * 3, "aaaa" * 3)
    )


def test_seen_bias():
    assert rules.seen_bias(FINE) == ""
    assert rules.seen_bias(replace(FINE, generalized=generalized(0.5, 0.51))) == ""
    told = rules.seen_bias(replace(FINE, generalized=generalized(0.2, 0.5)))
    assert "--classes all --seen-penalty 0.25" in told
    assert "from 20.0% to 50.0%" in told


def test_confused_pairs_with_nearly_equal_descriptions():
    found = evaluation("aaaabbbbcd", "aabbaabbcd")
    assert rules.confused_pair(found, TABLE) == (
        "a and b are taken for each other most often (2 and 2 images), and their descriptions are "
        "nearly the same: add a trait that differs."
    )
    assert "compare their descriptions" in rules.confused_pair(found, None)
    assert rules.confused_pair(FINE, TABLE) == ""
    assert rules.confused_pair(evaluation("aabb", "abba"), TABLE) == ""  # two images are too few


def test_confused_pairs_with_different_descriptions():
    told = rules.confused_pair(evaluation("ccccd", "cdddd"), TABLE)
    assert told.startswith("c is taken for d most often (3 images). Their descriptions differ most")
    assert "'red', 'round'" in told
    told = rules.confused_pair(evaluation("dddda", "cccda"), TABLE)
    assert told.startswith("d is taken for c most often (3 images).")
    bare = ClassEmbeddings(CLASSES, TABLE.vectors)
    assert "add what tells them apart" in rules.confused_pair(evaluation("ccccd", "cdddd"), bare)


def test_closeness_is_relative_to_the_other_classes():
    assert closeness(TABLE, "a", "b") == pytest.approx(1 / 9, rel=0.02)
    larger = ClassEmbeddings(CLASSES, 100 * TABLE.vectors)
    assert closeness(larger, "a", "b") == pytest.approx(closeness(TABLE, "a", "b"))
    assert closeness(ClassEmbeddings(CLASSES, np.ones((4, 2))), "a", "b") == 0


def test_hubs():
    assert rules.hub(FINE, False) == ""
    found = evaluation("aaabbbcccddd", "aaaaabaacddd")
    told = rules.hub(found, False)
    assert told.startswith("a is the answer for 7 images, but only 3 are of this class")
    assert "balance_classes=True" in told
    assert "check its description" in rules.hub(found, True)
    assert rules.hub(evaluation("abcd", "aacd"), False) == ""


def test_few_classes():
    assert rules.few_classes(20) == ""
    assert "from 19 classes only" in rules.few_classes(19)


def test_probabilities_that_are_off():
    assert rules.too_sure(FINE) == ""
    assert rules.too_sure(replace(FINE, probabilities=probabilities(0.05, 0.01))) == ""
    told = rules.too_sure(replace(FINE, probabilities=probabilities(0.3, 0.05)))
    assert "latem.calibrate_answers" in told
    assert "30.0% off as they are, 5.0% at temperature 0.5" in told
    assert rules.too_sure(replace(FINE, probabilities=probabilities(0.3, 0.05)), True) == ""
    told = rules.too_sure(replace(FINE, probabilities=probabilities(0.3, 0.25)), True)
    assert "25.0% off even after calibration" in told


def test_withholding():
    assert rules.worth_withholding(FINE) == ""
    sorted_out = replace(FINE, probabilities=probabilities(0, 0, right=(1, 1, 1, 0)))
    assert "surer half of its answers 0.0% are wrong, of all 25.0%" in rules.worth_withholding(
        sorted_out
    )
    useless = replace(FINE, probabilities=probabilities(0, 0, right=(0, 1, 1, 1)))
    assert rules.worth_withholding(useless) == ""
    perfect = replace(FINE, probabilities=probabilities(0, 0))
    assert rules.worth_withholding(perfect) == ""


def test_the_first_few_in_order():
    found = replace(
        evaluation("aaaabbbbcccd", "bbbbaaaaaaad"),
        generalized=generalized(0.1, 0.5),
        probabilities=probabilities(0.5, 0.1),
    )
    told = advice(found, Learned(5, TABLE), n=3)
    assert told == [
        rules.near_chance(found),
        rules.seen_bias(found),
        rules.confused_pair(found, TABLE),
    ]
    assert len(advice(found, Learned(5, TABLE))) == 4
