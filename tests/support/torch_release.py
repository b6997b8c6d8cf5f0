"""Which release of torch this is, for tests of what torch itself does: that changes from one to the next."""

import torch

from plumbline.compiler.base.torch_versions import precedes


def since_release(release: str | None) -> bool:
    """Return whether torch is of a release such as "2.15", or newer; never, if no release is named."""
    return release is not None and not precedes(torch.__version__, release)


SAVED_TENSORS_ARE_READ_ONE_BY_ONE = since_release("2.13")
"""Before, a write to one result of a compiled graph ends the backward of the others."""
