"""What chapter 3 draws: a product of two sums, its four terms in a sentence, what training did, angles and their cost."""

# ruff: noqa: F401
from .angles import angle_cost, random_cosines, sheets
from .measured import missed, position_maps, subspaces, wanted_by_places
from .terms import NAMES, four_panels, rectangle, unlabelled, weights
