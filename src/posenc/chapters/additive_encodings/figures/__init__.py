"""What chapter 2 draws: a word at a place, codes of positions, the clock behind a pair, and what a sum still holds."""

# ruff: noqa: F401
from .codes import corners, count_and_norm, position_codes, where_encodings_act, word_at_a_place
from .hands import all_hands, clock_and_waves, similarity_by_offset
from .sums import AMPLITUDES, RATES, amplitude, amplitude_map, show_shares, tokens_and_positions
