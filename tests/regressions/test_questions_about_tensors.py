"""What a tensor answers about itself may differ where its guarded metadata agree: a kept answer would be another's."""

import warnings
from collections.abc import Callable

import pytest
import torch

import plumbline

PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout)
UNREPEATABLE = {"_use_count", "__sizeof__", "__weakref__"}  # the answer depends on who else knows the tensor


def _with_kept_gradient() -> torch.Tensor:
    value = torch.ones(4, requires_grad=True) * 2
    value.retain_grad()
    return value


def _with_hook(method: str) -> torch.Tensor:
    value = torch.ones(4, requires_grad=True)
    getattr(value, method)(lambda _: None)
    return value


def _written() -> torch.Tensor:
    return torch.zeros(4).add_(0)


def _with_attribute() -> torch.Tensor:
    value = torch.zeros(4)
    value.note = 1  # type: ignore[attr-defined]  # an attribute of the user's own
    return value


def _leaf() -> torch.Tensor:
    return torch.ones(4, requires_grad=True)


PAIRS: dict[str, tuple[Callable[[], torch.Tensor], Callable[[], torch.Tensor]]] = {
    "view": (lambda: torch.zeros(4), lambda: torch.zeros(8)[:4]),
    "offset": (lambda: torch.zeros(8)[:4], lambda: torch.zeros(8)[4:]),
    "shared memory": (lambda: torch.zeros(4), lambda: torch.zeros(4).share_memory_()),
    "zero tensor": (lambda: torch.zeros(4), lambda: torch._efficientzerotensor(4)),
    "version": (lambda: torch.zeros(4), _written),
    "attribute": (lambda: torch.zeros(4), _with_attribute),
    "kept gradient": (lambda: torch.ones(4, requires_grad=True) * 2, _with_kept_gradient),
    "output": (lambda: _leaf().unbind()[0], lambda: _leaf().unbind()[1]),
    "history": (lambda: _leaf() * 2, lambda: _leaf().sin()),
    "hook": (_leaf, lambda: _with_hook("register_hook")),
    "gradient hook": (_leaf, lambda: _with_hook("register_post_accumulate_grad_hook")),
}


def _attribute(name: str) -> Callable[[torch.Tensor], object]:
    return lambda tensor: getattr(tensor, name)


def _method(name: str) -> Callable[[torch.Tensor], object]:
    return lambda tensor: getattr(tensor, name)()


def _questions() -> dict[str, Callable[[torch.Tensor], object]]:
    """Return everything that a tensor answers with a plain value: attributes, and methods without arguments."""
    questions: dict[str, Callable[[torch.Tensor], object]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(set(dir(torch.Tensor)) - UNREPEATABLE):
            is_method = callable(getattr(torch.Tensor, name, None))
            if is_method and name.endswith("_") and not name.startswith("__"):
                continue  # it changes the tensor
            ask = _method(name) if is_method else _attribute(name)
            try:
                answer = ask(torch.zeros(4))
            except Exception:  # a method that needs arguments, an attribute of other tensors
                continue
            parts = answer if isinstance(answer, tuple) else (answer,)
            if all(isinstance(part, PLAIN) for part in parts):
                questions[name] = ask
    return questions


def _outcome(ask: Callable[[torch.Tensor], object], tensor: torch.Tensor) -> tuple[type, object]:
    """Return the type of the answer or of the error, and the answer if it is plain."""
    try:
        answer = ask(tensor)
    except Exception as error:
        return type(error), None
    plain = all(isinstance(part, PLAIN) for part in (answer if isinstance(answer, tuple) else (answer,)))
    return type(answer), answer if plain else None


QUESTIONS = _questions()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.filterwarnings("ignore")
def test_no_answer_is_kept_for_another_tensor(pair: str) -> None:
    wrong = []
    for name, ask in QUESTIONS.items():
        for order in (PAIRS[pair], PAIRS[pair][::-1]):
            compiled = plumbline.compile(ask, backend="eager")
            for make in order:
                tensor = make()
                expected, actual = _outcome(ask, tensor), _outcome(compiled, tensor)
                if actual != expected:
                    wrong.append((name, expected, actual))
    assert not wrong, "\n".join(map(str, wrong))


def test_enough_is_asked() -> None:
    assert {"_is_view", "_base", "retains_grad", "is_shared", "is_pinned", "_is_zerotensor", "_version"} < set(
        QUESTIONS
    )
    assert len(QUESTIONS) > 60


def test_answers_about_a_view_made_inside() -> None:
    def ask(x: torch.Tensor) -> tuple[bool, bool, bool]:
        return x.view(2, 2)._is_view(), x.view(2, 2).is_shared(), (x + 1).is_shared()

    compiled = plumbline.compile(ask, backend="eager", fullgraph=True)
    for make in PAIRS["shared memory"]:
        assert compiled(make()) == ask(make())


def test_a_question_about_an_input_is_no_break() -> None:
    compiled = plumbline.compile(lambda x: x + 1 if x._is_view() else x + 2, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.zeros(4)), torch.full((4,), 2.0))
    assert torch.equal(compiled(torch.zeros(8)[:4]), torch.ones(4))
