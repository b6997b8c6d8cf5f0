"""Rows of the vocabulary that neural networks are made of: products, normalisations, pooling, losses, attention."""

from .operator_row import add_rows

_F = "torch.nn.functional"

add_rows("layer", "softmax log_softmax", "torch.NAME({f}, {dim})")
add_rows("layer", "softmax", "torch.softmax({x}, {dim}, dtype={fdtype})", suffix="_dtype")
add_rows("layer", "softmin normalize", f"{_F}.NAME({{f}}, dim={{dim}})")
add_rows("layer", "layer_norm rms_norm", f"{_F}.NAME({{f}}, ({{f}}.shape[-1],))")
add_rows("layer", "layer_norm", f"{_F}.layer_norm({{f}}, ({{f}}.shape[-1],), {{g}}, {{h}})", suffix="_affine")
add_rows("layer", "group_norm", f"{_F}.group_norm({{f}}.unsqueeze(0), 1)")
add_rows("layer", "batch_norm", f"{_F}.batch_norm({{f}}, None, None, training=True)")
add_rows(
    "layer",
    "batch_norm_running",
    f"{_F}.batch_norm({{f}}, {{f}}.detach().new_zeros({{f}}.shape[1]), {{f}}.detach().new_ones({{f}}.shape[1]), "
    "training={flag})",
)
add_rows("layer", "instance_norm", f"{_F}.instance_norm({{f}}.unsqueeze(0))")
add_rows("layer", "cosine_similarity", f"{_F}.cosine_similarity({{f}}, {{g}}, dim={{dim}})")
add_rows("layer", "pairwise_distance", f"{_F}.pairwise_distance({{f}}, {{g}})")
add_rows("layer", "mm_own", "{f} @ {f}.mT")
add_rows("layer", "matmul", "torch.matmul({f}, {g})")
add_rows("layer", "matmul_transposed", "{f} @ {g}.mT")
add_rows("layer", "linear", f"{_F}.linear({{f}}, {{g}})")
add_rows("layer", "outer", "torch.outer({f}.flatten(), {g}.flatten())")
add_rows("layer", "dot", "torch.dot({f}.flatten(), {f}.flatten())")
add_rows("layer", "addmm", "torch.addmm({f}, {f} @ {f}.mT, {f}, beta={k}, alpha={k2})")
add_rows("layer", "einsum", "torch.einsum('...i,...j->...ij', {f}, {g})")
add_rows("layer", "conv1d", f"{_F}.conv1d({{f}}.reshape(1, 1, -1), {{g}}.reshape(1, 1, -1)[..., :3], padding=1)")
add_rows("layer", "conv2d", f"{_F}.conv2d({{f}}[None, None], {{g}}[None, None, :2, :2])")
add_rows("layer", "max_pool1d avg_pool1d", f"{_F}.NAME({{f}}[None], {{window}})")
add_rows("layer", "max_pool2d avg_pool2d", f"{_F}.NAME({{f}}[None], 2, stride=1)")
add_rows("layer", "adaptive_avg_pool1d adaptive_max_pool1d", f"{_F}.NAME({{f}}[None], {{window}})")
add_rows("layer", "interpolate", f"{_F}.interpolate({{f}}[None], scale_factor=2.0)")
add_rows("layer", "glu", f"{_F}.glu({{f}}, {{dim}})")
add_rows("layer", "prelu", f"{_F}.prelu({{f}}, {{g}}.flatten()[:1])")
add_rows("layer", "attention", f"{_F}.scaled_dot_product_attention({{f}}, {{f}}, {{f}})")
add_rows("layer", "attention", f"{_F}.scaled_dot_product_attention({{f}}, {{g}}, {{g}})", suffix="_two")
add_rows("loss", "mse_loss l1_loss smooth_l1_loss huber_loss", f"{_F}.NAME({{f}}, {{g}}, reduction={{reduction}})")
add_rows("loss", "binary_cross_entropy_with_logits", f"{_F}.NAME({{f}}, torch.sigmoid({{g}}), reduction={{reduction}})")
add_rows("loss", "kl_div", f"{_F}.kl_div(torch.log_softmax({{f}}, -1), torch.softmax({{g}}, -1), reduction='sum')")
add_rows(
    "loss",
    "cross_entropy",
    f"{_F}.cross_entropy({{f}}, torch.arange({{f}}.shape[0]) % {{f}}.shape[1], reduction={{reduction}})",
)
add_rows(
    "loss",
    "cross_entropy_smooth",
    f"{_F}.cross_entropy({{f}}, torch.arange({{f}}.shape[0]) % {{f}}.shape[1], label_smoothing=0.1)",
)
add_rows("loss", "soft_margin_loss", f"{_F}.soft_margin_loss({{f}}, torch.sign({{g}}))")
