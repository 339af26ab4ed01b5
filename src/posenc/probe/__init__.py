"""A port's positions, probed from the outside: for any model, also where the rest of this course is not in use.

Nothing here needs Jupyter or matplotlib; importing it loads torch alone.
"""

from posenc.probe.convention import Convention, convention

__all__ = ["Convention", "convention"]
