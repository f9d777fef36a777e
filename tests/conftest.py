"""Settings of all tests."""

from hypothesis import settings

# A busy machine may take long over any example.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")
