import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from latem import confusion_matrix, mean_class_accuracy, per_class_accuracy, top_k_accuracy
from latem.metrics import top_confusions

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1)


@given(labels)
@pytest.mark.filterwarnings("ignore:y_pred contains classes", "ignore:A single label was found")
def test_mean_class_accuracy_is_balanced_accuracy(pairs):
    true, predicted = np.array(pairs).T
    assert mean_class_accuracy(true, predicted) == pytest.approx(
        balanced_accuracy_score(true, predicted)
    )


@given(labels)
def test_confusion_matrix_agrees_with_the_accuracies(pairs):
    true, predicted = np.array(pairs).T
    matrix = confusion_matrix(true, predicted)
    assert matrix.to_numpy().sum() == len(true)
    share = np.diag(matrix)[matrix.sum(axis=1) > 0] / matrix.sum(axis=1)[matrix.sum(axis=1) > 0]
    np.testing.assert_allclose(share, per_class_accuracy(true, predicted))


@given(st.integers(0, 1000), st.integers(1, 5))
def test_top_k_by_sorting(seed, k):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (20, 5)).astype(float)  # many ties
    true = rng.integers(0, 5, 20)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    hit = (best == true[:, None]).any(axis=1)
    expected = np.mean([hit[true == c].mean() for c in np.unique(true)])
    names = np.array(list("abcde"))
    assert top_k_accuracy(names[true], scores, names, k) == pytest.approx(expected)


def test_classes_count_equally():
    true = ["a"] * 99 + ["b"]
    assert mean_class_accuracy(true, ["a"] * 100) == 0.5


def test_bad_input():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mean_class_accuracy(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="no labels"):
        mean_class_accuracy([], [])
    with pytest.raises(ValueError, match=r"\(1, 2\), but have shape \(1, 3\)"):
        top_k_accuracy(["a"], [[1, 2, 3]], ["a", "b"])
    with pytest.raises(ValueError, match="k must be between 1 and 2, but is 3"):
        top_k_accuracy(["a"], [[1, 2]], ["a", "b"], k=3)
    with pytest.raises(ValueError, match="'z'.* not among the classes"):
        top_k_accuracy(["z"], [[1, 2]], ["a", "b"], k=1)
    with pytest.raises(ValueError, match="'b'.* not among the classes"):
        confusion_matrix(["a"], ["b"], classes=["a"])
    with pytest.raises(ValueError, match="scores hold NaN"):
        top_k_accuracy(["a"], [[np.nan, 1]], ["a", "b"], k=1)
    with pytest.raises(ValueError, match=r"name \['a'\] more than once"):
        top_k_accuracy(["a"], [[0, 1]], ["a", "a"], k=1)
    with pytest.raises(ValueError, match=r"name \['a'\] more than once"):
        confusion_matrix(["a"], ["a"], classes=["a", "a"])
    with pytest.raises(TypeError, match="y_true holds 1 and y_pred '1'"):
        mean_class_accuracy([1, 2], ["1", "2"])
    with pytest.raises(ValueError, match="no labels"):
        top_k_accuracy([], np.empty((0, 2)), ["a", "b"], k=1)


def test_top_confusions():
    true = ["ant"] * 5 + ["bee"] * 4 + ["cat"] * 2
    named = ["bee", "bee", "cat", "ant", "ant"] + ["cat", "cat", "ant", "bee"] + ["cat", "cat"]
    found = top_confusions(confusion_matrix(true, named))
    assert found[["true", "named", "count", "of"]].to_numpy().tolist() == [
        ["ant", "bee", 2, 5],
        ["bee", "cat", 2, 4],
        ["ant", "cat", 1, 5],
        ["bee", "ant", 1, 4],
    ]
    assert found["share"].tolist() == [0.4, 0.5, 0.2, 0.25]
    assert len(top_confusions(confusion_matrix(true, named), n=1)) == 1
    assert len(top_confusions(confusion_matrix(true, true))) == 0
