"""What chapter 4 draws: a turned vector, two positions and their score, clocks, decay, low precision, trained losses."""

# ruff: noqa: F401
from .heads import aimed, clocks, looking_back, out_of_step, this_key_there
from .measured import by_learning_rate, low_precision, rounding_errors
from .turning import angle, constant_turned, paper, two_layouts, two_positions, where_it_turns
