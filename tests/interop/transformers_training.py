"""transformers' Trainer trains an exported model on, with gradient checkpointing, and a run of Capstan starts from what it saves and has the same loss in `capstan eval`.

    python tests/interop/transformers_training.py [SYSTEM,...]

Needs the Python packages torch, transformers and accelerate and a built program; says so and skips otherwise.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from exported_run import DATA, SYSTEMS, TEXT, Place, model
from sample_run import require


def main():
    torch, transformers = require("torch"), require("transformers")
    require("accelerate")
    print("transformers", transformers.__version__)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    place, failed = Place(), 0
    for system in sys.argv[1].split(",") if len(sys.argv) > 1 else SYSTEMS:
        name = f"train-{system}"
        config = {"data": DATA["language-model"], "model": model(system, "language-model", 3)}
        run = place.train(name, config)
        net = transformers.AutoModelForCausalLM.from_pretrained(place.export(run, f"export-{system}"), trust_remote_code=True)
        rows = [list((TEXT[i:] + TEXT[:i]).encode()[:40]) for i in range(64)]
        data = [{"input_ids": row, "labels": row} for row in rows]
        options = transformers.TrainingArguments(
            output_dir=str(place.folder / "trainer"), num_train_epochs=1, per_device_train_batch_size=8, learning_rate=3e-3,
            report_to=[], save_strategy="no", gradient_checkpointing=True, use_cpu=True, disable_tqdm=True, logging_steps=4)
        trainer = transformers.Trainer(model=net, args=options, train_dataset=data,
                                       data_collator=transformers.default_data_collator)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        net.eval().save_pretrained(place.folder / f"saved-{system}")
        back = place.train(f"back-{system}", config | {"train": {
            "steps": 1, "batch_size": 2, "lr": 1e-30, "progress": "none",
            "init_from": f"saved-{system}/model.safetensors"}})
        # One window: capstan eval reads the token that starts a text, and predicts all tokens of the text.
        (place.folder / "held-out.txt").write_text(TEXT[:32])
        evaluated = place.capstan("eval", str(back), "--split", "test", "--set", "data.test=[held-out.txt]", "--format", "json")
        ours = json.loads(evaluated.stdout)["loss"]
        ids = torch.tensor([[net.config.bos_token_id, *TEXT[:32].encode()]])
        with torch.no_grad():
            theirs = float(net(input_ids=ids, labels=ids).loss)
        good = abs(ours - theirs) <= 1e-5 * theirs and losses[-1] < losses[0]
        failed += not good
        print(f"{system:12} losses {losses[0]:.3f} to {losses[-1]:.3f}; read back {ours:.6f}, {theirs:.6f}{'' if good else ' WRONG'}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
