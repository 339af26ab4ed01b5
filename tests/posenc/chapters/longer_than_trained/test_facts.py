"""Texts in which every question that counts has a rival."""

import torch

from posenc.chapters.longer_than_trained.facts import rival_batch
from posenc.tasks import ASK, FACT_VALUES, UNASKED


def test_every_question_has_the_newest_for_its_answer_and_a_rival():
    tokens, answers = rival_batch(torch.Generator().manual_seed(5), seeds=2, batch=4)
    key, value = tokens // (FACT_VALUES + 1), tokens % (FACT_VALUES + 1)

    def told(*text, at):
        """The values that a text gives to the key that it asks for at a place, in their order."""
        before = zip(key[*text, :at].tolist(), value[*text, :at].tolist())
        return [v for k, v in before if k == key[*text, at] and v != ASK]

    asked = (answers != UNASKED).nonzero().tolist()
    assert len(asked) > 20
    for *text, at in asked:
        values = told(*text, at=at)
        assert value[*text, at] == ASK and values[-1] == answers[*text, at] and len({*values}) > 1
    for *text, at in ((answers == UNASKED) & (value == ASK)).nonzero().tolist():
        assert len({*told(*text, at=at)}) < 2
