"""Rows of the vocabulary that reduce or accumulate along dimensions."""

from .operator_row import add_rows

_ALL = "sum mean prod amax amin max min any all argmax argmin std var count_nonzero nansum median"

add_rows("reduction", _ALL, "torch.NAME({x})", suffix="_all")
add_rows("reduction", "sum mean amax amin any all nansum nanmean", "torch.NAME({x}, {dims}, keepdim={keep})")
add_rows("reduction", "prod argmax argmin any all cumsum", "torch.NAME({x}, {dim})", suffix="_dim")
add_rows("reduction", "sum mean", "torch.NAME({x}, {dims}, dtype={fdtype})", suffix="_dtype")
add_rows("reduction", "sum", "torch.sum({x}, dtype={dtype})", suffix="_all_dtype")
add_rows("reduction", "var std", "torch.NAME({f}, {dims}, correction={correction}, keepdim={keep})")
# Of infinities the kernel's running mean makes NaN or not, by their order; nobody can repeat that.
add_rows("reduction", "var_mean std_mean", "torch.NAME(torch.nan_to_num({f}).clamp(-1e4, 1e4), {dim})", results=2)
add_rows("reduction", "max min", "torch.NAME({x}, {dim}, keepdim={keep})", results=2)
add_rows("reduction", "aminmax", "torch.aminmax({x}, dim={dim})", results=2)
add_rows("reduction", "logsumexp", "torch.logsumexp({f}, {dims}, keepdim={keep})")
add_rows("reduction", "vector_norm", "torch.linalg.vector_norm({f}, {ord}, {dims}, keepdim={keep})")
add_rows("reduction", "norm", "{f}.norm()")
add_rows("reduction", "dist", "torch.dist({f}, {g})")
add_rows("reduction", "sum_of_sum", "{x}.sum({dim}).sum()")
add_rows("reduction", "sum_twice", "{x}.sum().sum()")
add_rows("reduction", "mean_of_max", "{f}.amax({dim}).mean()")
add_rows("reduction", "centred", "{f} - {f}.mean({dim}, keepdim=True)")
add_rows("reduction", "normalised", "{f} / ({f}.abs().sum({dim}, keepdim=True) + 1)")
add_rows("reduction", "trace", "torch.trace({x})")
add_rows("scan", "cumsum cumprod logcumsumexp", "torch.NAME({x}, {dim})")
add_rows("scan", "cumsum", "torch.cumsum({x}, {dim}, dtype={dtype})", suffix="_dtype")
add_rows("scan", "cummax cummin", "torch.NAME({x}, {dim})", results=2)
add_rows("scan", "diff", "torch.diff({x}, dim={dim})")
