"""Positional encoding, measured: what the notebooks of the course import.

Shapes: T tokens, m query position, n key position, d head size, i pair; all count from 0.
"""
