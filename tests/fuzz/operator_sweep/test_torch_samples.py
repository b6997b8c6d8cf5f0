"""torch's tables of operators: importing them leaves the switches of the process as they were."""

import subprocess
import sys


def test_flags_of_backends_can_be_set_afterwards(tmp_path):
    program = "import torch, plumbline.fuzz.operator_sweep.torch_samples; torch.backends.mkldnn.enabled = False"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
