"""How many planted faults the fuzzers find, after how many examples, and how fast they go.

Run `PYTHONPATH=tests python benchmarks/fuzz_mutation_score.py [examples]`; the bar is 90 % of the faults.
A fault that no program of the vocabulary can show would count against the score: none is left out.
"""

import argparse
import time

from plumbline.fuzz.campaign import CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.harness.known_compilers import find_compiler
from support.planted_compilers import PlantedCompiler
from support.planted_faults import FAULTS, FROZEN_ARGUMENTS, FROZEN_PLACES, FreezingCompiler, faulty_compiler


def hunt(mode: str, compiler: CompilerUnderTest, examples: int, seed: int, backend: str = "eager") -> CampaignReport:
    """Run a campaign that stops at its first failure and does not shrink."""
    options = CampaignSettings(examples, seed, most_failures=1, shrink_tries=0)
    return run_campaign(find_fuzzer(mode), compiler, backend, options)


def score(mode: str, compilers: dict[str, CompilerUnderTest], examples: int, seed: int) -> None:
    """Print each fault with the example that showed it, and the share found."""
    found = []
    for name, compiler in compilers.items():
        report = hunt(mode, compiler, examples, seed)
        said = f"after {report.examples}" if report.failures else "NOT FOUND"
        print(f"  {name:<45} {said:>12}  {report.failures[0].signature.aspect if report.failures else ''}", flush=True)
        found += [report.examples] if report.failures else []
    median = sorted(found)[len(found) // 2] if found else 0
    print(f"{mode}: {len(found)} of {len(compilers)} planted faults, median after {median} examples")


def main() -> None:
    """Print mutation scores, false alarms, and examples per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=int, nargs="?", default=400)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for mode in ("transforms", "guards"):
        report = hunt(mode, PlantedCompiler(), chosen.examples, chosen.seed)
        rate = report.examples / report.seconds
        print(f"{mode}: identity compiler, {len(report.failures)} false alarms in {report.examples}, {rate:.0f}/s")
        started = time.monotonic()
        report = hunt(mode, find_compiler("torch", "eager"), 60, chosen.seed)
        rate = report.examples / (time.monotonic() - started)
        print(f"{mode}: stock torch.compile, backend eager: {rate:.1f} examples/s", flush=True)
    score("transforms", {name: faulty_compiler(name) for name in FAULTS}, chosen.examples, chosen.seed)
    places = (*FROZEN_PLACES, *FROZEN_ARGUMENTS)
    score("guards", {f"no guard on {place}": FreezingCompiler(place) for place in places}, chosen.examples, chosen.seed)


if __name__ == "__main__":
    main()
