"""Chapter 9's figures of measured data, from untrained models and made-up shares."""

import math

from posenc.chapters.models_you_use import figures
from posenc.chapters.models_you_use.checkpoints import small
from posenc.probe import Questions


def asked(drift, **shares):
    given = dict.fromkeys(figures.SHARES, 0.0) | {"others": 0.0} | shares
    return Questions(**given, any_token=0, any_place=0, drift=drift, relative=False, model="M", layer=0)


def who_asks():
    return figures.who_asks(
        {
            "GPT-2": asked(0.7, content_content=0.4, content_position=0.2, position_content=0.1, position_position=0.3),
            "Llama": asked(1e-14, content_content=0.8, together=0.2),
            "BLOOM": asked(0.0, content_content=0.05, position_position=0.95),
            "none": asked(math.nan, content_content=1.0),
        }
    )


def two_answers():
    whole = {"split": (0.93, 0.06, 0.01, 0.001), "table": (0.95, 0.02, 0.01, 0.02)}
    return figures.two_answers(whole, dict.fromkeys(whole, (0.4, 0.03, 0.01, 0.001, 0.52, 0.03)))


def table_scale():
    return figures.table_scale(small("GPT-2"))


def left_padding():
    return figures.left_padding({name: small(name, predicts=True) for name in ("GPT-2", "OPT", "Llama")})
