"""Capstan's models in PyTorch, for the transformers library (4.57 and 5.x): the stack of blocks, and the tasks, which are
language models, masked language models and text classifiers.

How to read it. `config.model` is the section `model:` of a Capstan configuration, with all defaults written out. Weights
have the names that Capstan gives them, so that `save_pretrained` writes what `train.init_from` reads. Shapes: B texts,
T tokens, D features, H heads, S sources (tokens that are read), V the vocabulary.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PreTrainedModel
from transformers.utils import ModelOutput

# transformers 4.57 copies the files that this one imports, and none that only another imports: so this imports all.
from .capstan_aft import Aft
from .capstan_attention import Attention
from .capstan_block import Block
from .capstan_fastformer import Fastformer
from .capstan_gated import Flash, Gau
from .capstan_layers import Norm, parameter
from .capstan_mixer import Mixer
from .capstan_ngrams import Ngrams
from .capstan_spans import LOWEST, wide
from .capstan_tables import StoredTables
from .capstan_texts import Texts, aligned, rows_at
from .configuration_capstan import CapstanConfig

if TYPE_CHECKING:  # save_pretrained copies files that this one names, and the configuration names this one
    from .pipeline_capstan import CapstanFillMaskPipeline, CapstanTextClassificationPipeline  # noqa: F401

MIXERS: dict[str, type[Mixer]] = {
    "aft-simple": Aft, "aft-full": Aft, "aft-local": Aft, "aft-conv": Aft, "fastformer": Fastformer, "attention": Attention,
    "gau": Gau, "flash": Flash}


class CapstanState:
    """What a generation remembers: for each layer named tensors, whose first axis is the text."""

    is_compileable = False
    is_linear = (True,)  # transformers 5.x then leaves it to prepare_inputs_for_generation to cut the ids

    def __init__(self):
        self.layers, self.lengths, self.recent, self.columns = [], None, None, 0

    def get_seq_length(self, layer_idx=0):  # columns of input that were read, padding included
        return self.columns

    def get_max_cache_shape(self, layer_idx=0):
        return -1

    def reorder_cache(self, beam_idx):  # text i becomes a copy of text beam_idx[i]
        def chosen(x):
            return None if x is None else x.index_select(0, beam_idx.to(x.device))
        self.layers = [{name: chosen(x) for name, x in layer.items()} for layer in self.layers]
        self.lengths, self.recent = chosen(self.lengths), chosen(self.recent)


@dataclass
class CapstanOutput(ModelOutput):
    """From 5.24 on, transformers calls the decode state `cache`, and turns past_key_values=state into it."""

    loss: torch.Tensor = None
    logits: torch.Tensor = None
    last_hidden_state: torch.Tensor = None
    past_key_values: CapstanState = None
    cache: CapstanState = None


class CapstanModel(StoredTables, PreTrainedModel):
    """Embedding + n-grams + positions, blocks, final norm: (B, T) -> (B, T, D)."""

    config_class = CapstanConfig
    base_model_prefix = ""  # weights have Capstan's names, without a prefix
    supports_gradient_checkpointing = True
    _no_split_modules = ["Block"]
    _input_embed_layer = "embed"
    _is_stateful = True  # a state cannot be cut back to an earlier token
    _supports_default_dynamic_cache = classmethod(lambda cls: False)

    def __init__(self, config, as_stored=False):
        super().__init__(config)
        model = config.model
        width, longest, layers = model["width"], config.longest, model["layers"]
        self.embed = nn.Embedding(config.vocab_size + config.added_rows, width)
        if model["ngram_embedding"]["orders"]:
            self.ngram_embedding = Ngrams(model["ngram_embedding"], width)
        if model["positions"] == "learned":
            self.positions = nn.Embedding(longest, width)
        elif model["positions"] == "scaled-sinusoidal":
            self.positions = nn.ParameterDict({"scale": parameter(1, value=1.0)})
        self.embed_norm = Norm(model["final_norm"], width) if model["embedding_norm"] else nn.Identity()
        kinds = [layer for layer in layers for _ in range(layer["repeat"])]
        self.blocks = nn.ModuleList(
            Block(kind, model, MIXERS[kind["mixer"]["type"]](kind["mixer"], width, longest, config.causal)) for kind in kinds)
        final = not kinds or kinds[-1]["norm_placement"] == "pre"
        self.final_norm = Norm(model["final_norm"], width) if final else nn.Identity()
        self.dropout = nn.Dropout(model["dropout"])
        self.make_heads(model, width)
        if as_stored:
            self.shrink_tables()
        self.post_init()

    def _init_weights(self, module):
        """What a file does not have: matrices N(0, 1 / inputs), gains 1, biases and n-grams 0."""
        for name, weight in module.named_parameters(recurse=False):
            zero = (name.endswith("bias") or name in ("gain", "scale", "offset", "kernel_gain", "ngram_gain")
                    or isinstance(module, Ngrams))
            stddev = {"weight": weight.shape[-1] ** -0.5, "kernel": 1.0}.get(name, 0.0 if zero else 0.02)
            if not getattr(weight, "_is_hf_initialized", False):
                weight.data.normal_(0.0, stddev).add_(1.0 if name in ("gain", "scale") else 0.0)

    def make_heads(self, model, width):
        """For derived classes."""

    def resize_token_embeddings(self, *args, **kwargs):
        if self.config.added_rows:
            raise ValueError("the embedding ends with a token that the model adds: train a model with the larger vocabulary")
        return super().resize_token_embeddings(*args, **kwargs)

    def has_position_limit(self):
        model = self.config.model
        return model["positions"] == "learned" or any(
            mixer["type"] in ("aft-full", "aft-local") or mixer["type"] == "gau" and mixer["position_bias"] == "toeplitz"
            for mixer in (layer["mixer"] for layer in model["layers"]))

    def check_length(self, longest):
        if not torch.compiler.is_exporting() and self.has_position_limit() and int(longest) > self.config.longest:
            raise ValueError(f"a text of {int(longest)} tokens is longer than the model's {self.config.longest} positions")

    def embedded(self, ids, embeds, ngrams, positions):  # positions: (T) or (B, 1)
        kind, width = self.config.model["positions"], self.config.model["width"]
        x = (self.embed(ids) if embeds is None else embeds) + ngrams
        if kind == "learned":
            x = x + self.positions(positions.clamp(max=self.config.longest - 1))  # beyond it is padding
        elif kind != "none":
            interleaved = kind == "sinusoidal"
            table = sinusoids(positions, width, interleaved).to(x.dtype)
            x = x * width ** 0.5 + table if interleaved else x + self.positions["scale"] * table
        return self.dropout(self.embed_norm(x))

    def read(self, ids, embeds, texts, prompts=None, state=None):
        """Whole texts at once: (B, T, D). Fills the state, if there is one."""
        self.check_length(texts.lengths.max())
        if hasattr(self, "ngram_embedding") and ids is None:
            raise ValueError("a model with n-grams needs input_ids")
        ngrams = self.ngram_embedding.of_tokens(ids, texts.valid) if hasattr(self, "ngram_embedding") else 0.0
        x = self.embedded(ids, embeds, ngrams, texts.positions)
        for block in self.blocks:
            x, of_layer = block(block.enter(x, ngrams), texts, self.config.causal, prompts, state is not None)
            if state is not None:
                state.layers.append(of_layer)
        if state is not None:
            state.lengths = texts.lengths
            if hasattr(self, "ngram_embedding"):
                before = torch.arange(1 - max(self.ngram_embedding.orders), 0, device=ids.device)
                state.recent = rows_at(ids, texts.lengths[:, None] + before, -1)
        return self.final_norm(x)

    def read_one(self, ids, embeds, state):
        """One more token of each text: (B, 1, D)."""
        ngrams = 0.0
        if hasattr(self, "ngram_embedding"):
            seen = torch.cat((state.recent, ids), dim=1)
            ngrams = self.ngram_embedding.of_tokens(seen, seen >= 0)[:, -1:]
            state.recent = seen[:, 1:]
        self.check_length(state.lengths.max() + 1)
        x = self.embedded(ids, embeds, ngrams, state.lengths[:, None])
        for block, of_layer in zip(self.blocks, state.layers):
            x = block.one(block.enter(x, ngrams), of_layer, state.lengths)
        state.lengths = state.lengths + 1
        return self.final_norm(x)

    def prompts(self, attention_mask, labels, prefix_lengths, use_cache):
        """The beginnings that are read in both directions: lengths (B), or "all", or None."""
        bidirectional = self.config.model.get("prefix") == "bidirectional"
        if not bidirectional or prefix_lengths is not None:
            return prefix_lengths if bidirectional else None
        if labels is None and use_cache is False:
            raise ValueError("prompts are read in both directions: give their lengths as prefix_lengths (B), or use_cache=True")
        if labels is None:
            return "all"
        first = (labels != -100).int().argmax(dim=1)
        padding = 0 if attention_mask is None else (attention_mask != 0).int().argmax(dim=1)
        return torch.where((labels != -100).any(dim=1), first - padding, 0)

    def states(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, prompts=None):
        """(B, T, D) in the places of the input. prompts: lengths of what is read in both directions, (B), or "all"."""
        given = input_ids if inputs_embeds is None else inputs_embeds
        if past_key_values is not None and past_key_values.columns:
            if given.shape[1] > 1 and prompts is not None:
                raise ValueError("a prompt of a model with `prefix: bidirectional` is read in one piece: give it whole")
            if attention_mask is not None and not bool((attention_mask[:, -given.shape[1]:] != 0).all()):
                raise ValueError("attention_mask hides tokens that follow those in the state: give texts without padding there")
            columns = [self.read_one(None if input_ids is None else input_ids[:, t:t + 1],
                                     None if inputs_embeds is None else inputs_embeds[:, t:t + 1], past_key_values)
                       for t in range(given.shape[1])]  # one, unless several were accepted at once
            past_key_values.columns += given.shape[1]
            return torch.cat(columns, dim=1)
        texts, gather, back = aligned(given, attention_mask)
        if input_ids is not None:
            input_ids = torch.where(texts.valid, input_ids.gather(1, gather), 0)
        if inputs_embeds is not None:
            inputs_embeds = rows_at(inputs_embeds, gather)
        if prompts is not None:
            prompts = texts.lengths if isinstance(prompts, str) else prompts.to(given.device)
            if not torch.compiler.is_exporting() and bool((prompts > texts.lengths).any()):
                raise ValueError("prefix_lengths: a prompt is longer than its text: give prompts whole, in one piece")
            prompts = texts.keep(prompts)
        x = self.read(input_ids, inputs_embeds, texts, prompts, past_key_values)
        if past_key_values is not None:
            past_key_values.columns += given.shape[1]
        return rows_at(x, back)

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, use_cache=None,
                cache=None, prefix_lengths=None, **kwargs):
        state = past_key_values or cache or (CapstanState() if use_cache and self.config.causal else None)
        prompts = self.prompts(attention_mask, None, prefix_lengths, use_cache)
        x = self.states(input_ids, attention_mask, inputs_embeds, state, prompts)
        return CapstanOutput(last_hidden_state=x, past_key_values=state)


def sinusoids(positions, width, interleaved):
    """sin and cos of position / 10000^(2 i / D), in turn (Vaswani et al. 2017), or all sines first: (..., D), in double."""
    half = (width + 1) // 2
    feature = torch.arange(width, device=positions.device)
    sine, pair = (feature % 2 == 0, feature // 2) if interleaved else (feature < half, feature % half)
    angle = positions[..., None].double() * 10000.0 ** (-2 * pair.double() / width)
    return torch.where(sine, angle.sin(), angle.cos())


def mean_cross_entropy(logits, labels, count=None, smoothing=0.0):
    """Over the labels that are not -100; count: their number in all batches of a step, where it is known."""
    total = F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100, reduction="sum",
                            label_smoothing=smoothing)
    return total / (count if count is not None else (labels != -100).sum().clamp(min=1))


class TokenScores(CapstanModel):
    """A score for every token of the vocabulary: logits = W x + b, with W the embedding (tied) or weights of its own."""

    _tied_weights_keys = {"output.weight": "embed.weight"}

    def make_heads(self, model, width):
        rows = self.config.vocab_size + self.config.added_rows * model["tied_output"]
        self.output = nn.Linear(width, rows, bias=model["output_bias"])

    def get_output_embeddings(self):
        return self.output

    def set_output_embeddings(self, value):
        self.output = value


class CapstanForCausalLM(TokenScores, GenerationMixin):
    """Predicts every token from those before it. Its decode state is a CapstanState; texts may be padded on the left.

    With `prefix: bidirectional`, the beginning of a text is read as a whole: `prefix_lengths` (B) tokens; without it, the
    tokens in front of the first one that has a label; without labels, the whole input, which then is a prompt.
    """

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, past_key_values=None, labels=None,
                use_cache=None, logits_to_keep=0, prefix_lengths=None, num_items_in_batch=None, cache=None, **kwargs):
        caches = use_cache if use_cache is not None else not self.training
        state = past_key_values or cache or (CapstanState() if caches else None)
        prompts = self.prompts(attention_mask, labels, prefix_lengths, use_cache)
        x = self.states(input_ids, attention_mask, inputs_embeds, state, prompts)
        logits = self.output(x[:, -logits_to_keep:] if isinstance(logits_to_keep, int) else x[:, logits_to_keep])
        loss = None if labels is None else mean_cross_entropy(logits[:, :-1], labels[:, 1:], num_items_in_batch)
        return CapstanOutput(loss=loss, logits=logits, past_key_values=state)

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, attention_mask=None, inputs_embeds=None,
                                      use_cache=True, cache=None, prefix_lengths=None, **kwargs):
        state = next((given for given in (past_key_values, cache) if isinstance(given, CapstanState)), None)
        seen = state.columns if state else 0
        first, seen = inputs_embeds is not None and seen == 0, seen if inputs_embeds is None else -1  # only new input_ids then
        return {"input_ids": None if first else input_ids[:, seen:], "inputs_embeds": inputs_embeds if first else None,
                "attention_mask": attention_mask, "use_cache": use_cache, "logits_to_keep": 1, "past_key_values": state,
                "prefix_lengths": prefix_lengths}


class CapstanForMaskedLM(TokenScores):
    """Predicts hidden tokens from those around them. The mask token is the one after the vocabulary."""

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, labels=None, num_items_in_batch=None, **kwargs):
        logits = self.output(self.states(input_ids, attention_mask, inputs_embeds))
        loss = None if labels is None else mean_cross_entropy(logits, labels, num_items_in_batch)
        return CapstanOutput(loss=loss, logits=logits)


class Pooling(nn.Module):
    """a = softmax_t(w . tanh(W x_t + b)) over the tokens of a text."""

    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, x, valid):
        scores = self.score(torch.tanh(self.hidden(x)))
        return torch.softmax(wide(scores).masked_fill(~valid[..., None], LOWEST), dim=1)


class CapstanForSequenceClassification(CapstanModel):
    """logits = H p + h (+ n-grams), with p = sum_t a_t x_t.
    pooling: mean a_t = 1 / n; last: a_t = 1 at the last token; cls: at a token of its own, which precedes every text;
    attention: learned.
    """
    accepts_loss_kwargs = False  # Trainer divides the loss by the steps that it accumulates

    def make_heads(self, model, width):
        self.head = nn.Linear(width, self.config.num_labels)
        if model["ngrams"]["orders"]:
            self.ngrams = Ngrams(model["ngrams"], self.config.num_labels)
        if model["pooling"] == "attention":
            self.pooling = Pooling(width)

    def pooled(self, x, texts):
        kind = self.config.model["pooling"]
        if kind == "cls":
            return x[:, 0]
        if kind == "last":
            return rows_at(x, texts.lengths[:, None] - 1)[:, 0]
        if kind == "attention":
            weights = self.pooling(x, texts.valid)
        else:
            weights = 1.0 / texts.lengths.clamp(min=1)[:, None, None].to(wide(x).dtype)
        return (wide(x) * texts.valid[..., None] * weights).sum(dim=1).to(x.dtype)

    def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
        texts, gather, _ = aligned(input_ids, attention_mask)
        ids = torch.where(texts.valid, input_ids.gather(1, gather), 0)
        read, inside = ids, texts
        if self.config.model["pooling"] == "cls":
            read = F.pad(ids, (1, 0), value=self.config.vocab_size)
            inside = Texts(texts.lengths + 1, F.pad(texts.valid, (1, 0), value=True))
        logits = self.head(self.pooled(self.read(read, None, inside), inside))
        if hasattr(self, "ngrams"):
            logits = logits + self.ngrams.of_texts(ids, texts.valid)
        loss = None
        if labels is not None and self.config.problem_type == "multi_label_classification":  # summed over the labels
            loss = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").sum(-1).mean()
        elif labels is not None:
            loss = self.loss_of(logits, labels)
        return CapstanOutput(loss=loss, logits=logits)

    def loss_of(self, logits, labels):
        """In training the configured loss, otherwise the cross-entropy."""
        chosen = self.config.model["loss"] if self.training else {"type": "cross-entropy"}
        return mean_cross_entropy(logits, labels, smoothing=chosen.get("label_smoothing", 0.0))
