"""Models: scikit-learn classifiers that can name unseen classes.

Public names are imported from `latem` itself; each model lives in the module of its name or kind.
"""
