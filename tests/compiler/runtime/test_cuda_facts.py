"""The current device, on a machine that may have none."""

import pytest
import torch

from plumbline.compiler.runtime.cuda_facts import forget_library_workspaces, made_current


def test_another_device_is_made_current_for_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    current = [0]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])

    class Device:
        def __init__(self, device: torch.device) -> None:
            self.index = device.index

        def __enter__(self) -> None:
            self.before, current[0] = current[0], self.index

        def __exit__(self, *error: object) -> None:
            current[0] = self.before

    monkeypatch.setattr(torch.cuda, "device", Device)
    for index in (1, 0):
        with made_current(torch.device("cuda", index)):
            assert current == [index]
        assert current == [0]
    monkeypatch.delattr(torch.cuda, "current_device")
    with made_current(torch.device("cpu")):
        pass


def test_the_private_call_is_there_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: called.append(True), raising=False)
    forget_library_workspaces()
    assert called == [True]
    monkeypatch.delattr(torch._C, "_cuda_clearCublasWorkspaces")
    forget_library_workspaces()
