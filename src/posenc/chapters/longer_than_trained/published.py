"""What the config.json of published models says of positions: the keys that matter, the other ones left out.

Phi-3's tables of 48 factors are not repeated here: `longrope` stands for them with their two ends, 1.07 for the
fastest pair and 64.76 for the slowest, and an even climb of the logarithm between.
"""

import torch

_CLIMB = torch.linspace(0, 1, 48, dtype=torch.float64)

CONFIGURATIONS = {
    "Llama 3.1": {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "max_position_embeddings": 131_072,
        "rope_theta": 500_000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
    "Llama 2": {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "max_position_embeddings": 4096,
        "rope_theta": 10_000.0,
        "rope_scaling": None,
    },
    "Qwen2.5, YaRN": {
        "hidden_size": 3584,
        "num_attention_heads": 28,
        "max_position_embeddings": 32_768,
        "rope_theta": 1_000_000.0,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
    },
    "Gemma 3": {
        "hidden_size": 2560,
        "num_attention_heads": 8,
        "head_dim": 256,
        "sliding_window": 1024,
        "max_position_embeddings": 131_072,
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "DeepSeek V3": {
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "max_position_embeddings": 163_840,
        "rope_theta": 10_000,
        "rope_scaling": {
            "type": "yarn",
            "factor": 40,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096,
        },
    },
    "Phi-3 128k": {
        "hidden_size": 3072,
        "num_attention_heads": 32,
        "original_max_position_embeddings": 4096,
        "max_position_embeddings": 131_072,
        "rope_theta": 10_000.0,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 48,
            "long_factor": (1.07 * (64.76 / 1.07) ** _CLIMB).tolist(),
        },
    },
    "gpt-oss": {
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "head_dim": 64,
        "sliding_window": 128,
        "max_position_embeddings": 131_072,
        "rope_theta": 150_000,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    },
}
