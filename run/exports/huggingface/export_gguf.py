"""A file for llama.cpp of a model that `capstan export --format gguf` has written:

    python export_gguf.py [FOLDER]

    model.gguf   the weights as float32, and the tokenizer: of bytes, or a bpe model of SentencePiece

Only models of Llama's shape have such a file (configs/lm-llama.yaml); of others, the keys that are in the way are named. Needs
the packages torch, transformers and gguf.
"""

import json
import os
import pathlib
import sys

import gguf
import numpy as np
import transformers

LLAMA = {"type": "language-model", "positions": "none", "ngram_embedding.orders": [], "embedding_norm": False,
         "final_norm": "rms", "output_bias": False, "prefix": "causal"}
LAYER = {"norm": "rms", "norm_placement": "pre", "short_conv": 0, "feed_forward.type": "swiglu", "feed_forward.bias": False,
         "mixer.type": "attention", "mixer.rotary": True, "mixer.bias": False, "mixer.output_projection": True}
SAME = ["feed_forward.expansion", "mixer.heads"]  # of all layers


def value_at(settings, key):
    for part in key.split("."):
        settings = settings.get(part, {}) if isinstance(settings, dict) else {}
    return settings


def obstacles(model):
    """What keeps a model from being Llama's, a line for each key."""
    found = []

    def need(settings, wanted, place):
        found.extend(f"  {place}.{key}: must be {json.dumps(value)}" for key, value in wanted.items() if value_at(settings, key) != value)

    need(model, LLAMA, "model")
    if found and model.get("type") != "language-model":
        return found[:1]
    first = model["layers"][0]
    for i, layer in enumerate(model["layers"]):
        need(layer, LAYER, f"model.layers.{i}")
        for key in SAME:
            if value_at(layer, key) != value_at(first, key):
                found.append(f"  model.layers.{i}.{key}: must be the same in all layers")
    return found


def add_tokenizer(writer, folder, config):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    model, types = tokenizer["model"], gguf.TokenType
    texts = sorted(model["vocab"], key=model["vocab"].get)
    kinds, unknown = [types.NORMAL] * len(texts), None
    if (tokenizer["pre_tokenizer"] or {}).get("type") == "ByteLevel" and tokenizer["normalizer"] is None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges([f"{texts[0xFE]} {texts[0xFF]}"])  # llama.cpp wants one: of two bytes that no text has
        scores = None
    elif model["type"] == "BPE" and model.get("byte_fallback") and (tokenizer["normalizer"] or {}).get("type") == "Replace":
        writer.add_tokenizer_model("llama")
        writer.add_add_space_prefix(False)
        writer.add_remove_extra_whitespaces(False)
        # The joint piece with the highest score is made first: merges are in this order.
        scores = [0.0] * len(texts)
        for at, (left, right) in reversed(list(enumerate(model["merges"]))):
            scores[model["vocab"][left + right]] = -float(at)
        unknown = model["vocab"][model["unk_token"]]
        for at, text in enumerate(texts):
            if text in ("\n", "\t"):
                kinds[at] = types.USER_DEFINED
            elif len(text) == 6 and text.startswith("<0x"):
                kinds[at] = types.BYTE
        kinds[unknown] = types.UNKNOWN
    else:
        sys.exit("export_gguf.py: data.tokenizer: must be byte, or sentencepiece with model_type bpe")
    for text in ("<|end|>", "<|separator|>")[: config["vocab_size"] - len(texts)]:
        texts.append(text)
        kinds.append(types.CONTROL)
        if scores is not None:
            scores.append(0.0)
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    if scores is not None:
        writer.add_token_scores(scores)
        writer.add_unk_token_id(unknown)
    never = 0xFF if unknown is None else unknown  # where no token ends a text, one that is never written stands for it
    writer.add_eos_token_id(config.get("eos_token_id", never))
    writer.add_bos_token_id(config.get("bos_token_id", never))
    writer.add_add_bos_token("bos_token_id" in config)


def interleaved(rows, heads):
    """llama.cpp turns features 2i and 2i + 1 of a head together: rows i and i + n/2 become these."""
    width = rows.shape[1]
    return rows.reshape(heads, 2, -1, width).swapaxes(1, 2).reshape(-1, width)


def add_weights(writer, weights, model):
    def add(name, values):
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    add("token_embd.weight", weights["embed.weight"])
    add("output_norm.weight", weights["final_norm.gain"])
    if not model["tied_output"]:
        add("output.weight", weights["output.weight"])
    layers = [layer for layer in model["layers"] for _ in range(layer["repeat"])]
    for i, layer in enumerate(layers):
        block = {name: weights[f"blocks.{i}.{name}"] for name in (
            "mixer_norm.gain", "mixer.to_qkv.weight", "mixer.to_out.weight", "feed_forward_norm.gain", "feed_forward.up.weight",
            "feed_forward.down.weight")}
        query, key, value = np.split(block["mixer.to_qkv.weight"], 3)
        if layer["mixer"]["rotary_pairs"] == "halves":
            query, key = interleaved(query, layer["mixer"]["heads"]), interleaved(key, layer["mixer"]["heads"])
        gate, up = np.split(block["feed_forward.up.weight"], 2)
        for name, values in (("attn_norm", block["mixer_norm.gain"]), ("attn_q", query), ("attn_k", key), ("attn_v", value),
                             ("attn_output", block["mixer.to_out.weight"]), ("ffn_norm", block["feed_forward_norm.gain"]),
                             ("ffn_gate", gate), ("ffn_up", up), ("ffn_down", block["feed_forward.down.weight"])):
            add(f"blk.{i}.{name}.weight", values)
    return len(layers), up.shape[0]


def main(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = config["model"]
    if found := obstacles(model):
        sys.exit("export_gguf.py: only models of Llama's shape (configs/lm-llama.yaml) have a GGUF file, which this is not:\n"
                 + "\n".join(found))
    opened = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    weights = {name: tensor.float().numpy() for name, tensor in opened.state_dict().items()}
    target = folder / "model.gguf"
    unfinished = target.with_name(".model.gguf.unfinished")
    writer = gguf.GGUFWriter(unfinished, "llama")
    add_tokenizer(writer, folder, config)
    depth, hidden = add_weights(writer, weights, model)
    first, heads = model["layers"][0], model["layers"][0]["mixer"]["heads"]
    writer.add_name(config["capstan"]["run"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(model["max_length"])
    writer.add_embedding_length(model["width"])
    writer.add_block_count(depth)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(model["width"] // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_uint32("capstan.format", config["capstan"]["format"])
    writer.add_string("capstan.version", config["capstan"]["version"])
    writer.add_string("capstan.weights", config["capstan"].get("weights", "unknown"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(unfinished, target)
    print(target)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
