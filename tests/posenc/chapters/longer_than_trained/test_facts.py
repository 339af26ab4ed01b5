"""Texts in which every question that counts has a rival."""

import torch

from posenc.chapters.longer_than_trained.facts import rival_batch
from posenc.tasks import ASK, FACT_VALUES, UNASKED


def test_every_question_has_the_newest_for_its_answer_and_a_rival():
    tokens, answers = rival_batch(torch.Generator().manual_seed(5), seeds=2, batch=4)
    key, value = tokens // (FACT_VALUES + 1), tokens % (FACT_VALUES + 1)
    asked = 0
    for place in (answers != UNASKED).nonzero().tolist():
        *text, at = place
        told = [
            v for k, v in zip(key[*text, :at].tolist(), value[*text, :at].tolist()) if k == key[*place] and v != ASK
        ]
        assert value[*place] == ASK and told[-1] == answers[*place]
        assert any(v != told[-1] for v in told)
        asked += 1
    assert asked > 20
    left_out = (answers == UNASKED) & (value == ASK)
    for *text, at in left_out.nonzero().tolist():
        told = {
            v for k, v in zip(key[*text, :at].tolist(), value[*text, :at].tolist()) if k == key[*text, at] and v != ASK
        }
        assert len(told) < 2
