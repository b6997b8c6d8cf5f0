"""The walk: what it reaches, and by which paths."""

import torch

from plumbline.oracle.state.snapshot import Snapshot
from plumbline.oracle.state.walk import walk


def test_what_cannot_be_rewound_is_named(tmp_path):
    file = (tmp_path / "f").open("w")
    snapshot = Snapshot.take({"args": (iter([1, 2]), {"log": file}, (i for i in range(3)))})
    file.close()
    assert snapshot.obstacles == [
        "args[0] cannot be rewound",
        "args[1]['log'] cannot be rewound",
        "args[2] cannot be rewound",
    ]


def test_paths_are_what_a_user_would_write():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    paths = {visit.path for visit in walk({"self": model, "batch": {"x": [torch.ones(1)]}}).visits}
    assert {"self.0.weight", "self.0.bias", "batch['x'][0]"} <= paths


def test_cycles_end():
    loop: list = []
    loop.append(loop)
    Snapshot.take({"loop": loop}).rewind()
    assert loop[0] is loop
