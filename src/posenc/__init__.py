"""Positional encoding, measured: what the notebooks of the course import.

Shapes: T tokens, d size of the vectors at hand; m query position, n key position, i pair, which count from 0.
"""

__version__ = "0.1.0"
