"""Say of some Hugging Face families what their names do not: settings that fit together, and arguments of a call."""

from collections.abc import Callable
from typing import Any

import torch
from hugging_face_inputs import floats, images, ones, whole

Overrides = dict[str, Any]

SERIES: Overrides = {
    "prediction_length": 4,
    "context_length": 8,
    "lags_sequence": [1, 2],
    "num_time_features": 1,
    "label_length": 4,
}
PICTURE_WORDS: Overrides = {
    "vocabulary_map": {"<image>": 100, "IMGIMGA": 101, "<|extra_200|>": 102, "<|image token|>": 103}
}
WINDOWED = {"context_length": 32, "patch_length": 8, "patch_stride": 8}
TWO_KINDS = ["linear_attention", "full_attention"]
GEMMA: Overrides = {
    "num_hidden_layers": 4, "num_kv_shared_layers": 2, "intermediate_size": 64,
    "activation_sparsity_pattern": [0.0] * 4, "layer_types": ["sliding_attention", "full_attention"] * 2,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
EACH_KIND = {"rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE}}
MADE_WITH: dict[str, Overrides] = {}  # what the default configuration itself cannot be made without
SETTINGS: dict[str, Overrides] = {
    "deepseek_v2": {"num_experts_per_tok": 2, "topk_group": None, "n_group": None}, "esm": {"vocab_size": 40},
    "efficientnet": {"hidden_dim": 320},
    "ernie4_5_moe": {"moe_num_experts": 4, "moe_k": 2}, "step3p5": {"sliding_window": 4},
    "mamba": {"state_size": 4, "time_step_rank": 4}, "falcon_mamba": {"state_size": 4, "time_step_rank": 4},
    "bamba": {"attn_layer_indices": [1]}, "mamba2": {"num_heads": 4, "head_dim": 16, "n_groups": 2},
    "align": {"projection_dim": 80},
    "autoformer": SERIES, "informer": SERIES, "time_series_transformer": SERIES,
    "patchtst": WINDOWED, "patchtsmixer": WINDOWED,
    "chameleon": PICTURE_WORDS, "emu3": PICTURE_WORDS,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granite_speech5_ctc": {"context_size": 16, "encoder_config": {"context_size": 16}},
    "granite_speech5_encoder": {"context_size": 16},
    "glm5_next": {"text_config": {"index_kpool": 2}}, "glm5_next_text": {"index_kpool": 2},
    "granitemoehybrid": {"layer_types": TWO_KINDS}, "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "molmo2": {"adapter_config": {"vision_feature_layer": [1, 0]}}, "molmo2_adapter": {"vision_feature_layer": [1, 0]},
    "gemma3n": {"text_config": GEMMA}, "gemma3n_text": GEMMA,
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0}},
    "perceiver": {"d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 2, "max_position_embeddings": 16},
    "pix2struct_text_model": {"initializer_range": 0.02},
    "dots3_note_audio_encoder": {"adapter_input_size": 32},
    "blt": {
        "num_hidden_layers": 2, "encoder_config": {"hidden_size_global": 32},
        "decoder_config": {"hidden_size_global": 32},
    },
    "depth_pro": {
        "patch_size": 32, "intermediate_hook_ids": [1, 0], "intermediate_feature_dims": [32, 32],
        "scaled_images_feature_dims": [32, 32, 32], "fusion_hidden_size": 32,
        "image_model_config": {"image_size": 32, "patch_size": 8},
        "fov_model_config": {"image_size": 32, "patch_size": 8},
        "patch_model_config": {"image_size": 32, "patch_size": 8},
    },
    "fastspeech2_conformer_with_hifigan": {"vocoder_config": {"model_in_dim": 80}},
    "shieldgemma2": {"yes_token_index": 10, "no_token_index": 11},
    "qwen2_5_omni_vision_encoder": {"window_size": 32}, "qwen2_5_vl_vision": {"window_size": 32},
    "exaone4_5_vision": {"window_size": 32},

    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 32},
    "t5gemma2_decoder": {"dropout_rate": 0.0}, "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "t5gemma2_text": {"dropout_rate": 0.0}, "rag": {"n_docs": 2},
    "step3p7": {"text_config": {"sliding_window": 4}},
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 2}},
    "inkling_vision": {"patch_size": 8, "hidden_size": 32}, "inkling_mm_model": {"vision_config": {"patch_size": 8}},
    "granite4_vision": {
        "deepstack_layer_map": [[1, 0]], "spatial_target_layers": [1], "downsample_rate": "1/2",
        "vision_config": {"hidden_size": 64},
    },
    "cohere_compass": {"text_config": EACH_KIND}, "cohere_compass_text": EACH_KIND,
    "dots3_note": {
        "vision_config": {"pyramid_num_routed": [-1, 4]}, "audio_config": {"adapter_input_size": 32}
    },
    "dots3_note_vision_encoder": {"pyramid_num_routed": [-1, 4]},
    "tvp": {"max_img_size": 64, "visual_prompt_size": 4},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_ocr2_vision": {"sam_config": {"output_channels": 16, "downsample_channels": [16, 32]}},
    "clap": {"audio_config": {"hidden_size": 64}}, "clvp": {"decoder_config": {"feature_size": 80}},
    "ernie4_5_vl_moe": {"text_config": {"moe_k": 2}}, "ernie4_5_vl_moe_text": {"moe_k": 2},
    "xmod": {"default_language": "en_XX"},
    "longcat_flash": {"head_dim": 8}, "llama4_vision_model": {"intermediate_size": 128},
    "mllama_vision_model": {"intermediate_layers_indices": [0, 1]}, "janus_vqgan": {"num_patches": 2},
    "moonshine_streaming": {"num_key_value_heads": 2}, "nemotron_h_omni": {"text_config": {"n_groups": 2}},
    "chmv2": {"backbone_config": {"return_class_token": True}},
    "nemotron_h": {"n_groups": 2}, "blip-2": {"image_token_index": 100},
    "instructblip": {"image_token_index": 100}, "instructblipvideo": {"video_token_index": 100},
}  # fmt: skip


def series(config: Any) -> dict[str, Any]:
    """Return values of the past with their features and those of the future."""
    past = config.context_length + max(config.lags_sequence)
    times = {"past_time_features": floats(2, past, 1), "future_time_features": floats(2, 4, 1)}
    known = torch.ones(2, past)
    return {"past_values": floats(2, past), "past_observed_mask": known, "future_values": floats(2, 4), **times}


def prompts(config: Any) -> dict[str, Any]:
    """Return what a decoder of masks takes: an image's features, positions of them, and embedded points."""
    width = config.hidden_size
    fine = [floats(1, width // 8, 16, 16), floats(1, width // 4, 8, 8)]
    return {
        "image_embeddings": floats(1, width, 4, 4), "image_positional_embeddings": floats(1, width, 4, 4),
        "sparse_prompt_embeddings": floats(1, 1, 2, width), "dense_prompt_embeddings": floats(1, width, 4, 4),
        "multimask_output": True, "high_resolution_features": fine,
        "hq_token_only": False, "intermediate_embeddings": [floats(1, 4, 4, getattr(config, "vit_dim", width))],
    }  # fmt: skip


def points(config: Any) -> dict[str, Any]:
    """Return two points, their labels, and nothing else that an encoder of prompts could take."""
    labels = torch.ones(1, 1, 2, dtype=torch.int)
    return {"input_points": torch.full((1, 1, 2, 2), 5.0), "input_labels": labels, "input_boxes": None,
            "input_masks": None, "masks": floats(1, 1, 16, 16)}  # fmt: skip


def tiles(config: Any) -> dict[str, Any]:
    """Return an image cut into as many tiles as the configuration allows."""
    pieces = floats(1, 1, config.max_num_tiles, 3, config.image_size, config.image_size)
    return {"pixel_values": pieces, "aspect_ratio_ids": ones(1, 1),
            "aspect_ratio_mask": ones(1, 1, config.max_num_tiles)}  # fmt: skip


def patch_row(config: Any) -> dict[str, Any]:
    """Return the patches of an image in a row, each behind the number of its row and column."""
    width = getattr(config, "vision_config", config).patch_embed_hidden_size
    found = {"flattened_patches": torch.cat([ones(1, 16, 2).float(), floats(1, 16, width)], 2)}
    return found | ({"decoder_input_ids": whole(1, 5)} if hasattr(config, "vision_config") else {})


def codes_and_text(config: Any) -> dict[str, Any]:
    """Return a text and the start of the codes of a sound, a row for each book of codes."""
    return {"input_ids": whole(2, 8), "decoder_input_ids": whole(2 * config.decoder.num_codebooks, 5, below=50)}


def small_grid(config: Any) -> dict[str, Any]:
    """Return the patches of an image side by side in one strip, and how many there are in each direction."""
    return {"pixel_values": floats(1, 3, config.patch_size, 16 * config.patch_size),
            "target_sizes": torch.tensor([[4, 4]])}  # fmt: skip


def seen_and_read(config: Any) -> dict[str, Any]:
    """Return features of an image and of a text, as the parts of a detector by text want them."""
    width = config.hidden_size
    picture = floats(1, 16, width)
    return {
        "text_features": floats(1, 8, width), "spatial_shapes": torch.tensor([[4, 4]]), "vision_pos_encoding": picture,
        "vision_features": picture, "decoder_queries": floats(1, 8, width), "encoder_hidden_states": picture,
        "backbone_features": [floats(1, width, 16, 16), floats(1, width, 8, 8), floats(1, width, 4, 4)],
        "box_embeddings": torch.full((1, 2, 4), 0.5), "box_mask": ones(1, 2).bool(), "box_labels": ones(1, 2),
        "img_feats": [floats(1, width, 4, 4)],
    }  # fmt: skip


def fields(config: Any) -> dict[str, Any]:
    """Return features of an image as fields, for those parts that want them so."""
    width = config.hidden_size
    return seen_and_read(config) | {
        "vision_features": [floats(1, width, 4, 4)], "vision_pos_embeds": [floats(1, width, 4, 4)],
    }  # fmt: skip


def flat_patches(config: Any) -> dict[str, Any]:
    """Return the patches of two images in rows, which of them are there, and their numbers by direction."""
    vision = getattr(config, "vision_config", config)
    found = {"pixel_values": floats(2, 16, 3 * vision.patch_size**2), "pixel_attention_mask": ones(2, 16)}
    return found | {"spatial_shapes": torch.tensor([[4, 4], [4, 4]]), "input_ids": whole(2, 8)}


def chunks(config: Any) -> dict[str, Any]:
    """Return one sound in frames, and how many frames it has before and after the convolutions."""
    return {
        "input_features": floats(config.num_mel_bins, 32), "feature_lens": torch.tensor([32]),
        "aftercnn_lens": torch.tensor([16]),
    }  # fmt: skip


def found_texts(config: Any) -> dict[str, Any]:
    """Return a question, two texts found for it, and how well each fits."""
    context = {"context_input_ids": whole(2, 8), "context_attention_mask": ones(2, 8)}
    return {"input_ids": whole(1, 8), "decoder_input_ids": whole(1, 5), "doc_scores": floats(1, 2), **context}


INPUTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "autoformer": series, "informer": series, "time_series_transformer": series,
    "patchtst": lambda config: {"past_values": floats(2, 32, 1)},
    "patchtsmixer": lambda config: {"past_values": floats(2, 32, 1)},
    "mllama_vision_model": tiles, "pix2struct": patch_row, "pix2struct_vision_model": patch_row,
    "dia_decoder": lambda config: {
        "input_ids": whole(2, 8, config.num_channels, below=50),
        "encoder_hidden_states": floats(2, 8, config.cross_hidden_size),
    },
    "deepseek_ocr2_encoder": lambda config: {"inputs_embeds": floats(2, 8, config.hidden_size), "num_patches": 4},
    "perceiver": lambda config: {"inputs": floats(2, 8, config.d_model)},
    "musicgen": codes_and_text, "musicgen_melody": codes_and_text,
    "minicpm_ocr_vision": small_grid, "minicpmv4_6_vision": small_grid, "minicpmv4_7_vision": small_grid,
    "paddleocr_vl_vision": lambda config: {
        "pixel_values": floats(1, 16, 3, config.patch_size, config.patch_size), "grid_thw": torch.tensor([[1, 4, 4]])
    },
    "inkling_audio": lambda config: {"audio_input_ids": whole(8, 80, below=50)},
    "phi4_multimodal_audio": lambda config: {"hidden_states": floats(2, 64, config.input_size),
                                             "mask": ones(2, 64).bool()},
    "clap": lambda config: {"input_ids": whole(2, 8), "input_features": floats(2, 1, 64, 64)},
    "gemma4_vision": lambda config: {
        "pixel_values": floats(1, 16, 3 * config.patch_size**2),
        "pixel_position_ids": torch.cartesian_prod(torch.arange(4), torch.arange(4))[None],
    },
    "idefics": lambda config: {
        "input_ids": whole(2, 8), "pixel_values": floats(2, 1, 3, 32, 32), "image_attention_mask": ones(2, 8, 1)
    },
    "idefics2_perceiver": lambda config: {"context": floats(2, 8, config.hidden_size), "attention_mask": ones(2, 8)},
    "molmo2_adapter": lambda config: {
        "image_features": floats(1, 16, 64), "pooled_patches_idx": torch.arange(16).reshape(4, 4),
    },
    "depth_pro": lambda config: {"pixel_values": floats(1, 3, 128, 128)},
    "pi0": lambda config: {"input_ids": whole(2, 8), "action_embeds": floats(2, 4, 32)},
    "jev": lambda config: {
        "input_ids": whole(1, 8), "marks": torch.tensor([[2, 5]]), "num_options": torch.tensor([[3, 2]]),
        "question_type_ids": torch.tensor([[0, 0]]),
    },
    "tvp": lambda config: {"input_ids": whole(1, 8), "pixel_values": floats(1, 2, 3, 64, 64)},
    "emu3_vqgan": lambda config: {"pixel_values": floats(1, 3, 32, 32), "image_sizes": torch.tensor([[32, 32]])},
    "video_llama_3_vision": lambda config: {
        "pixel_values": floats(16, 3 * config.patch_size**2), "grid_thw": torch.tensor([[1, 4, 4]]),
        "merge_sizes": torch.tensor([1]),
    },
    "videomt": lambda config: {"pixel_values_videos": images(config)[None]},
    "videoprism": lambda config: {"input_ids": whole(1, 8), "pixel_values_videos": images(config)[None]},
    "videoprism_vision_model": lambda config: {"pixel_values_videos": images(config)[None]},
    "muse_spark_audio": lambda config: {"input_values": floats(2, 960)},
    "molmo2_vision": lambda config: {"pixel_values": floats(2, 4, 3 * config.patch_size**2)},
    "omdet-turbo": lambda config: {
        "pixel_values": images(config, 1), "classes_input_ids": whole(2, 8), "classes_attention_mask": ones(2, 8),
        "tasks_input_ids": whole(1, 8), "tasks_attention_mask": ones(1, 8), "classes_structure": torch.tensor([2]),
    },
    "siglip2": flat_patches, "siglip2_vision_model": flat_patches, "rag": found_texts,
    "qwen2_5_omni_audio_encoder": chunks, "qwen3_omni_moe_audio_encoder": chunks,
    "speech-encoder-decoder": lambda config: {"inputs": floats(2, 4000), "decoder_input_ids": whole(2, 5)},
    "seggpt": lambda config: {
        name: floats(1, 3, 16, 16) for name in ("pixel_values", "prompt_pixel_values", "prompt_masks")
    },
    "timesfm2_5": lambda config: {"past_values": floats(2, config.context_length)},
    "unlimited_ocr_vision_encoder": lambda config: {"patch_embeds": floats(1, config.hidden_size, 4, 4)},
    "florence_vision": lambda config: {"hidden_states": floats(1, 3, 64, 64)},
    "glm_image_vqmodel": lambda config: {"hidden_states": floats(1, config.embed_dim, 4, 4)},
    "dots3_note_audio_encoder": lambda config: {
        "input_features": floats(2, getattr(config, "feature_size", 128), 32),
        "chunk_sample_lengths": torch.tensor([5120, 2560]),
    },
    "qwen2_5_omni_bigvgan": lambda config: {"mel_spectrogram": floats(1, config.mel_dim, 8)},
    "gemma3n_audio": lambda config: {
        "audio_mel": floats(2, 64, config.input_feat_size), "audio_mel_mask": torch.zeros(2, 64, dtype=torch.bool)
    },
}  # fmt: skip
for whole_model in ("edgetam", "edgetam_video", "sam", "sam2", "sam2_video", "sam3_tracker", "sam3_tracker_video",
                    "sam_hq"):  # fmt: skip
    INPUTS[f"{whole_model}_mask_decoder"] = prompts
    INPUTS[f"{whole_model}_prompt_encoder"] = points
for whole_model in ("sam3", "sam3_lite_text"):
    for part, arguments in (("detr_decoder", seen_and_read), ("detr_encoder", fields), ("mask_decoder", seen_and_read),
                            ("geometry_encoder", seen_and_read)):  # fmt: skip
        INPUTS[f"{whole_model}_{part}"] = arguments
