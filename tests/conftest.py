"""What every test stands on: one thread, fixed seeds, an empty inductor cache."""

import gc
import os
import random
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

SEED = 20260

# Before torch is imported anywhere: one thread a process, so that xdist workers do not fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests put functions of their own into the compiler, and must not be given what it made before.  The tests of the cache
# of graphs switch it on.
os.environ.setdefault("PLUMBLINE_GRAPH_CACHE", "0")
# Tests of NumPy programs have small arrays, and are to hold compiled code to NumPy.  Those of the threshold set it.
os.environ.setdefault("PLUMBLINE_NUMPY_THRESHOLD", "0")


# How long a draw takes depends on what else the machine does: it says nothing about the code under test.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Give the session an empty inductor cache; xdist workers inherit the controller's, and share what it holds."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="plumbline-inductor-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name
        os.environ["PLUMBLINE_BUNDLE_DIRECTORY"] = f"{folder.name}/bundles"  # errors planted here are not the user's


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let autograd start, and take what thousands of collected tests consist of out of garbage collection.

    A whole collection takes seconds otherwise, and runs of pytest inside tests ask for several each.
    """
    if torch := sys.modules.get("torch"):
        # At the first backward torch starts threads for the devices that it knows, and no child can be forked after it.
        # Tests of fake GPUs make one known: let the first be now.
        torch.ones((), requires_grad=True).backward()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Seed Python, and NumPy and torch if somebody has loaded them; a test without torch stays without it."""
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(SEED)  # `torch.manual_seed` keeps a stack for every kind of device
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(SEED)


@pytest.fixture(autouse=True)
def nothing_shared() -> Iterator[None]:
    """Let no test find what another has compiled, or its judge between a program and what `compile` returns."""
    if shared := sys.modules.get("plumbline.compiler.frontend.units.shared_units"):
        shared.forget_units()
    yield
    if interception := sys.modules.get("plumbline.oracle.harness.interception"):
        interception.stop_intercepting()
