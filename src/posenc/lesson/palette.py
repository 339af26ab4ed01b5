"""What a colour means, in every chapter. Colour-blind readers can tell those of a group apart."""

QUERY, KEY, CONTENT, POSITION, VALUE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#999933"
NONE, ADDED, TURNED, BIAS = "#777777", "#E69F00", "#332288", "#44AA99"  # families of encodings
SEEN = "#F3EFDC"  # a shade behind what training has shown
GREY = "#777777"
SIGNED = "PuOr_r"  # for maps of values of either sign, white at 0
MAGNITUDE = "cividis"  # for maps of sizes

SKY = "#56B4E9"  # of content that asks for a position, and the like
