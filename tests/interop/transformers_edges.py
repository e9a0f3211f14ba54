"""What a model computes in half precision and with a larger vocabulary, and which inputs it refuses instead of computing
something else: masks with holes, empty batches, prompts in pieces.

    python tests/interop/transformers_edges.py [SYSTEM,...]

Needs the Python packages torch and transformers (4.57 or later) and a built program; says so and skips otherwise.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import SYSTEMS, Place, worst
from sample_run import require
from transformers_models import opened, padded


def refusal(words, call):
    """Nothing, or what is wrong: call() must raise a ValueError that says these words."""
    try:
        call()
    except ValueError as error:
        return [] if words in str(error) else [f"says '{error}' instead of '{words}'"]
    return [f"does not refuse: {words}"]


def state_after(net, ids):
    output = net(ids, use_cache=True)
    return output.cache or output.past_key_values  # transformers 5.24 and later, and earlier ones


def check_half(net, ids, mask):
    """Logits in half precision, also under autocast with its gradients, are those in float32 but for rounding."""
    torch, wrong = require("torch"), []
    given = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
    if net.config.model.get("prefix") == "bidirectional":
        given["prefix_lengths"] = mask.sum(dim=1) // 2
    with torch.no_grad():
        wanted = net(**given).logits[mask == 1]
    for dtype, most in ((torch.float16, 0.03), (torch.bfloat16, 0.2)):
        with torch.autocast("cpu", dtype):
            logits = net(**given).logits
        off = worst(logits[mask == 1].float().detach(), wanted)
        net.zero_grad()
        logits.float().square().mean().backward()
        if not off <= most or not all(p.grad.isfinite().all() for p in net.parameters() if p.grad is not None):
            wrong.append(f"autocast in {dtype}: {off:.1e}")
        with torch.no_grad():
            off = worst(net.to(dtype)(**given).logits[mask == 1].float(), wanted)
            written = net.generate(ids, attention_mask=mask, max_new_tokens=8, do_sample=False, pad_token_id=0)
        net.float()
        if not off <= most or written.shape[1] <= ids.shape[1]:
            wrong.append(f"{dtype}: {off:.1e}")
    return wrong


def check_inputs(net, ids):
    torch = require("torch")
    hole = torch.ones_like(ids)
    hole[1, 3] = 0
    state = state_after(net, ids[:, :4]) if hasattr(net, "prepare_inputs_for_generation") else None
    wrong = refusal("a 0 between two 1s", lambda: net(ids, attention_mask=hole))
    wrong += refusal("give equal shapes", lambda: net(ids, attention_mask=hole[:, 1:]))
    wrong += refusal("give equal shapes", lambda: net(ids[:0]))
    wrong += refusal("give equal shapes", lambda: net(ids[:, :0]))
    if state is not None and net.config.model["prefix"] == "causal":
        wrong += refusal("follow those in the state", lambda: net(ids[:, 4:6], past_key_values=state, attention_mask=hole[:, :4]))
    return wrong


def check_prefix(net, ids, mask):
    """generate() without a state writes what it writes with one, if it is told the lengths of prompts; of whole prompts by itself."""
    torch = require("torch")
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    lengths, wrong = mask.sum(dim=1), []
    for prompts in (lengths, lengths - 2):
        with_state, without = (net.generate(ids, attention_mask=mask, prefix_lengths=prompts, use_cache=use, **options)
                               for use in (True, False))
        wrong += [] if torch.equal(with_state, without) else ["writes another text without a state"]
        if prompts is lengths and not torch.equal(with_state, net.generate(ids, attention_mask=mask, **options)):
            wrong.append("writes another text where prefix_lengths are not given")
    wrong += refusal("prefix_lengths (B)", lambda: net.generate(ids, attention_mask=mask, use_cache=False, **options))
    wrong += refusal("in one piece", lambda: net(ids, attention_mask=mask, prefix_lengths=lengths + 1))
    state = state_after(net, ids[:, :5])
    return wrong + refusal("in one piece", lambda: net(ids[:, 5:], past_key_values=state))


def check_vocabulary(place, net, ids, task):
    """A language model's vocabulary can grow, and is read back; a model that adds a token of its own refuses."""
    torch, rows = require("torch"), net.config.vocab_size
    if net.config.added_rows:
        return refusal("the embedding ends with a token", lambda: net.resize_token_embeddings(rows + 5))
    with torch.no_grad():
        wanted = net(ids).logits
        net.resize_token_embeddings(rows + 5)
        grown = net(ids).logits
        net.save_pretrained(place.folder / "grown")
        back = opened(place.folder / "grown", task)(ids).logits
    good = grown.shape[-1] == rows + 5 and worst(grown[..., :rows], wanted) < 1e-5 and torch.equal(back, grown)
    return [] if good else ["is another model after its vocabulary has grown"]


def main():
    torch, transformers = require("torch"), require("transformers")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    place, failed = Place(), 0
    for system in sys.argv[1].split(",") if len(sys.argv) > 1 else SYSTEMS:
        for task in ("language-model", "pairs", "masked-language-model", "text-classifier"):
            torch.manual_seed(0)
            name = f"{system}-{task}"
            net = opened(place.export(place.random_run(name, system, task, 0), f"export-{name}"), task)
            ids, mask = padded([torch.randint(1, 256, (length,)) for length in (12, 7)], 12, left=True)
            wrong = check_inputs(net, ids)
            if task in ("language-model", "pairs"):
                for config in (net.config, net.generation_config):
                    config.eos_token_id = config.suppress_tokens = None
                wrong += check_half(net, ids, mask)
            if net.config.model.get("prefix") == "bidirectional":
                wrong += check_prefix(net, ids, mask)
            if task != "pairs":
                wrong += check_vocabulary(place, net, ids, task) if task != "text-classifier" else []
            failed += len(wrong) > 0
            print(f"{name:34} {'; '.join(wrong) + ' WRONG' if wrong else 'ok'}", flush=True)
    print(f"{failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
