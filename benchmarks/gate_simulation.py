"""How often the gate is wrong: 10,000 simulated nights through the rules that judge real ones.

    python benchmarks/gate_simulation.py [--nights 10000] [--seed 0] [--sticky 0 0.2 0.5]

The truth of each night is drawn; `judge_night` and `compile_time_alarm` see what a run would show them.  Assumed, after
the study of others' figures: 12,000 cases in six columns; 15 flaky cases at a time, each failing in 0.5 to 40 % of
nights (evenly in the logarithm) and living for 150 nights; one chance failure in a million; 1 % of nights on a
broken machine, where a tenth of one column crashes; a regression every 33 nights, of 5 cases on average (a quarter
of them intermittent, failing in 20 to 80 % of nights), repaired after 14.  `sticky` is the share of flaky failures
that repeat in every retry of that night.  A person who sees a false alarm, or a quarantine that is over, accepts the
case as flaky on the next day, for 180 days.  Quiet nights are those without a regression; void nights are run again.
"""

import argparse
import math
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import date, timedelta
from statistics import mean

from plumbline.reports.gating.acceptance import FLAKY_CASE, Acceptance, Accepted
from plumbline.reports.gating.case_memory import CLEARED, FAILED, PASSED, CaseMemory, Seen
from plumbline.reports.gating.compile_time import RatioPoint, compile_time_alarm
from plumbline.reports.gating.gate_findings import AMBER, RED_LEVELS, Case, GateFinding
from plumbline.reports.gating.night_rules import NightJudgement, NightSeen, judge_night
from plumbline.reports.gating.thresholds import default_thresholds

COLUMNS = tuple(f"{c}:{b}" for c in ("plumbline", "torch") for b in ("eager", "aot_eager", "inductor"))
TESTS = 2_000
FLAKY_AT_A_TIME, FLAKY_LIFE = 15, 150
CHANCE, BROKEN_MACHINE, REGRESSION_EVERY, REPAIRED_AFTER = 1e-6, 0.01, 33, 14
LIMITS = default_thresholds()
START = date(2000, 1, 1)


class AllGood(dict[Case, CaseMemory]):
    """Memories of 12,000 cases of which only the restless are written down; the others were always good."""

    def get(self, case: Case, default: object = None) -> CaseMemory:  # type: ignore[override]  # never None here
        """Return the memory of a case."""
        del default
        return dict.get(self, case) or CaseMemory(last_run=1, last_good=1)


@dataclass(slots=True)
class Regression:
    """A planted one: its cases, their rates of failure (1 unless intermittent), and when the gate saw it."""

    night: int
    cases: dict[Case, float]
    cause: tuple[str, str, str]
    first_failure: int | None = None
    red: int | None = None

    @property
    def intermittent(self) -> bool:
        """Return whether some runs pass."""
        return min(self.cases.values()) < 1.0


@dataclass(slots=True)
class World:
    """What is true, and the accepted list of the people who live with the gate."""

    draw: random.Random
    sticky: float
    flaky: dict[Case, tuple[float, int]] = field(default_factory=dict)
    regression: Regression | None = None
    accepted: list[Acceptance] = field(default_factory=list)

    def case(self, column: str | None = None) -> Case:
        """Draw a case."""
        return (
            f"tests/test_{self.draw.randrange(100)}.py::test_{self.draw.randrange(TESTS)}",
            column or self.draw.choice(COLUMNS),
        )

    def advance(self, night: int) -> None:
        """Let flaky cases come and go, and regressions begin and end."""
        self.flaky = {case: (rate, end) for case, (rate, end) in self.flaky.items() if end > night}
        while len(self.flaky) < FLAKY_AT_A_TIME:
            rate = math.exp(self.draw.uniform(math.log(0.005), math.log(0.4)))
            life = FLAKY_LIFE if night > 1 else self.draw.randrange(1, FLAKY_LIFE)
            self.flaky[self.case()] = (rate, night + life)
        if self.regression is not None and night >= self.regression.night + REPAIRED_AFTER:
            self.regression = None
        if self.regression is None and self.draw.random() < 1 / (REGRESSION_EVERY - REPAIRED_AFTER):
            count = 1 + int(self.draw.expovariate(1 / 4))
            rate = self.draw.uniform(0.2, 0.8) if self.draw.random() < 0.25 else 1.0
            column = self.draw.choice(COLUMNS)
            cause = (self.draw.choice("WC"), self.draw.choice(("values", "gradients")), column.split(":")[1])
            self.regression = Regression(night, {self.case(column): rate for _ in range(count)}, cause)

    def failures(self, night: int) -> dict[Case, Seen]:
        """Return what fails tonight, after its retries."""
        seen: dict[Case, Seen] = {}
        for case, (rate, _) in self.flaky.items():
            if self.draw.random() < rate:
                seen[case] = self._flaked(case)
        for _ in range(self._chance_failures()):
            seen[self.case()] = _seen(CLEARED, ("W", "values", "inductor"))
        regression = self.regression
        if regression is not None:
            for case, rate in regression.cases.items():
                if self.draw.random() < rate:
                    passes = any(self.draw.random() >= rate for _ in range(LIMITS.retry_times))
                    seen[case] = _seen(CLEARED if passes else FAILED, regression.cause)
                    regression.first_failure = regression.first_failure or night
        return seen

    def _flaked(self, case: Case) -> Seen:
        # A failure that does not stick fails again with the case's own rate.
        rate = self.flaky[case][0]
        stuck = self.draw.random() < self.sticky or all(self.draw.random() < rate for _ in range(LIMITS.retry_times))
        return _seen(
            FAILED if stuck else CLEARED, ("W", self.draw.choice(("values", "gradients")), case[1].split(":")[1])
        )

    def _chance_failures(self) -> int:
        return sum(self.draw.random() < CHANCE * 1_000 for _ in range(TESTS * len(COLUMNS) // 1_000))

    def broken_machine(self) -> dict[Case, Seen]:
        """Return the crashes of a night on a broken machine."""
        column = self.draw.choice(COLUMNS)
        return {
            (f"tests/test_x.py::test_{n}", column): _seen(FAILED, ("C", "exception", "")) for n in range(TESTS // 10)
        }


def _seen(fate: str, cause: tuple[str, str, str]) -> Seen:
    mark, aspect, stage = cause
    return Seen(fate=fate, outcome="failed", mark=mark, aspect=aspect, stage=stage, crash=mark == "C", attempts=4)


@dataclass(slots=True)
class Figures:
    """What is counted over the nights of one simulation."""

    tally: Counter[str] = field(default_factory=Counter)
    delays: list[int] = field(default_factory=list)
    single: list[int] = field(default_factory=list)

    def regression_over(self, regression: Regression) -> None:
        """Count a regression that was repaired."""
        kind = "intermittent" if regression.intermittent else "steady"
        self.tally[kind] += 1
        if regression.red is None:
            self.tally[f"{kind}, never red"] += 1
        elif not regression.intermittent:
            self.delays.append(regression.red - regression.night)
            if len(regression.cases) == 1:
                self.single.append(regression.red - regression.night)

    def night(self, world: World, night: int, red: list[GateFinding], *, amber: bool) -> None:
        """Count a night."""
        regression = world.regression
        if regression is None:
            self.tally.update({"quiet": 1, "quiet red": bool(red), "quiet amber": amber and not red})
            return
        mine = any((finding.test, finding.column) in regression.cases for finding in red)
        if mine and regression.red is None:
            regression.red = night
        if not regression.intermittent:
            self.tally.update({"broken": 1, "broken, not red": not mine})

    def table(self, nights: int) -> dict[str, float]:
        """Return the figures by name."""
        share = lambda part, whole: 100 * self.tally[part] / max(1, self.tally[whole])  # noqa: E731 - three words
        return {
            "quiet nights red, %": share("quiet red", "quiet"),
            "quiet nights amber, %": share("quiet amber", "quiet"),
            "nights not red though broken, %": share("broken, not red", "broken"),
            "nights to see a regression, mean": mean(self.delays),
            "  of one case, mean": mean(self.single),
            "  of one case, most": max(self.single),
            "regressions never red": self.tally["steady, never red"],
            "intermittent ones missed, %": share("intermittent, never red", "intermittent"),
            "broken machines told, %": share("machine told", "machine"),
            "reruns a night": self.tally["reruns"] / nights,
        }


def simulate(nights: int, seed: int, sticky: float) -> dict[str, float]:
    """Return the figures of one simulation."""
    world, memories, figures = World(random.Random(seed), sticky), AllGood(), Figures()
    for night in range(1, nights + 1):
        before = world.regression
        world.advance(night)
        if before is not None and world.regression is not before:
            figures.regression_over(before)
        failures = world.failures(night)
        figures.tally["reruns"] += sum(2 if seen.fate == CLEARED else 3 for seen in failures.values())
        if world.draw.random() < BROKEN_MACHINE:
            broken = judge(memories, {**world.broken_machine(), **failures}, night, world)
            figures.tally.update({"machine": 1, "machine told": bool(broken.void)})
        judged = judge(memories, failures, night, world)
        memories.update(judged.memories)
        for case in [case for case, memory in judged.memories.items() if not memory.lively]:
            memories.pop(case, None)
        red = [finding for finding in judged.findings if finding.level in RED_LEVELS]
        amber = [finding for finding in judged.findings if finding.level == AMBER]
        figures.night(world, night, red, amber=bool(amber))
        accept_flaky([*red, *(each for each in amber if each.rule == "quarantine")], night, world)
    return figures.table(nights)


def judge(memories: AllGood, seen: dict[Case, Seen], night: int, world: World) -> NightJudgement:
    """Return what the gate makes of a night."""
    day = START + timedelta(days=night)
    facts = NightSeen(
        run=night,
        seen=seen,
        sizes=dict.fromkeys(COLUMNS, TESTS),
        accepted=Accepted(tuple(world.accepted), day),
        day_of=lambda run: START + timedelta(days=run),
        changed=("your code",),
        unlisted=Seen(fate=PASSED, outcome="passed"),
    )
    return judge_night(memories, facts, LIMITS)


def accept_flaky(findings: list[GateFinding], night: int, world: World) -> None:
    """Do what a person does who sees a false alarm."""
    day = START + timedelta(days=night)
    world.accepted = [entry for entry in world.accepted if entry.expires >= day - timedelta(days=1)]
    for finding in findings:
        if (finding.test, finding.column) in world.flaky:
            for what in (FLAKY_CASE, "failure"):
                world.accepted.append(
                    Acceptance(
                        what=what,
                        test=finding.test,
                        column=finding.column,
                        issue="a flaky test",
                        expires=day + timedelta(days=180),
                    )
                )


def simulate_compile_time(nights: int, seed: int) -> dict[str, float]:
    """Return false alarms and nights to see +20 % and +5 %; noise: 5 % of the machine, 1 % of each column."""
    draw = random.Random(seed)
    window: deque[RatioPoint] = deque(maxlen=LIMITS.compile_time_reference + LIMITS.compile_time_split_window)

    def point(night: int, factor: float) -> RatioPoint:
        machine = draw.gauss(1.0, 0.05)
        return RatioPoint(night, factor * machine * draw.gauss(1.0, 0.01) / (machine * draw.gauss(1.0, 0.01)))

    false = 0
    alarmed = False
    for night in range(nights):
        window.append(point(night, 0.6))
        now = compile_time_alarm(list(window), LIMITS) is not None
        false += now and not alarmed
        alarmed = now
    figures = {"false alarms in all quiet nights": float(false)}
    for share in (0.20, 0.05):
        seen: list[int] = []
        for _ in range(300):
            series = [point(night, 0.6) for night in range(40)]
            for after in range(1, 41):
                series.append(point(40 + after, 0.6 * (1 + share)))
                if compile_time_alarm(series, LIMITS) is not None:
                    seen.append(after)
                    break
        figures[f"+{share:.0%}: nights to see, mean"] = mean(seen)
        figures[f"+{share:.0%}: nights to see, most"] = max(seen)
        figures[f"+{share:.0%}: missed, %"] = 100 * (300 - len(seen)) / 300
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sticky", type=float, nargs="*", default=[0.0, 0.2, 0.5])
    chosen = parser.parse_args()
    rows = {sticky: simulate(chosen.nights, chosen.seed, sticky) for sticky in chosen.sticky}
    print(f"{chosen.nights} nights, seed {chosen.seed}; sticky:", *(f"{sticky:>8}" for sticky in rows))
    for name in next(iter(rows.values())):
        print(f"{name:<36}", *(f"{figures[name]:>8.2f}" for figures in rows.values()))
    print("\ncompile time, ratio of one column to the other compiler's")
    for name, value in simulate_compile_time(chosen.nights, chosen.seed).items():
        print(f"{name:<36} {value:>8.2f}")


if __name__ == "__main__":
    main()
