"""A package, since tests/exercises has modules of the same names."""
