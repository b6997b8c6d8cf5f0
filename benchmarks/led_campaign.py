"""How much more a campaign reaches that is led by what it has reached, than a plain one of as many programs.

    python benchmarks/led_campaign.py [--examples 200] [--seeds 0 1] [--modes guards programs graphs]

Both campaigns test plumbline's compiler under inductor, and note the same behaviour. Printed for each mode and seed:
what each reached in all and by family, and the processor seconds of each. Exits 1 where the led one does
not reach more.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable

from plumbline.fuzz.campaign import CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.coverage.lead import Lead, LedDraw
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.oracle.harness.known_compilers import find_compiler


class PlainLead(Lead):
    """Notes what is reached and leads nowhere."""

    def plan(self, seed: int, numbers: Iterable[int]) -> list[LedDraw]:
        """Return plain draws."""
        return [LedDraw("plain", f"{seed}:{number}") for number in numbers]


def main() -> int:
    """Run the campaigns of all modes and seeds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--modes", nargs="*", default=["guards", "programs", "graphs"])
    asked = parser.parse_args()
    worse = 0
    for mode in asked.modes:
        for seed in asked.seeds:
            plain, led = (campaign(mode, seed, asked.examples, lead) for lead in (PlainLead(), Lead()))
            worse += told(mode, seed, plain) >= told(mode, seed, led)
    return int(worse > 0)


def campaign(mode: str, seed: int, examples: int, lead: Lead) -> CampaignReport:
    """Run one campaign."""
    compiler = find_compiler("plumbline", "inductor")
    report = CampaignReport(mode, compiler.name, "inductor", seed, lead=lead)
    settings = CampaignSettings(examples, seed, led=True, shrink_tries=0)
    return run_campaign(find_fuzzer(mode), compiler, "inductor", settings, report=report)


def told(mode: str, seed: int, report: CampaignReport) -> int:
    """Print what a campaign reached and return how much it is."""
    assert report.lead is not None
    families = Counter(one.partition(":")[0] for one in report.lead.reached)
    parts = ", ".join(f"{count} {family}" for family, count in families.most_common())
    name = type(report.lead).__name__
    count = len(report.lead.reached)
    print(
        f"{mode} {seed} {name}: {count} in {report.examples} programs, {report.cpu_seconds:.0f} CPU s ({parts})",
        flush=True,
    )
    return count


if __name__ == "__main__":
    sys.exit(main())
