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
add_rows("layer", "addmm_zero_beta", "torch.addmm({h}, {f}, {f}.mT, beta=0)")
add_rows("layer", "baddbmm_zero_beta", "torch.baddbmm({h}, {f}, {f}.mT, beta=0, alpha={k})")
add_rows("layer", "addmv", "torch.addmv({h}, {f}, {g}, beta={k})")
add_rows("layer", "addr", "torch.addr({h}, {f}, {g}, beta={k}, alpha={k2})")
add_rows("layer", "addbmm", "torch.addbmm({h}, {f}, {f}.mT, beta={k})")
add_rows("layer", "bmm mv inner", "torch.NAME({f}, {g})")
add_rows("layer", "bilinear", f"{_F}.bilinear({{f}}, {{f}}, {{f}}.new_ones(2, {{f}}.shape[-1], {{f}}.shape[-1]))")
add_rows("layer", "matmul_integers", "torch.matmul({i}, {i}.mT)")
add_rows("layer", "einsum_trace", "torch.einsum('ii->i', {f})")
add_rows("layer", "einsum_sum", "torch.einsum('ij,ij->i', {f}, {g})")
add_rows("layer", "einsum_bilinear", "torch.einsum('bi,bj->bij', {f}, {g})")
add_rows("layer", "multi_dot", "torch.linalg.multi_dot([{f}, {f}.mT, {f}])")
add_rows(
    "layer",
    "conv1d_groups",
    f"{_F}.conv1d({{f}}.flatten()[None, None].expand(1, 4, -1), {{g}}.new_ones(4, 2, 2), groups=2, "
    "stride={window}, dilation={window2}, padding=1)",
)
add_rows(
    "layer",
    "conv2d_bias",
    f"{_F}.conv2d({{f}}[None, None], {{g}}.new_ones(2, 1, 2, 2), {{g}}.flatten()[:2], padding='same')",
)
add_rows("layer", "conv2d_batch", f"{_F}.conv2d({{f}}, {{g}})")
add_rows(
    "layer",
    "conv_transpose1d",
    f"{_F}.conv_transpose1d({{f}}.flatten()[None, None], {{g}}.flatten()[None, None, :3], stride={{window}}, "
    "output_padding=0)",
)
add_rows(
    "layer",
    "conv_transpose2d",
    f"{_F}.conv_transpose2d({{f}}[None, None], {{g}}[None, None, :2, :2], dilation={{window}})",
)
add_rows("layer", "conv3d", f"{_F}.conv3d({{f}}[None, None], {{g}}.new_ones(1, 1, 1, 1, 2))")
add_rows(
    "layer",
    "max_pool2d_ceil",
    f"{_F}.max_pool2d({{f}}[None], 2, stride={{window}}, ceil_mode=True, dilation={{window2}})",
)
add_rows("layer", "max_pool2d_padded", f"{_F}.max_pool2d({{f}}[None], 3, 2, 1, return_indices=True)", results=2)
add_rows("layer", "max_pool3d avg_pool3d", f"{_F}.NAME({{f}}[None], 2, 1)")
add_rows(
    "layer",
    "avg_pool2d_counts",
    f"{_F}.avg_pool2d({{f}}[None], 3, {{window}}, 1, ceil_mode={{flag}}, count_include_pad={{flag2}})",
)
add_rows("layer", "avg_pool2d_divisor", f"{_F}.avg_pool2d({{f}}[None], 2, divisor_override=3)")
add_rows("layer", "lp_pool1d", f"{_F}.lp_pool1d({{f}}[None], 2, {{window}})")
add_rows("layer", "adaptive_avg_pool2d adaptive_max_pool2d", f"{_F}.NAME({{f}}[None], ({{window}}, {{window2}}))")
add_rows("layer", "max_unpool2d", f"{_F}.max_unpool2d(*{_F}.max_pool2d({{f}}[None], 2, return_indices=True), 2)")
add_rows(
    "layer",
    "interpolate_linear",
    f"{_F}.interpolate({{f}}[None], scale_factor=1.5, mode='linear', align_corners={{flag}})",
)
add_rows(
    "layer",
    "interpolate_plane",
    f"{_F}.interpolate({{f}}[None, None], size=({{window}}, 5), mode={{upmode}}, align_corners={{flag}})",
)
add_rows("layer", "interpolate_near", f"{_F}.interpolate({{f}}[None], size=7, mode={{nearmode}})")
add_rows("layer", "interpolate_area", f"{_F}.interpolate({{f}}[None, None], size=(3, 2), mode='area')")
add_rows(
    "layer", "interpolate_smooth", f"{_F}.interpolate({{f}}[None, None], size=(3, 2), mode='bilinear', antialias=True)"
)
add_rows(
    "layer",
    "grid_sample",
    f"{_F}.grid_sample({{f}}[None, None], torch.tanh({{g}}).reshape(-1)[:8].reshape(1, 2, 2, 2), "
    "align_corners={flag})",
)
add_rows("layer", "local_response_norm", f"{_F}.local_response_norm({{f}}, 2)")
add_rows("layer", "group_norm_two", f"{_F}.group_norm({{f}}, {{window}}, eps=0.1)")
add_rows(
    "layer",
    "batch_norm_eval",
    f"{_F}.batch_norm({{f}}, {{f}}.detach().new_zeros({{f}}.shape[1]), {{f}}.detach().new_ones({{f}}.shape[1]))",
)
add_rows("layer", "attention_causal", f"{_F}.scaled_dot_product_attention({{f}}, {{f}}, {{f}}, is_causal=True)")
add_rows(
    "layer", "attention_mask", f"{_F}.scaled_dot_product_attention({{f}}, {{f}}, {{f}}, ({{f}} @ {{f}}.mT) > {{k}})"
)
add_rows(
    "layer", "attention_bias", f"{_F}.scaled_dot_product_attention({{f}}, {{f}}, {{f}}, {{f}} @ {{f}}.mT, scale={{k}})"
)
add_rows("layer", "linear_bias", f"{_F}.linear({{f}}, {{g}}, {{h}})")
add_rows("layer", "shared_weight", f"{_F}.linear({_F}.linear({{f}}, {{f}}), {{f}}.mT)")
add_rows("layer", "channel_shuffle", f"{_F}.channel_shuffle({{f}}.expand(1, 4, *{{f}}.shape), 2)")
add_rows("layer", "masked_softmax", "torch.softmax({f}.masked_fill({f} > 0, -float('inf')), {dim})")
add_rows("layer", "logsumexp_of_mask", "torch.logsumexp({f}.masked_fill({f} > 0, -float('inf')), {dim})")
add_rows("loss", "binary_cross_entropy", f"{_F}.NAME(torch.sigmoid({{f}}), torch.sigmoid({{g}}), torch.sigmoid({{g}}))")
add_rows(
    "loss",
    "binary_cross_entropy_with_logits",
    f"{_F}.NAME({{f}}, torch.sigmoid({{g}}), pos_weight={{g}}.flatten()[0])",
    suffix="_weighted",
)
add_rows(
    "loss",
    "nll_loss",
    f"{_F}.nll_loss(torch.log_softmax({{f}}, -1), torch.arange({{f}}.shape[0]) % {{f}}.shape[1], ignore_index=1, "
    "weight={f}.detach().new_ones({f}.shape[1]) * 2, reduction={reduction})",
)
add_rows(
    "loss",
    "cross_entropy_ignored",
    f"{_F}.cross_entropy({{f}}, torch.arange({{f}}.shape[0]) % {{f}}.shape[1], ignore_index=0, "
    "label_smoothing=0.2, weight={f}.detach().new_full(({f}.shape[1],), 0.5), reduction={reduction})",
)
add_rows(
    "loss",
    "cross_entropy_all_ignored",
    f"{_F}.cross_entropy({{f}}, torch.zeros({{f}}.shape[0], dtype=torch.long) - 100, reduction={{reduction}})",
)
add_rows(
    "loss",
    "cross_entropy_probabilities",
    f"{_F}.cross_entropy({{f}}, torch.softmax({{g}}, -1), reduction={{reduction}})",
)
add_rows(
    "loss",
    "cross_entropy_images",
    f"{_F}.cross_entropy({{f}}[None], torch.zeros(1, {{f}}.shape[1], dtype=torch.long), reduction={{reduction}})",
)
add_rows("loss", "smooth_l1_loss", f"{_F}.NAME({{f}}, {{g}}, beta={{pos}})", suffix="_beta")
add_rows("loss", "huber_loss", f"{_F}.NAME({{f}}, {{g}}, delta={{pos}})", suffix="_delta")
add_rows("loss", "margin_ranking_loss", f"{_F}.NAME({{f}}, {{g}}, torch.sign({{h}}), margin={{k}})")
add_rows("loss", "hinge_embedding_loss", f"{_F}.NAME({{f}}, torch.sign({{g}}), reduction={{reduction}})")
add_rows("loss", "poisson_nll_loss", f"{_F}.NAME({{f}}, {{g}}, full={{flag}})")
add_rows("loss", "gaussian_nll_loss", f"{_F}.NAME({{f}}, {{g}}, torch.sigmoid({{f}}))")
add_rows("loss", "cosine_embedding_loss", f"{_F}.NAME({{f}}, {{g}}, torch.ones({{f}}.shape[0]))")
add_rows("loss", "triplet_margin_loss", f"{_F}.NAME({{f}}, {{g}}, {{h}}, p={{ord}})")
add_rows("loss", "multi_margin_loss", f"{_F}.NAME({{f}}, torch.arange({{f}}.shape[0]) % {{f}}.shape[1])")
add_rows("loss", "mse_loss_of_shapes", f"{_F}.mse_loss({{f}}, {{g}}.flatten()[0])")
