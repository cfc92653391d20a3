"""Which reader reads which model_type; and which model types only wrap a text model in another section.

A model_type that is not here is refused by name: that its fields look familiar does not say what its layers
keep.
"""

from __future__ import annotations

from aelius_math import config_hybrid as hybrid
from aelius_math import config_layered as layered
from aelius_math import config_mamba as mamba
from aelius_math import config_recurrent as recurrent
from aelius_math import config_variants as variants
from aelius_math.config_attention import Heads, Reader, attention
from aelius_math.config_mla import (
    NEXTN,
    deepseek_v4,
    every_layer,
    glm_indexers,
    hunyuan_indexers,
    longcat,
    mla,
)
from aelius_math.config_patterns import (
    all_full,
    all_sliding,
    cohere2_moe_kinds,
    ends,
    every,
    exaone4_kinds,
    flint_kinds,
    from_layer,
    layer_types,
    qwen2_moe_kinds,
    smollm3_kinds,
    switched,
    where_window,
)

GQA = attention()  # KV heads are stated
MHA = Heads(mha=True)  # absent KV heads: as many as query heads
NO_KV = Heads(kv_heads=())  # the class has no KV heads of its own
LLAMA = attention(MHA)
QWEN_WINDOW = layer_types(switched(from_layer("max_window_layers")))
GPT2 = attention(variants.GPT2, layers=variants.GPT2_LAYERS)
GEMMA2 = Heads(fixed_head_dim=256)
EXAONE = attention(MHA, layer_types(exaone4_kinds), mtp=NEXTN)
QWEN35 = hybrid.qwen_linear("mtp_num_hidden_layers")


def wide(head_dim: int) -> Heads:
    """Heads whose width the class fixes where the config is silent; absent KV heads: as many as heads."""
    return Heads(fixed_head_dim=head_dim, mha=True)


def same(names: str, reader: Reader) -> dict[str, Reader]:
    """One reader under several model types."""
    return dict.fromkeys(names.split(), reader)


TEXT: dict[str, Reader] = {
    # every layer is full; head_dim stated, or hidden_size over heads
    **same(
        "llama arcee apertus aria_text bitnet cohere csm diffllama flex_olmo granite granitemoe "
        "granitemoeshared hyperclovax internlm2 jais2 nanochat nemotron olmo olmo2 olmoe phi "
        "emu3_text_model glm4v_text Yi minicpm minicpmv minicpmo orion aquila deepseek phi3small grok-1 "
        "solar arctic skywork dots_ocr chameleon",
        LLAMA),
    **same(
        "stablelm stablelm_epoch ernie4_5_vl_moe_text ernie4_5_moe_vl glm4v_moe_text qwen3_vl_moe_text",
        GQA),
    # vLLM 0.33.0, models/telechat2.py and teleflm.py
    "telechat2": attention(
        Heads(("num_attention_heads", "n_head"), mha=True), layers=("num_hidden_layers", "n_layer")),
    "TeleFLM": LLAMA,
    # the class fixes the head's width
    **same(
        "qwen3_vl_text ernie4_5 paddleocr_vl_text paddleocr_vl glm glm4 seed_oss solar_open helium "
        "iquestcoder internlm3 hy_v3",
        attention(wide(128), mtp=NEXTN)),
    "gemma": attention(GEMMA2),
    "sarvam_moe": attention(wide(64), mtp=NEXTN),
    **same("bailing_moe bailing_moe_v2", attention(MHA, mtp=NEXTN)),
    **same("glm4_moe glm_ocr_text ernie4_5_moe mimo", attention(MHA, mtp=NEXTN)),
    # one KV head for each query head, whatever the config says
    **same("gpt2 gptj codegen jais imagegpt openai-gpt ctrl gpt-sw3", GPT2),
    **same(
        "gpt_neox gpt_neox_japanese opt biogpt persimmon baichuan xverse internlm",
        attention(NO_KV._replace(head_dim=()))),
    "qwen": attention(NO_KV._replace(head_dim=("kv_channels",))),
    "bloom": attention(Heads(("n_head", "num_attention_heads"), (), ("hidden_size", "n_embed"), ()),
                       layers=variants.GPT2_LAYERS),
    # DynamicCache keeps all tokens of local layers: GPTNeoConfig names neither layer_types nor sliding_window
    "gpt_neo": attention(Heads(("num_heads",), (), head_dim=()), all_full, ("num_layers",)),
    "xglm": attention(Heads(("attention_heads",), (), ("d_model",), ()), layers=("num_layers",)),
    "exaone": attention(MHA, layers=("num_layers", "num_hidden_layers")),
    "jetmoe": attention(Heads(heads=(), head_dim=("kv_channels",), fixed_head_dim=128)),
    "gpt_bigcode": variants.gpt_bigcode,
    **same("falcon RefinedWeb RefinedWebModel", variants.falcon),
    **same("mpt dbrx", variants.mpt),
    "chatglm": variants.chatglm,
    "openelm": layered.openelm,
    "deci": layered.decilm,
    "nemotron-nas": layered.nemotron_nas,
    **same(
        "hunyuan hunyuan_v1_dense hunyuan_v1_moe hunyuan_dense hunyuan_moe hunyuan_vl hunyuan_vl_text",
        layered.hunyuan),
    "step3_text": attention(Heads(kv_heads=("num_attention_groups",), fixed_kv_heads=1)),
    "step3p5": layered.step3p5,
    "minimax_m2": layered.minimax_m2,
    **same("minimax_m3 minimax_m3_vl_text", layered.minimax_m3),
    # windows
    **same(
        "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text",
        attention(MHA, QWEN_WINDOW)),
    "qwen2_moe": attention(Heads(), layer_types(switched(qwen2_moe_kinds))),
    "qwen3": attention(Heads(fixed_head_dim=128), QWEN_WINDOW),
    "qwen3_moe": attention(MHA, layer_types(switched(all_sliding()))),
    "qwen3_omni_moe_text": attention(Heads(), layer_types(all_sliding())),
    "mistral": attention(MHA, layer_types(all_sliding(4096)), window=4096),
    "ministral": attention(MHA, layer_types(all_sliding(4096)), window=4096),
    "ministral3": attention(wide(128), layer_types(all_sliding())),
    **same(
        "mixtral phi3 phi3_v phi4mm phi4_multimodal phimoe starcoder2",
        attention(MHA, layer_types(all_sliding()))),
    "smollm3": attention(MHA, layer_types(smollm3_kinds)),
    "dots1": attention(MHA, layer_types(where_window(from_layer("max_window_layers", 62)))),
    "gpt_oss": attention(wide(64), layer_types(every(2)), window=128),
    **same("gemma2 vaultgemma", attention(GEMMA2, layer_types(every(2)), window=4096)),
    # gemma-3-4b-it states neither heads nor width nor pattern: Gemma3TextConfig has 8, 4, 256, 4096 and 6
    "gemma3_text": attention(
        Heads(fixed_heads=8, fixed_kv_heads=4, fixed_head_dim=256),
        layer_types(every(6, "sliding_window_pattern", "_sliding_window_pattern")), window=4096),
    "gemma3n_text": layered.gemma3n,
    **same("gemma4_text gemma4_unified_text", layered.gemma4),
    "cohere2": attention(
        MHA, layer_types(every(4, "sliding_window_pattern", "_sliding_window_pattern")), window=4096),
    "cohere2_moe": attention(wide(128), layer_types(cohere2_moe_kinds), window=4096),
    **same("exaone4 exaone4_5_text exaone_moe", EXAONE),
    "olmo3": attention(MHA, layer_types(every(4)), window=4096),
    "cwm": attention(wide(128), layer_types(every(4, at=0)), window=8192),
    "afmoe": attention(wide(128), layer_types(every(4, "global_attn_every_n_layers")), window=1024),
    "flint": attention(wide(128), layer_types(flint_kinds), window=513),
    "beam": attention(wide(128), layer_types(ends(6, first=True)), window=512),
    "laguna": attention(wide(128), layer_types(all_full), window=512),
    "mellum": attention(wide(128), layer_types(all_full), window=1024),
    "kolibri1": attention(wide(128), layer_types(every(5)), window=513),
    **same("granite_swa granitemoe_swa", attention(MHA, layer_types(every(4, at=0)), window=128)),
    "muse_glimmer_text": attention(wide(128), layer_types(ends(4)), window=2048),
    "muse_spark_text": attention(wide(64), layer_types(ends(4)), window=2048),
    "llama4_text": variants.LLAMA4,
    "mllama_text_model": variants.mllama,
    **same("mimo_v2_flash mimo_v2", layered.mimo_v2),
    "inkling_text": layered.inkling,
    # MLA
    **same(
        "deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite axk1 youtu mistral4 sarvam_mla minicpm3 "
        "pangu_ultra_moe",
        mla()),
    **same("deepseek_v32 axk2", mla(every_layer)),
    "glm_moe_dsa": mla(glm_indexers),
    **same("hy_v4 hy_v4_vl_text", mla(hunyuan_indexers)),
    "longcat_flash": longcat,
    "deepseek_v4": deepseek_v4,
    # recurrent layers among attention
    "qwen3_next": hybrid.qwen_linear("num_nextn_predict_layers"),
    **same("qwen3_5_text qwen3_5_moe_text", QWEN35),
    "olmo_hybrid": hybrid.olmo_hybrid,
    "kimi_linear": hybrid.kimi_linear,
    **same("minimax minimax_text_01 minimax_m1", hybrid.minimax),
    **same("bailing_hybrid bailing_moe_linear bailing_moe_v2_5 bailing_moe_v3", hybrid.bailing),
    **same("lfm2 lfm2_moe", hybrid.lfm2),
    "lfm3": hybrid.lfm3,
    "lara_mini": hybrid.lara_mini,
    "jamba": mamba.jamba,
    **same("bamba granitemoehybrid", mamba.granite_hybrid),
    "falcon_h1": mamba.falcon_h1,
    "phi4flash": mamba.phi4flash,
    "zamba": mamba.zamba,
    "zamba2": mamba.zamba2,
    "nemotron_h": mamba.nemotron_h,
    "recurrent_gemma": recurrent.recurrent_gemma,
    # recurrent layers alone
    **same("mamba falcon_mamba", mamba.mamba),
    "mamba2": mamba.mamba_2,
    "rwkv": recurrent.rwkv4,
    **same("rwkv5 rwkv6 rwkv7", recurrent.rwkv),
    "xlstm": recurrent.xlstm,
    # encoder and decoder: the decoder
    **same("t5 mt5 umt5 longt5 switch_transformers", variants.T5),
    **same(
        "bart mbart pegasus m2m_100 marian blenderbot blenderbot-small whisper plbart nllb-moe led "
        "florence2_language",
        variants.BART),
}  # fmt: skip

_TEXT = {  # text_config, and what it is where it does not say
    "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text", "qwen3_vl_moe": "qwen3_vl_moe_text", "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text", "qwen2_audio": "qwen2", "llama4": "llama4_text",
    "mllama": "mllama_text_model", "mistral3": "mistral", "pixtral": "mistral", "voxtral": "llama",
    "paligemma": "gemma", "llava": "llama", "llava_next": "llama", "llava_next_video": "llama",
    "llava_onevision": "qwen2", "video_llava": "llama", "vipllava": "llama", "aya_vision": "cohere2",
    "cohere2_vision": "cohere2", "idefics2": "mistral", "idefics3": "llama", "smolvlm": "llama",
    "aria": "aria_text", "fuyu": "persimmon", "emu3": "emu3_text_model", "janus": "llama",
    "internvl": "qwen2", "got_ocr2": "qwen2", "glm4v": "glm4v_text", "glm4v_moe": "glm4v_moe_text",
    "glm46v": "glm4v_text", "glm_ocr": "glm_ocr_text", "ernie4_5_vl_moe": "ernie4_5_vl_moe_text",
    "kimi_k25": "deepseek_v3", "kimi_k3": "kimi_linear", "kimi_vl": "deepseek_v3", "lfm2_vl": "lfm2",
    "lfm2-vl": "lfm2", "step3_vl": "step3_text", "step3p7": "step3p5", "minimax_m3_vl": "minimax_m3_vl_text",
    "minimax_vl_01": "minimax_text_01", "interns1": "qwen3_moe", "granite_speech": "granite",
    "llava_next_granite": "granite", "inkling_mm_model": "inkling_text", "muse_glimmer": "muse_glimmer_text",
    "muse_spark": "muse_spark_text", "exaone4_5": "exaone4", "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text", "hunyuan_vl": "hunyuan_vl_text",
    "paddleocr_vl": "paddleocr_vl_text", "florence2": "florence2_language", "perception_lm": "llama",
    "ovis2": "qwen2", "tarsier": "llama", "eagle_2_5_vl": "qwen2", "video_llama_3": "qwen2",
    "fast_vlm": "qwen2", "lighton_ocr": "qwen3", "deepseek_vl": "llama", "deepseek_vl_hybrid": "llama",
    "bailing_moe_v3_vl": "bailing_hybrid", "audioflamingo3": "qwen2", "ultravox": "llama", "blip-2": "opt",
    "instructblip": "opt", "instructblipvideo": "opt", "fun_asr_nano": "qwen3", "glmasr": "llama",
    "glmga": "glm4v_text", "granite_speech_plus": "granite", "hyperclovax_vision_v2": "hyperclovax",
    "minicpmv4_6": "qwen3_5_text", "minicpmv4_7": "qwen3_5_text", "minicpm_ocr": "qwen3_5_text",
    "moss_transcribe_diarize": "qwen3", "musicflamingo": "qwen2", "nemotron_h_omni": "nemotron_h",
    "nemo_speechlm": "nemotron_h", "pp_chart2table": "qwen2", "qianfan_ocr": "qwen3", "qwen3_asr": "qwen3",
    "shieldgemma2": "gemma3_text", "vibevoice": "qwen2", "vibevoice_asr": "qwen2",
    "cosmos3_omni": "qwen3_vl_text", "lfm3_vl": "lfm3", "hy_v4_vl": "hy_v4_vl_text",
}  # fmt: skip

WRAPPERS: dict[str, tuple[str, str | None]] = {
    **{name: ("text_config", inner) for name, inner in _TEXT.items()},
    **{name: ("llm_config", None) for name in (
        "internvl_chat", "h2ovl_chat", "NVLM_D", "skywork_chat", "ovis2_5", "bagel", "NemotronH_Nano_VL_V2",
        "Llama_Nemotron_Nano_VL", "ovis")},
    **{name: ("language_config", "deepseek_v2") for name in ("deepseek_vl_v2", "deepseekocr")},
    **{name: ("thinker_config", f"{name}_thinker") for name in ("qwen2_5_omni", "qwen3_omni_moe")},
}  # fmt: skip
"""Outer model_type: the section that holds the text model, and its model_type where the section does not
say."""

ARCHITECTURES = {
    "LongcatFlashForCausalLM": "longcat_flash",
    "LongcatFlashNgramForCausalLM": "longcat_flash",
}
"""Model types of configs that are published without one."""
