"""The collector rests while modules are imported, and is afterwards as it was."""

import contextlib
import gc

import pytest

from plumbline.pytest_plugin.collector_pause import collector_paused


@pytest.mark.parametrize("running", [True, False])
def test_it_is_put_back_also_after_an_error(running):
    was = gc.isenabled()
    try:
        (gc.enable if running else gc.disable)()
        with contextlib.suppress(ImportError), collector_paused():
            seen = gc.isenabled()
            raise ImportError
        assert not seen
        assert gc.isenabled() is running
    finally:
        (gc.enable if was else gc.disable)()
