"""Words and their vectors."""

import pytest
import torch

from posenc.text import word_vectors, words


def test_splits_words_and_signs():
    assert words("The dog bit the man.") == ["the", "dog", "bit", "the", "man", "."]
    assert words("Don't stop: well-known, ¿sí?") == ["don't", "stop", ":", "well-known", ",", "¿", "sí", "?"]


@pytest.mark.parametrize("sentence", ["", "   ", "\n"])
def test_refuses_a_sentence_without_words(sentence):
    with pytest.raises(ValueError, match="type a sentence"):
        words(sentence)


def test_a_word_has_one_vector_wherever_it_stands():
    drawn = torch.get_rng_state()
    first, second = word_vectors(["dog", "man"], 16), word_vectors(["man", "bit", "dog"], 16)
    assert torch.equal(torch.get_rng_state(), drawn)  # the global generator is left alone
    assert torch.equal(first[0], second[2]) and torch.equal(first[1], second[0])
    assert not torch.equal(first[0], first[1])


def test_vectors_have_unit_variance_and_are_independent():
    vectors = word_vectors([f"word{number}" for number in range(2000)], 16)
    assert vectors.shape == (2000, 16) and vectors.dtype == torch.float64
    # 2000 samples: a mean spreads by .022, a variance by .032, a correlation by .022; the bounds are five of these
    assert vectors.mean(0).abs().max() < 0.11
    assert (vectors.var(0) - 1).abs().max() < 0.16
    assert (vectors.T.corrcoef() - torch.eye(16)).abs().max() < 0.11
