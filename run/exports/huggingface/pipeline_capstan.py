"""Pipelines that answer as `capstan predict` does. `config.reading` says how it reads a text:

    longest   the number of tokens from which on it cuts a text, or fills its blanks in parts of it; 0: none
    truncate  of a text to label: head or tail is kept, or a longer text is an error
    tokens    of a text with blanks: the tokens of text, which are the first ones
    unknown   a token that fills no blank, where there is one
"""

import torch
from transformers import FillMaskPipeline, TextClassificationPipeline


class CapstanTextClassificationPipeline(TextClassificationPipeline):
    """Long texts are cut, unless a call has options for the tokenizer."""

    def preprocess(self, inputs, **tokenizer_kwargs):
        if tokenizer_kwargs or not isinstance(inputs, (str, dict)):
            return super().preprocess(inputs, **tokenizer_kwargs)
        columns = [inputs] if isinstance(inputs, str) else [inputs[name] for name in ("text", "text_pair") if name in inputs]
        parts = self.shortened([self.tokenizer(column, add_special_tokens=False)["input_ids"] for column in columns])
        ids = parts[0]
        for part in parts[1:]:
            ids = ids + [self.tokenizer.sep_token_id] + part
        seen = int(sum(map(len, parts)) > 0)  # a text without tokens is a row of padding
        return {"input_ids": torch.tensor([ids or [0]]), "attention_mask": torch.full((1, max(len(ids), 1)), seen)}

    def shortened(self, parts):
        """The longest column loses its tokens first, and the first of two that are equal."""
        reading = self.model.config.reading
        lengths, most = [len(part) for part in parts], reading["longest"] - (len(parts) - 1)
        if reading["longest"] == 0 or sum(lengths) <= most:
            return parts
        if reading["truncate"] == "error":
            raise ValueError(f"the text has {sum(lengths)} tokens, more than {most}: shorten it")
        while sum(lengths) > most:
            lengths[lengths.index(max(lengths))] -= 1
        return [part[len(part) - n:] if reading["truncate"] == "tail" else part[:n] for part, n in zip(parts, lengths)]


    def postprocess(self, model_outputs, function_to_apply=None, top_k=1, _legacy=True):
        """Without options, the class by the run's rule where it has one; of several labels, the list of those that reach their
        thresholds, which may be empty."""
        capstan, classes = self.model.config.capstan, self.model.config.num_labels
        rule, thresholds = capstan.get("rule"), capstan.get("thresholds")
        if (rule is None and thresholds is None) or function_to_apply is not None or top_k != 1 or not _legacy:
            return super().postprocess(model_outputs, function_to_apply, top_k, _legacy)
        if thresholds is not None:
            shares = model_outputs["logits"][0].float().sigmoid().tolist()
            reached = [c for c, least in enumerate(torch.tensor(thresholds).tolist()) if shares[c] >= least]
            return [{"label": self.model.config.id2label[c], "score": shares[c]} for c in reached]
        p = model_outputs["logits"][0].double().softmax(-1)
        rule = torch.tensor(rule, dtype=torch.float64, device=p.device)
        chosen = int((p * rule if len(rule) == classes else -(p @ rule.view(classes, classes))).argmax())
        return {"label": self.model.config.id2label[chosen], "score": float(p[chosen])}


class CapstanFillMaskPipeline(FillMaskPipeline):
    """Blanks of a long text are filled in parts of it that are as long as the texts of the training. Scores are shares of all
    tokens, of which those that are no text are left out."""

    def _forward(self, model_inputs):
        ids, longest = model_inputs["input_ids"], self.model.config.reading["longest"]
        lengths = model_inputs["attention_mask"].sum(dim=1)
        if longest == 0 or int(lengths.max()) <= longest:
            return super()._forward(model_inputs)
        rows = [self.windows(row, n, min(n, longest)) for row, n in zip(ids, lengths.tolist())]
        return {"logits": torch.stack(rows), "input_ids": ids}

    def windows(self, ids, length, most):
        """(T, V), not zero around blanks. The part around a blank serves those after it that it contains."""
        logits, end = None, 0
        for t in (ids == self.tokenizer.mask_token_id).nonzero()[:, 0].tolist():
            if t >= end:
                first = min(max(t - most // 2, 0), length - most)
                found = self.model(input_ids=ids[None, first:first + most]).logits[0]
                logits = found.new_zeros(len(ids), found.shape[1]) if logits is None else logits
                logits[max(first, end):first + most] = found[max(end - first, 0):]
                end = first + most
        return logits

    def postprocess(self, model_outputs, top_k=5, target_ids=None):
        reading = self.model.config.reading
        ids, logits = model_outputs["input_ids"], model_outputs["logits"].float()
        if ids[0, 0] == self.model.config.bos_token_id:  # the token in front is no text
            ids, logits = ids[:, 1:], logits[:, 1:]
        of_text = logits.clone()
        of_text[..., reading["tokens"]:] = -torch.inf
        if "unknown" in reading:
            of_text[..., reading["unknown"]] = -torch.inf
        shares = (of_text.logsumexp(dim=-1) - logits.logsumexp(dim=-1)).exp()[ids == self.tokenizer.mask_token_id].tolist()
        outputs = super().postprocess({"input_ids": ids, "logits": of_text}, top_k, target_ids)
        for guesses, share in zip([outputs] if isinstance(outputs[0], dict) else outputs, shares):
            for guess in guesses:
                guess["score"] *= share
        return outputs
