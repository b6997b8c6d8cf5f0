"""What the judge says, in JUnit's XML: properties of each test case, and a skip for a test that judged nothing."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import pytest
from _pytest.junitxml import xml_key

_PROPERTIES = ("verdict", "stage", "sentence", "boundaries", "judged_calls", "graphs", "breaks", "recompiles")


def properties_of(case: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the properties of a test case from its row: verdict, margin, stage, what was compiled."""
    if not case["verdict"]:
        return []
    margin = float(case["margin"])
    found = {name: case[name] for name in _PROPERTIES}
    found["margin"] = f"{margin:.3g}" if math.isfinite(margin) else margin
    judged = [str(event["reason"]) for event in case["events"] if event["kind"] == "judged"]
    found |= {"judged": judged[0]} if judged else {}
    return [(f"plumbline.{name}", str(value)) for name, value in found.items() if value not in (None, "")]


def skip_in_junit(config: pytest.Config, report: pytest.TestReport, reason: str) -> None:
    """Turn the pass that pytest has just noted for a test into a skip, with its reason."""
    writer = config.stash.get(xml_key, None)
    if writer is None:
        return
    writer.node_reporter(report).append(ET.Element("skipped", type="plumbline.vacuous", message=reason))
    writer.stats["passed"] -= 1
