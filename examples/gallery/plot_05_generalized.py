"""
Seen and unseen classes together
================================

Among unseen classes alone, half of the difficulty is gone: in use, a picture may be of a seen
class as well. Then models prefer the classes they have learned from. A penalty γ on the scores of
seen classes mends it (*calibrated stacking*); it is to be chosen on held-out classes, never on
the test classes, and results are to be told with and without.
"""

from dataclasses import replace

import matplotlib.pyplot as plt

from latem import ESZSL, SeenUnseenDisplay, evaluate, hold_out, load_emoji

emoji = load_emoji()

# %%
# To measure it, some pictures of seen classes must be kept out of training: here a fifth.

split = hold_out(emoji, emoji.split("standard"), share=0.2, seed=0)
emoji = replace(emoji, splits={"standard": split})
model = ESZSL(emoji.embeddings["text"], gamma=10.0, lam=1.0).fit(*emoji.training("standard"))
result = evaluate(model, emoji, "standard", generalized=True)
found = result.generalized
for name, scores in {"no penalty": found.plain, f"γ = {found.gamma:.2g}": found.stacked}.items():
    print(f"{name}: seen {scores.seen:.1%}, unseen {scores.unseen:.1%}, H {scores.harmonic:.1%}")

# %%
# Without a penalty hardly any drawing of an unseen class gets its name, as nearly always some
# seen class scores higher. With γ, chosen on val classes, both kinds are named about equally
# well. The curve has every γ, and the area below it (AUSUC) judges a model whatever the penalty.

display = SeenUnseenDisplay(found.curve, found.plain, found.stacked, found.gamma)
figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
display.plot(ax=axes)
axes.set(xlim=(-0.02, 0.6), ylim=(-0.02, 0.6))
plt.show()
