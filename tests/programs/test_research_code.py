"""Programs as research code is written: caches, pipes, registries, collation, schedules, text on the way to tensors."""

import collections
import dataclasses
import functools
import itertools
import math
import re

import torch
from torch.nn import functional

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
Pair = collections.namedtuple("Pair", "left right")
BUS = collections.defaultdict(list)
SEEN = []
WEIGHTS = [torch.eye(4) * (layer + 1) for layer in range(2)]


def rearranged(x, pattern, **sizes):
    left, right = (side.strip() for side in pattern.split("->"))
    names, shape = [], []
    for size, token in zip(x.shape, re.findall(r"\([^)]*\)|\S+", left), strict=True):
        inner = token[1:-1].split() if token.startswith("(") else [token]
        known = math.prod(sizes[name] for name in inner if name in sizes)
        names += inner
        shape += [sizes.get(name, size // known) for name in inner]
    x = x.reshape(shape).permute([names.index(name) for name in re.findall(r"\w+", right)])
    rest = iter(x.shape)
    groups = [token.count(" ") + 1 for token in re.findall(r"\([^)]*\)|\S+", right)]
    return x.reshape([math.prod(itertools.islice(rest, count)) for count in groups])


@program(torch.arange(24.0).reshape(1, 4, 6), 2, changed=lambda: (torch.arange(24.0).reshape(1, 4, 6), 3))
def axes_named_in_a_pattern(x, heads):
    return rearranged(x, "b n (h d) -> b h n d", h=heads), rearranged(x, "b n c -> (b n) c")


def collated(batch):
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch)
    if isinstance(first, int | float):
        return torch.tensor(batch)
    if isinstance(first, collections.abc.Mapping):
        return {key: collated([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collated(column) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence) and not isinstance(first, str):
        return [collated(column) for column in zip(*batch, strict=True)]
    return batch


@program([{"x": torch.ones(2), "y": 1, "name": "a"}, {"x": torch.zeros(2), "y": 2, "name": "b"}])
def collation_of_mappings(batch):
    return collated(batch)


@program([Pair(1.5, [1, 2]), Pair(2.5, [3, 4])])
def collation_of_named_tuples(batch):
    return collated(batch)


class Tokens:
    pattern = re.compile(r"\w+|[^\w\s]")

    def __init__(self):
        self.table = {"<pad>": 0, "<unknown>": 1, "hello": 2, "cat": 3}

    def __call__(self, text, length):
        found = [self.table.get(word, 1) for word in self.pattern.findall(text.lower())][:length]
        return found + [0] * (length - len(found))


TOKENS = Tokens()


@program(torch.arange(40.0).reshape(10, 4), "Hello, cat", changed=lambda: (torch.ones(10, 4), "dog"))
def text_to_rows_of_a_table(table, text):
    numbers = TOKENS(text, 4)
    return table[torch.tensor(numbers)].sum(0), numbers


class Pipe:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, x):
        return functools.reduce(lambda value, step: step(value), self.steps, x)

    def __or__(self, step):
        return Pipe(*self.steps, step)

    def __rshift__(self, step):
        return self | step


PIPE = Pipe(torch.sin) | torch.relu | (lambda x: x + 1)


@program(A)
def steps_joined_by_operators(x):
    return (PIPE >> torch.cos)(x), len(PIPE.steps)


def on(event):
    def register(function):
        BUS[event].append(function)
        return function

    return register


@on("forward")
def doubles(x):
    SEEN.append(x.shape[0])
    return x * 2


on("forward")(lambda x: None)


@program(A, state=lambda: SEEN, stable=False)
def handlers_of_an_event(x):
    answers = [answer for handler in BUS["forward"] if (answer := handler(x)) is not None]
    return answers, len(SEEN)


class Cache:
    def __init__(self):
        self.keys, self.values, self.seen = [], [], 0

    def update(self, key, value, layer):
        if layer == 0:
            self.seen += key.shape[-2]
        if len(self.keys) <= layer:
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], -2)
            self.values[layer] = torch.cat([self.values[layer], value], -2)
        return self.keys[layer], self.values[layer]


@program(torch.linspace(-1, 1, 12).reshape(1, 3, 4), Cache())
def keys_and_values_kept_for_the_next_token(x, cache):
    for layer, weight in enumerate(WEIGHTS):
        query = x @ weight
        key, value = cache.update(query * 0.5, query * 2, layer)
        place = torch.arange(cache.seen - x.shape[-2], cache.seen)
        mask = torch.arange(key.shape[-2])[None] <= place[:, None]
        x = x + functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return x


@program(torch.linspace(-1, 1, 4), torch.linspace(0, 1, 4), torch.zeros(4))
def advantages_from_the_last_step_back(reward, value, done):
    advantage, last = torch.zeros_like(reward), 0.0
    for t in reversed(range(len(reward))):
        following = value[t + 1] if t + 1 < len(reward) else 0.0
        last = reward[t] + 0.99 * following * (1 - done[t]) - value[t] + 0.9 * (1 - done[t]) * last
        advantage[t] = last
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


class Schedule:
    def __init__(self):
        self.step, self.rates = 0, []

    def __call__(self):
        self.step += 1
        warm = self.step / 3
        rate = 0.1 * (warm if self.step < 3 else 0.5 * (1 + math.cos(math.pi * (warm - 1))))
        self.rates.append(rate)
        return rate


@program(A, Schedule(), stable=False)
def rate_of_a_schedule(x, schedule):
    return x - schedule() * x.sum()


def remembered(function):
    table = f"_answers_of_{function.__name__}"

    @functools.wraps(function)
    def ask(self, *args):
        answers = self.__dict__.setdefault(table, {})
        if args not in answers:
            answers[args] = function(self, *args)
        return answers[args]

    return ask


class Grids:
    made = 0

    @remembered
    def grid(self, height, width):
        self.made += 1
        return torch.arange(float(height * width)).view(height, width)


@program(A, Grids(), stable=False)
def method_that_remembers_its_answers(x, grids):
    return x + grids.grid(*x.shape) + grids.grid(x.shape[0], x.shape[1]), grids.made


@dataclasses.dataclass(order=True)
class Hypothesis:
    score: float
    tokens: list = dataclasses.field(compare=False, default_factory=list)


@program(A, [Hypothesis(-1.0, [1]), Hypothesis(-0.5, [2])])
def hypotheses_sorted_and_grown(x, beam):
    grown = [Hypothesis(one.score - step, [*one.tokens, step]) for one in beam for step in range(2)]
    best = sorted(grown, reverse=True)[:2]
    return x * len(best), best, max(grown).tokens


@program(torch.linspace(0, 1, 10).reshape(5, 2), 2)
def batches_from_generators(x, size):
    def rows():
        yield from x

    def batches(items):
        kept = []
        for item in items:
            kept.append(item)
            if len(kept) == size:
                yield torch.stack(kept)
                kept = []
        if kept:
            yield torch.stack(kept)

    return [batch.sum(0) for batch in batches(rows())]


@corpus.parametrize()
def test_program(program):
    check(program)
