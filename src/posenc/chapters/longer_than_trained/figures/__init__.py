"""What chapter 5 draws: where angles end beyond the trained length, and what that costs."""

# ruff: noqa: F401
from .angles import bases, hands, models, stretching
from .measured import card, dilution, dots, needles, shares_by_position, worth
