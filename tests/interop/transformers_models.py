"""transformers computes what Capstan does: logits of every system and task with random options, in batches that are padded on
the left and on the right, gradients with and without checkpointing, what a language model writes through its decode state,
and the file that save_pretrained writes.

    python tests/interop/transformers_models.py [SEEDS]

Needs the Python packages torch and transformers (4.57 or later) and a built program; says so and skips otherwise.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import SYSTEMS, TASKS, Place, worst
from sample_run import require

LOGITS, GRADIENTS = 1e-5, 1e-4


def opened(folder, task, **options):
    transformers = require("transformers")
    classes = {"masked-language-model": transformers.AutoModelForMaskedLM,
               "text-classifier": transformers.AutoModelForSequenceClassification,
               "linear": transformers.AutoModelForSequenceClassification}
    form = classes.get(task, transformers.AutoModelForCausalLM)
    return form.from_pretrained(folder, trust_remote_code=True, **options).eval()


def padded(texts, length, left):
    """(ids, mask) of texts with padding on one side."""
    torch = require("torch")
    ids, mask = torch.full((len(texts), length), 255), torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(length - len(text), length) if left else slice(0, len(text))
        ids[row, place], mask[row, place] = text, 1
    return ids, mask


def check_logits(place, run, net, task, texts):
    torch = require("torch")
    longest = max(len(text) for text in texts)
    ids, mask = padded(texts, longest, left=False)
    given = {"tokens": ids * mask, "segment_ids": mask}
    extra = {}
    if task == "pairs":
        sources = torch.tensor([len(text) // 2 for text in texts])
        extra = {"prefix_lengths": sources}
        if net.config.model["prefix"] == "bidirectional":
            given["prefix_ids"] = (torch.arange(longest) < sources[:, None]).long()
    wanted = place.numbers(run, **given)["logits"]
    found = 0.0
    for left, length in ((False, longest), (True, longest + 3)):
        ids, mask = padded(texts, length, left)
        with torch.no_grad():
            logits = net(input_ids=ids, attention_mask=mask, **extra).logits
        for row, text in enumerate(texts):
            if task == "text-classifier":
                found = max(found, worst(logits[row], wanted[row]))
            else:
                found = max(found, worst(logits[row, mask[row] == 1], wanted[row, : len(text)]))
    return found


def check_gradients(place, run, net, task, texts):
    torch = require("torch")
    longest = max(len(text) for text in texts)
    ids, mask = padded(texts, longest, left=False)
    labels = torch.where(mask == 1, ids, -100)
    if task == "text-classifier":
        labels = ours = torch.arange(len(texts)) % 3
    else:
        if task == "pairs":
            for row, text in enumerate(texts):
                labels[row, : len(text) // 2] = -100
        else:
            labels[:, 0] = -100
        ours = torch.cat((labels[:, 1:], torch.full((len(texts), 1), -100)), dim=1)
        ours = torch.where(ours == -100, -1, ours)
    wanted = place.numbers(run, tokens=ids * mask, segment_ids=mask, labels=ours)
    if task == "masked-language-model":  # Capstan chooses what is hidden
        ids, labels = wanted["masked_tokens"].long(), wanted["masked_labels"].long()
    net.zero_grad()
    loss = net(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    found = abs(float(loss.detach()) - float(wanted["loss"])) / float(wanted["loss"])
    gradients = {name: parameter.grad for name, parameter in net.named_parameters() if parameter.grad is not None}
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    for name, gradient in wanted.items():
        if name.startswith("gradient.") and gradient.abs().max() > 1e-3 * largest:  # others nearly cancel: rounding
            found = max(found, worst(gradients[name[9:]], gradient))
    return max(found, check_checkpointing(net, gradients, input_ids=ids, attention_mask=mask, labels=labels))


def check_checkpointing(net, gradients, **batch):
    """Blocks that are computed twice give the same gradients. Dropout is off in these models."""
    net.zero_grad()
    net.gradient_checkpointing_enable()
    net.train()(**batch, use_cache=False).loss.backward()
    net.gradient_checkpointing_disable()
    net.eval()
    return max(worst(parameter.grad, gradients[name]) for name, parameter in net.named_parameters() if name in gradients)


def check_saving(place, net, exported):
    """save_pretrained writes the tensors that it has read, to the bit."""
    torch, load = require("torch"), require("safetensors.torch").load_file
    folder = place.folder / "saved"
    net.save_pretrained(folder)
    was, now = load(str(exported / "model.safetensors")), load(str(folder / "model.safetensors"))
    return was.keys() == now.keys() and all(torch.equal(was[name], now[name]) for name in was)


def check_writing(net, texts):
    """In a batch that is padded on the left, each token has the largest of the logits that reading the text again gives, but
    for rounding. Beams and samples are written, too."""
    torch = require("torch")
    ids, mask = padded([text[:9] for text in texts[:2]] + [texts[2][:4]], 11, left=True)
    for config in (net.config, net.generation_config):  # so that all tokens are written
        config.eos_token_id = config.suppress_tokens = None
    options = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0}
    written = net.generate(ids, attention_mask=mask, **options)
    mask = torch.cat((mask, torch.ones(3, 20, dtype=torch.long)), dim=1)
    with torch.no_grad():
        logits = net(written, attention_mask=mask, prefix_lengths=mask[:, :11].sum(dim=1), use_cache=False).logits[:, 10:-1]
    chosen = logits.gather(2, written[:, 11:, None])[..., 0]
    found = float(((logits.amax(dim=2) - chosen) / logits.abs().amax()).max())
    net.generate(ids, attention_mask=mask[:, :11], **options | {"num_beams": 3})
    net.generate(ids, attention_mask=mask[:, :11], **options | {"do_sample": True})
    return found


def main():
    torch = require("torch")
    transformers = require("transformers")
    transformers.logging.set_verbosity_error()
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    place, failed = Place(), 0
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    systems = sys.argv[2].split(",") if len(sys.argv) > 2 else SYSTEMS
    tasks = sys.argv[3].split(",") if len(sys.argv) > 3 else TASKS
    for system in systems:
        for task in tasks:
            for seed in seeds:
                name = f"{system}-{task}-{seed}"
                run = place.random_run(name, system, task, seed)
                folder = place.export(run, f"export-{name}")
                net = opened(folder, task)
                torch.manual_seed(seed)  # opening draws numbers in transformers 4.57
                texts = [torch.randint(0, 256, (length,)) for length in (23, 40, 5, 11)]
                logits = check_logits(place, run, net, task, texts)
                writes = check_writing(net, texts) if task in ("language-model", "pairs") else 0
                gradients = check_gradients(place, run, net, task, texts)
                saved = check_saving(place, net, folder)
                good = logits <= LOGITS and gradients <= GRADIENTS and writes <= LOGITS and saved
                failed += not good
                print(f"{name:34} logits {logits:.1e} gradients {gradients:.1e} written {writes:.1e}"
                      f"{'' if saved else ' SAVED OTHERWISE'}{'' if good else ' WRONG'}")
    print(f"{failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
