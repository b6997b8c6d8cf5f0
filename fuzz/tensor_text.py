"""The elements and the layout of an input tensor as Python expressions that need `torch` only."""

from collections.abc import Callable

Shape = tuple[int, ...]


def laid_out(layout: str, shape: Shape, elements: Callable[[Shape], str]) -> str:
    """Return a tensor of a shape as an expression.

    layout: `contiguous`, `transposed`, `channels_last`, `every_second`, `offset` or `expanded`; one that needs more
    dimensions than there are is contiguous.  elements: a contiguous tensor of the shape it is given.
    """
    dims = len(shape)
    if layout == "transposed" and dims > 1:
        return f"{elements(shape[::-1])}.permute({tuple(reversed(range(dims)))})"
    if layout == "channels_last" and dims > 2:
        order = (0, dims - 1, *range(1, dims - 1))
        return f"{elements((shape[0], *shape[2:], shape[1]))}.permute({order})"
    if layout == "every_second" and shape:
        return f"{elements((*shape[:-1], 2 * shape[-1]))}[..., ::2]"
    if layout == "offset" and shape:
        return f"{elements((shape[0] + 1, *shape[1:]))}[1:]"
    if layout == "expanded" and shape:
        return f"{elements((1, *shape[1:]))}.expand({shape})"
    return elements(shape)


def drawn_from(seed: int) -> str:
    """Return the argument of torch's random functions that makes them draw from a generator of their own."""
    return f"generator=torch.Generator().manual_seed({seed})"


def drawn_floats(values: str, shape: Shape, drawn: str, special: tuple[str, ...]) -> str:
    """Return a float32 tensor of some kind of values.

    special: numbers, as expressions, among which the kind of that name chooses.
    """
    normal = f"torch.randn({shape}, {drawn})"
    texts = {
        "normal": normal,
        "ties": f"torch.randint(-2, 3, {shape}, {drawn}).float()",
        "positive": f"(torch.rand({shape}, {drawn}) + 0.5)",
        "zeros": f"(torch.zeros({shape}) * {normal})",  # zeros of both signs
        "constant": f"torch.full({shape}, 0.75)",
        "wide": f"({normal} * 1e4 ** {normal})",
        "special": f"torch.tensor([{', '.join(special)}])[torch.randint(0, {len(special)}, {shape}, {drawn})]",
    }
    return texts[values]
