"""
How sure, and none of these
===========================

Scores are no probabilities. ``calibrate_answers`` learns on held-out classes at which temperature
they become honest ones, and how little a picture may look like the candidates before the answer
is "none of these".
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ESZSL, ReliabilityDisplay, RiskCoverageDisplay, calibrate_answers, load_emoji

emoji = load_emoji()
X, y = emoji.training("standard")
X_new, y_new = emoji.testing("standard")
model = ESZSL(emoji.embeddings["text"], gamma=10.0, lam=1.0).fit(X, y)
report = calibrate_answers(model, X, y, cv=emoji.split("standard").val)
print(f"temperature {model.temperature_:.3f}")

# %%
# The temperature was chosen on other classes than these, but it holds here too: before, the model
# is far less sure than it may be; after, answers of a probability are right about that often.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
reliability = ReliabilityDisplay.from_estimator(model, X_new, y_new, "unseen").plot(ax=left)
print(f"calibration error {reliability.before.error:.1%} before")
print(f"calibration error {reliability.after.error:.1%} after")

# %%
# Whoever may leave doubtful pictures to a person makes fewer mistakes: the surer the answers, the
# fewer of them are wrong.

risk = RiskCoverageDisplay.from_estimator(model, X_new, y_new, "unseen").plot(ax=middle).curve
third = np.searchsorted(risk.coverage, 1 / 3)
print(f"wrong: {risk.risk[-1]:.0%} of all answers, {risk.risk[third]:.0%} of the surest third")

# %%
# Candidates are now half of the unseen classes, and drawings of the other half are outsiders. No
# threshold was chosen on either of them.

own, others = np.array(emoji.split("standard").test[::2]), emoji.split("standard").test[1::2]
verdicts = {}
for name, classes in (("of the candidates", own), ("of none of them", others)):
    answers = model.answer(X_new[np.isin(y_new, classes)], own.tolist(), top=1)
    verdicts[name] = {
        v: answers.count(v) / len(answers) for v in ("named", "doubtful", "none of these")
    }
    print(
        f"pictures {name}:", {verdict: f"{share:.0%}" for verdict, share in verdicts[name].items()}
    )
start = np.zeros(2)
for i, verdict in enumerate(("named", "doubtful", "none of these")):
    shares = np.array([100 * verdicts[name][verdict] for name in verdicts])
    right.barh(list(verdicts), shares, left=start, label=verdict, color=f"C{i}")
    start += shares
right.set(xlabel="pictures (%)")
right.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=3, frameon=False)
plt.show()
