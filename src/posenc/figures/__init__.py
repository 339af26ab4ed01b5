"""What the sliders draw: one module a chapter, named like it, and `training` for all of them.

A figure function can be called without arguments and returns a `Live`; what it plots comes from
the subject modules. Colours are from the palette of Okabe and Ito, which colour-blind readers can
tell apart.
"""

BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#777777"
SIGNED = "PuOr_r"  # for values of either sign, white at 0
