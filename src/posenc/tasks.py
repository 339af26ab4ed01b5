"""What the small models are trained on: tasks that make their own data.

Every batch has a leading axis of seeds, so that an `Ensemble` can learn from it.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.models import Ensemble, Transformer

CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))  # any other one is read as a space
A, B = 0, 1  # the two tokens whose order is asked for
ORDER_VOCABULARY = 12  # a, b, nine fillers and the neutral last token
NEUTRAL = ORDER_VOCABULARY - 1
FACT_KEYS, FACT_VALUES = 16, 12
ASK = FACT_VALUES  # stands in the place of a value where a token asks for it
UNASKED = -100  # a target that nobody asks for


def order_batch(
    generator: torch.Generator, *, seeds: int, batch: int = 32, length: int = 10, neutral_end: bool = True
) -> tuple[Tensor, Tensor]:
    """ "Is a before b?": random sentences that hold one a and one b.

    Args:
        neutral_end: the last token is always the same and never a or b.

    Returns:
        tokens, shape (seeds, batch, length), and 1.0 where a comes first, shape (seeds, batch).
    """
    tokens = torch.randint(B + 1, NEUTRAL, (seeds, batch, length), generator=generator)
    places = torch.rand(seeds, batch, length - neutral_end, generator=generator).argsort(-1)[..., :2]
    tokens.scatter_(-1, places, torch.tensor([A, B]).expand(seeds, batch, 2))
    if neutral_end:
        tokens[..., -1] = NEUTRAL
    return tokens, (places[..., 0] < places[..., 1]).float()


def order_twins(
    *, length: int = 10, neutral_end: bool = True, repeats: int = 10, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Test sentences, each with its twin: the same sentence with a and b exchanged.

    Every pair of places occurs equally often, and a model that cannot see order gives both twins
    the same answer: it is right about exactly one of them.

    Args:
        length, neutral_end: as in `order_batch`.
        repeats: sentences for each pair of places.
        seed: of the other tokens.

    Returns:
        tokens with a first and tokens with b first, each (pairs, length).
    """
    generator = torch.Generator().manual_seed(seed)
    places = torch.tensor(list(combinations(range(length - neutral_end), 2))).repeat(repeats, 1)
    tokens = torch.randint(B + 1, NEUTRAL, (len(places), length), generator=generator)
    if neutral_end:
        tokens[:, -1] = NEUTRAL
    rows = torch.arange(len(places))
    tokens[rows, places[:, 0]], tokens[rows, places[:, 1]] = A, B
    swapped = tokens.clone()
    swapped[rows, places[:, 0]], swapped[rows, places[:, 1]] = B, A
    return tokens, swapped


def order_loss(outputs: Tensor, a_first: Tensor) -> Tensor:
    """Cross-entropy of the last token's answer, one number per seed."""
    return F.binary_cross_entropy_with_logits(outputs[..., -1, 0], a_first, reduction="none").mean(-1)


@torch.no_grad()
def order_accuracy(ensemble: Ensemble, **options) -> Tensor:
    """Share of right answers on the twins, one number per seed.

    Computed in float64: an order-blind model's two answers then differ by 1e-15 and not by 1e-7,
    so that rounding does not decide a close call.

    Args:
        options: passed to `order_twins`.
    """
    a_first, b_first = order_twins(**options)
    exact = ensemble.double()
    seeds = len(ensemble.seeds)
    yes = exact(a_first.expand(seeds, -1, -1))[..., -1, 0] > 0
    no = exact(b_first.expand(seeds, -1, -1))[..., -1, 0] <= 0
    return (yes.double().mean(-1) + no.double().mean(-1)) / 2


def at_offset(tokens: Tensor, places: Tensor, offset: tuple[int, ...]) -> Tensor:
    """For every token the one that stands at its place + offset, for example the patch above it and two to the right.

    Args:
        tokens: shape (…, T).
        places: the coordinates of the T tokens, all different, shape (T, axes).
        offset: how much further along each axis.

    Returns:
        shape (…, T), with UNASKED where nothing stands there.
    """
    there = (places[:, None] + torch.tensor(offset) == places).all(-1)  # (T, T), from each token to the one asked for
    return tokens[..., there.int().argmax(-1)].where(there.any(-1), UNASKED)


def answer_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the answers that are asked for, one number per seed.

    Args:
        outputs: shape (seeds, …, classes).
        targets: classes, or UNASKED, shape (seeds, …).
    """
    losses = F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), ignore_index=UNASKED, reduction="none")
    return losses.view(len(outputs), -1).sum(-1) / (targets != UNASKED).flatten(1).sum(-1)


def answer_share(outputs: Tensor, targets: Tensor) -> Tensor:
    """Share of right answers among those that are asked for, one number per seed. Shapes: as in `answer_loss`."""
    asked = (targets != UNASKED).flatten(1)
    return ((outputs.argmax(-1) == targets).flatten(1) & asked).sum(-1) / asked.sum(-1)


@cache
def character_text(*, held_out: bool = False) -> Tensor:
    """The help texts of the Python installation, character by character.

    They differ a little between versions of Python, so a loss on them is comparable within one only.

    Args:
        held_out: the last tenth, on which nothing trains, and not the nine before.

    Returns:
        indices into CHARACTERS, shape (N,).
    """
    from pydoc_data.topics import topics  # half a megabyte, for those who ask

    code = {character: index for index, character in enumerate(CHARACTERS)}
    text = torch.tensor([code.get(character, code[" "]) for character in "".join(topics.values())])
    start = len(text) * 9 // 10
    return text[start:] if held_out else text[:start]


def character_batch(
    generator: torch.Generator, *, seeds: int, batch: int = 16, length: int = 64
) -> tuple[Tensor, Tensor]:
    """Random passages of the training text, and the character that follows each of theirs.

    Returns:
        inputs and targets, each (seeds, batch, length).
    """
    text = character_text()
    starts = torch.randint(len(text) - length, (seeds, batch, 1), generator=generator)
    passages = text[starts + torch.arange(length + 1)]
    return passages[..., :-1], passages[..., 1:]


def character_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy in nats a character, one number per seed. Outputs: (seeds, batch, T, characters)."""
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none").view(len(outputs), -1).mean(-1)


def character_passages(context: int, *, count: int = 64, last: int = 64) -> tuple[Tensor, Tensor]:
    """Passages of the held-out text that end at the same places, whatever the context.

    Args:
        context: number of characters that a model may read, at least `last`.
        count: number of passages, spread over the held-out text.
        last: number of targets at the end of each.

    Returns:
        inputs (count, context), and targets (count, last): the same for every context up to 1024.
    """
    text = character_text(held_out=True)
    ends = torch.linspace(1024, len(text) - 1, count).long()[:, None]
    return text[ends - context + torch.arange(context)], text[ends - last + 1 + torch.arange(last)]


class FactEmbedding(nn.Module):
    """Tokens of two halves, a key and a value or a question: two vectors, added. (B, T) → (B, T, width)."""

    def __init__(self, width: int):
        super().__init__()
        self.key, self.value = nn.Embedding(FACT_KEYS, width), nn.Embedding(FACT_VALUES + 1, width)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.key(tokens // (FACT_VALUES + 1)) + self.value(tokens % (FACT_VALUES + 1))


def fact_model(**options) -> Transformer:
    """A causal Transformer that reads facts and names a value at every token; options as there."""
    model = Transformer(1, FACT_VALUES, causal=True, **options)
    model.embedding = FactEmbedding(model.head.in_features)
    return model


def fact_token(key: Tensor, value: Tensor | int) -> Tensor:
    """The token that tells a key's value, or asks for it where value is ASK."""
    return key * (FACT_VALUES + 1) + value


def fact_batch(
    generator: torch.Generator,
    *,
    seeds: int,
    newest: bool,
    batch: int = 16,
    length: int = 32,
    keys: int = FACT_KEYS,
) -> tuple[Tensor, Tensor]:
    """Texts of which half of the tokens tell a fact, a key with its value, and half ask for one.

    Args:
        newest: every fact draws its value anew, and the newest one counts: "the newest". Otherwise a key has
            one value throughout its text: "recall".
        keys: how many different keys a text uses.

    Returns:
        tokens and answers, each (seeds, batch, length); UNASKED where there is nothing to answer.
    """
    shape = seeds, batch, length
    key = torch.randint(0, keys, shape, generator=generator)
    if newest:
        value = torch.randint(0, FACT_VALUES, shape, generator=generator)
    else:
        value = torch.randint(0, FACT_VALUES, (seeds, batch, keys), generator=generator).gather(-1, key)
    asks = torch.rand(shape, generator=generator) < 0.5
    told = torch.where(asks, -1, torch.arange(length))  # where something is told
    latest = torch.full((*shape, keys), -1).scatter(-1, key[..., None], told[..., None]).cummax(-2).values
    place = latest.gather(-1, key[..., None])[..., 0]  # of the newest fact about this token's key
    answer = torch.where(asks & (place >= 0), value.gather(-1, place.clamp(min=0)), UNASKED)
    return fact_token(key, torch.where(asks, ASK, value)), answer


def needles(
    generator: torch.Generator,
    distances: Sequence[int],
    *,
    seeds: int,
    newest: bool,
    batch: int = 8,
    length: int = 256,
    older: tuple[int, int] = (4, 12),
) -> tuple[Tensor, Tensor]:
    """Long texts whose last tokens ask for facts that stand at given distances before them.

    Question j stands at length - len(distances) + j; its key is told that many positions before it and, but
    for the older fact of "the newest", nowhere else. The other tokens are about other keys.

    Args:
        distances: one a question, in positions.
        newest: "the newest": an older fact with another value stands before each. Otherwise "recall".
        older: how many positions before, at least and at most; drawn for each fact.

    Returns:
        tokens (seeds, batch, length), and values (seeds, batch, len(distances)).

    Raises:
        ValueError: there are too many questions, or two of the facts and questions may meet at one position.
    """
    count, rows = len(distances), (seeds, batch)
    if not 0 < count < FACT_KEYS:
        raise ValueError(f"{count} questions: ask 1 to {FACT_KEYS - 1}, so that a key is left for the rest")
    ask = torch.arange(length - count, length)
    told = ask - torch.tensor(distances)
    taken = [*ask.tolist(), *told.tolist()]
    if newest:
        taken += [place - gap for place in told.tolist() for gap in range(older[0], older[1] + 1)]
    if min(taken) < 0 or len({*taken}) < len(taken):
        raise ValueError(f"distances {list(distances)} don't fit a text of {length}: two facts or questions meet")
    tokens, _ = fact_batch(generator, seeds=seeds, newest=newest, batch=batch, length=length, keys=FACT_KEYS - count)
    names = torch.rand(*rows, FACT_KEYS, generator=generator).argsort(-1)  # which keys take part in what
    key, value = tokens // (FACT_VALUES + 1), tokens % (FACT_VALUES + 1)
    tokens = fact_token(names.gather(-1, key), value)
    asked, values = names[..., -count:], torch.randint(0, FACT_VALUES, (*rows, count), generator=generator)
    tokens[..., ask], tokens[..., told] = fact_token(asked, ASK), fact_token(asked, values)
    if newest:
        gap = torch.randint(older[0], older[1] + 1, values.shape, generator=generator)
        other = (values + torch.randint(1, FACT_VALUES, values.shape, generator=generator)) % FACT_VALUES
        tokens.scatter_(-1, told - gap, fact_token(asked, other))
    return tokens, values


@torch.no_grad()
def needle_accuracy(
    ensemble: Ensemble, generator: torch.Generator, distances: Sequence[int], *, texts: int = 64, **options
) -> Tensor:
    """Share of the facts at each distance that a model finds, (seeds, len(distances)).

    Args:
        distances: as in `needles`; every other one is asked for in the same text, so that facts don't meet.
        texts: how many texts a seed, a multiple of 8.
        options: newest, length and older, passed to `needles`.

    Raises:
        ValueError: as in `needles`.
    """
    right = torch.zeros(len(ensemble.seeds), len(distances), dtype=torch.float64)
    for _ in range(texts // 8):  # a few at a time: what fits into the processor's cache is faster
        for part in (slice(0, None, 2), slice(1, None, 2)):
            if distances[part]:
                tokens, values = needles(generator, distances[part], seeds=len(ensemble.seeds), **options)
                answers = ensemble(tokens)[..., -values.shape[-1] :, :].argmax(-1)
                right[:, part] += (answers == values).double().mean(1) / (texts // 8)
    return right
