"""The configuration of Capstan's models in the transformers library (4.57 and 5.x)."""

from transformers import PretrainedConfig


class CapstanConfig(PretrainedConfig):
    """model: the section `model:` of the run's configuration. capstan: what made the export. tables: capstan_tables.py."""

    model_type = "capstan"
    keys_to_ignore_at_inference = ["past_key_values", "cache"]

    def __init__(self, model=None, vocab_size=256, capstan=None, tables=None, **kwargs):
        self.model = model or {"type": "language-model", "width": 0, "layers": []}
        self.vocab_size = vocab_size  # rows of the embedding without those for tokens that the model adds itself
        self.capstan, self.tables = capstan or {}, tables or {}
        kwargs.setdefault("tie_word_embeddings", bool(self.model.get("tied_output", False)))
        super().__init__(**kwargs)

    hidden_size = property(lambda self: self.model.get("width", 0))

    @property
    def added_rows(self):  # of the embedding, after the vocabulary: the mask token, or the first token of every text
        return int(self.model["type"] == "masked-language-model" or self.model.get("pooling") == "cls")

    @property
    def causal(self):
        return self.model["type"] == "language-model" or bool(self.model.get("causal", False))

    @property
    def longest(self):  # positions in tables: the longest text, and the token that pooling `cls` puts in front
        return self.model["max_length"] + int(self.model.get("pooling") == "cls")
