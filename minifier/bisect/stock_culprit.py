"""The culprit of a failure of stock `torch.compile`, by stock's own switches; stock is not edited.

The first wrong backend of the ladder, then its options, then what stock itself counts: decompositions, passes and
lowerings.  Of options that mend it one is kept by halving; of a subsystem the shortest prefix that fails is found.
All this without caches of graphs on disk; where the case is right without them, the guilty cache is found.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from plumbline.oracle.harness.stock_torch import (
    STOCK_CACHES,
    STOCK_OPTIONS,
    STOCK_SUBSYSTEMS,
    StockApplication,
    StockSwitches,
    stock_switched,
)

AskBackend = Callable[[str], bool]
"""Whether the case fails with a backend of the ladder (eager, aot_eager, inductor), under the switches in force."""

WITHOUT_INDUCTOR = "aot_eager_decomp_partition"
Option = tuple[str, str, object]
_STAGE = {
    "eager": "capture (torch._dynamo)",
    "aot_eager": "autograd and functionalisation (AOTAutograd)",
    WITHOUT_INDUCTOR: "decompositions and partition",
    "inductor": "inductor",
}


@dataclass(frozen=True, slots=True)
class StockCulprit:
    """What of stock is to blame.

    backend: the first of the ladder that is wrong.  option: (configuration, name, value) that mends it; None: none
    does.  application: the decisive one of what stock counts, None where that was not needed or mends nothing.
    reproduced: that option, or all but that application, was asked for again with the same answer.
    """

    backend: str
    option: Option | None
    application: StockApplication | None
    reproduced: bool
    queries: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Return one line for people."""
        text = _STAGE[self.backend]
        if self.application is not None:
            words = f": {self.application.what}" if self.application.what else ""
            text += f"; {self.application.subsystem} {self.application.number}{words}"
        if self.option is not None:
            part, name, value = self.option
            text += f"; right with {part} option {name}={value!r}"
        return f"{self.backend}: {text}"

    def as_data(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self) | {"sentence": self.sentence}

    def text(self) -> str:
        """Return the sentence and what it cost."""
        return f"culprit: {self.sentence}\n  {self.queries} queries, {self.seconds:.1f} s"


@dataclass(slots=True)
class _Stock:
    """Asks, and counts."""

    ask: AskBackend
    queries: int = 0
    last: list[StockApplication] = field(default_factory=list)

    def fails(self, backend: str, **switches: object) -> bool:
        self.queries += 1
        chosen = StockSwitches(without_inductor=backend == WITHOUT_INDUCTOR, **switches)  # type: ignore[arg-type]  # its fields
        with stock_switched(chosen):
            failed = self.ask("inductor" if backend == WITHOUT_INDUCTOR else backend)
        self.last = chosen.applied
        return failed


def stock_culprit_of(ask: AskBackend, backend: str = "inductor") -> StockCulprit | None:
    """Return what of stock is to blame for a failure with a backend; None where the case does not fail."""
    start, stock = time.perf_counter(), _Stock(ask)
    if not stock.fails(backend):
        return _of_caches(stock, backend, start)
    guilty = next((name for name in _below(backend) if stock.fails(name)), backend)
    option = _option(stock, guilty)
    application = _application(stock, guilty) if guilty in (WITHOUT_INDUCTOR, "inductor") else None
    reproduced = False
    if option is not None:
        reproduced = not stock.fails(guilty, options=_as_options([option]))
    elif application is not None:
        reproduced = not stock.fails(guilty, subsystem=application.subsystem, most=application.number)
    return StockCulprit(guilty, option, application, reproduced, stock.queries, time.perf_counter() - start)


def _of_caches(stock: _Stock, backend: str, start: float) -> StockCulprit | None:
    """Return the cache on disk whose graphs are wrong for the case; None where it does not fail with caches either."""
    if not stock.fails(backend, caches=True):
        return None
    guilty = next((name for name in _below(backend) if stock.fails(name, caches=True)), backend)
    for option in STOCK_CACHES:
        if not stock.fails(guilty, caches=True, options=_as_options([option])):
            reproduced = stock.fails(guilty, caches=True)
            return StockCulprit(guilty, option, None, reproduced, stock.queries, time.perf_counter() - start)
    return StockCulprit(guilty, None, None, False, stock.queries, time.perf_counter() - start)


def _below(backend: str) -> list[str]:
    """Return the rungs of the ladder below a backend."""
    ladder = ["eager", "aot_eager", WITHOUT_INDUCTOR, "inductor"]
    return ladder[: ladder.index(backend)] if backend in ladder else []


def _option(stock: _Stock, backend: str) -> Option | None:
    """Return an option that mends the case alone, if all of them together do."""
    options = list(STOCK_OPTIONS.get(backend, ()))
    if not options or stock.fails(backend, options=_as_options(options)):
        return None
    while len(options) > 1:
        half = options[: len(options) // 2]
        if not stock.fails(backend, options=_as_options(half)):
            options = half
        elif not stock.fails(backend, options=_as_options(options[len(half) :])):
            options = options[len(half) :]
        else:
            return None  # it takes two of them
    return options[0]


def _as_options(options: Sequence[Option]) -> dict[tuple[str, str], object]:
    return {(part, name): value for part, name, value in options}


def _application(stock: _Stock, backend: str) -> StockApplication | None:
    """Return the application of the latest subsystem without which the case is right."""
    names = STOCK_SUBSYSTEMS if backend == "inductor" else STOCK_SUBSYSTEMS[:1]
    stock.fails(backend)
    counts = {name: sum(each.subsystem == name for each in stock.last) for name in names}
    for name in reversed(names):
        if not counts[name] or stock.fails(backend, subsystem=name, most=0):
            continue
        fewest, most = 1, counts[name]
        while fewest < most:
            middle = (fewest + most) // 2
            if stock.fails(backend, subsystem=name, most=middle):
                most = middle
            else:
                fewest = middle + 1
        stock.fails(backend, subsystem=name, most=most)
        return [each for each in stock.last if each.subsystem == name][most - 1]
    return None
