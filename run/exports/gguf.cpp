#include "run/exports/gguf.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/strings.hpp"
#include "data/tokenizers/normalisation.hpp"
#include "data/tokenizers/sentencepiece_model.hpp"
#include "run/exports/export_origin.hpp"
#include "run/exports/gguf_file.hpp"
#include "run/exports/model_card.hpp"
#include "run/exports/tokenizer_json.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The keys that keep a model from being Llama's, each with what it would have to be.
class Obstacles {
 public:
  void need(bool holds, const std::string& key, const std::string& wanted) {
    if (!holds) found_.push_back(fmt::format("  {}: must be {}", key, wanted));
  }
  void throw_if_any() const {
    if (!found_.empty())
      throw Error("export: GGUF has the models of Llama's shape only (configs/lm-llama.yaml), which this is not:\n" +
                  join(found_, "\n"));
  }

 private:
  std::vector<std::string> found_;
};

void check_norm(const NormConfig& norm, const NormConfig& first, const std::string& key, Obstacles& obstacles) {
  obstacles.need(norm.type == NormKind::rms, key + ".type", "rms");
  obstacles.need(!norm.clamp, key + ".compat.clamp", "false");
  obstacles.need(norm.eps == first.eps, key + ".eps", "the same in all norms");
}

void check_layer(const LayerConfig& layer, const LayerConfig& first, const std::string& key, Obstacles& obstacles) {
  check_norm(layer.norm, first.norm, key + ".norm", obstacles);
  obstacles.need(layer.norm_placement == NormPlacement::pre, key + ".norm_placement", "pre");
  obstacles.need(layer.short_conv == 0, key + ".short_conv", "0");
  obstacles.need(layer.feed_forward.type == FeedForwardKind::swiglu, key + ".feed_forward.type", "swiglu");
  obstacles.need(!layer.feed_forward.bias, key + ".feed_forward.bias", "false");
  obstacles.need(layer.feed_forward.expansion == first.feed_forward.expansion, key + ".feed_forward.expansion",
                 "the same in all layers");
  const auto *const mixer = std::get_if<AttentionConfig>(&layer.mixer), *const other =
                                                                            std::get_if<AttentionConfig>(&first.mixer);
  obstacles.need(mixer != nullptr, key + ".mixer.type", "attention");
  if (mixer == nullptr || other == nullptr) return;
  obstacles.need(mixer->heads == other->heads, key + ".mixer.heads", "the same in all layers");
  obstacles.need(mixer->rotary.enabled, key + ".mixer.rotary", "true");
  obstacles.need(mixer->rotary.base == other->rotary.base, key + ".mixer.rotary_base", "the same in all layers");
  obstacles.need(mixer->rotary.dims == 0, key + ".mixer.compat.rotary_dims", "0");
  obstacles.need(!mixer->bias, key + ".mixer.bias", "false");
  obstacles.need(!mixer->key_bias, key + ".mixer.compat.key_bias", "false");
  obstacles.need(mixer->output_projection, key + ".mixer.output_projection", "true");
}

/// The configuration of a model that has Llama's shape.
const LanguageModelConfig& checked(const SavedRun& run) {
  Obstacles obstacles;
  const auto* const model = std::get_if<LanguageModelConfig>(&run.config.model);
  obstacles.need(model != nullptr, "model.type", "language-model");
  obstacles.throw_if_any();
  obstacles.need(model->positions == Positions::none, "model.positions", "none");
  obstacles.need(model->ngram_embedding.orders.empty(), "model.ngram_embedding.orders", "[]");
  obstacles.need(!model->embedding_norm, "model.embedding_norm", "false");
  obstacles.need(!model->share_layers, "model.share_layers", "false");
  obstacles.need(!model->output_bias, "model.output_bias", "false");
  obstacles.need(model->prefix == PrefixRule::causal, "model.prefix", "causal");
  for (size_t i = 0; i < model->layers.size(); ++i)
    check_layer(model->layers[i], model->layers.front(), fmt::format("model.layers.{}", i), obstacles);
  check_norm(model->final_norm, model->layers.front().norm, "model.final_norm", obstacles);
  const std::string kind = run.tokenizer->kind();
  obstacles.need(kind == "byte" || kind == "sentencepiece", "data.tokenizer.type", "byte or sentencepiece");
  obstacles.throw_if_any();
  return *model;
}

// What llama.cpp calls a token.
enum TokenType : int32_t { normal_token = 1, control_token = 3 };

struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> types;
  void add(const std::string& text, float score, int32_t type) {
    texts.push_back(text);
    scores.push_back(score);
    types.push_back(type);
  }
};

Vocabulary byte_vocabulary() {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(byte_letter(static_cast<uint8_t>(byte)), 0, normal_token);
  return vocabulary;
}

Vocabulary piece_vocabulary(const Tokenizer& tokenizer) {
  const nlohmann::json saved = parse_json(tokenizer.to_json());
  const SentencePieceContent content =
      sentencepiece_content(from_base64(saved.at("model").get<std::string>()), "tokenizer.json");
  Obstacles obstacles;
  obstacles.need(content.is_bpe, "data.tokenizer.model_type", "bpe");
  obstacles.need(content.byte_fallback, "data.tokenizer.byte_fallback", "true");
  obstacles.need(changes_nothing(normalisation_from(saved)), "data.tokenizer.normalise, .case_fold", "none, false");
  obstacles.need(!content.changes_texts, "data.tokenizer.model", "one that capstan train has learnt");
  obstacles.throw_if_any();
  Vocabulary vocabulary;
  for (const auto& piece : content.pieces) vocabulary.add(piece.text, piece.score, static_cast<int32_t>(piece.type));
  return vocabulary;
}

void add_tokenizer(const SavedRun& run, GgufFile& file) {
  const bool of_bytes = run.tokenizer->kind() == "byte";
  Vocabulary vocabulary = of_bytes ? byte_vocabulary() : piece_vocabulary(*run.tokenizer);
  const int64_t added = facts_of(run.config.data).added_tokens;
  for (int64_t i = 0; i < added; ++i) vocabulary.add(i == 0 ? "<|end|>" : "<|separator|>", 0, control_token);
  file.add("tokenizer.ggml.model", std::string_view(of_bytes ? "gpt2" : "llama"));
  if (of_bytes) {
    file.add("tokenizer.ggml.pre", std::string_view("gpt-2"));
    // llama.cpp wants a merge: of two bytes that no text has.
    file.add("tokenizer.ggml.merges", std::vector<std::string>{byte_letter(0xfe) + " " + byte_letter(0xff)});
  } else {
    file.add("tokenizer.ggml.scores", vocabulary.scores);
    file.add("tokenizer.ggml.add_space_prefix", false);
    file.add("tokenizer.ggml.remove_extra_whitespaces", false);
  }
  file.add("tokenizer.ggml.tokens", vocabulary.texts);
  file.add("tokenizer.ggml.token_type", vocabulary.types);
  const auto unknown = run.tokenizer->unknown_token(), start = start_token(run), end = end_of_document(run);
  // Without documents no token ends a text: one that is never written stands for it.
  const int32_t never = unknown.value_or(0xff);
  file.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(end.value_or(never)));
  file.add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(start.value_or(never)));
  file.add("tokenizer.ggml.add_bos_token", start.has_value());
  if (unknown) file.add("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(*unknown));
}

/// Copies of parameters, under llama.cpp's names.
class Tensors {
 public:
  Tensors(const ParamStore& params, GgufFile& file) : params_(params), file_(file) {}

  /// All rows, or `count` of them from row `begin` on.
  void add(const std::string& name, const std::string& of, int64_t begin = 0, int64_t count = -1) {
    file_.add_tensor(name, shape(of, count), values(of, begin, count));
  }
  /// llama.cpp turns features 2i and 2i + 1 of a head together: rows i and i + n/2 become these.
  void add_interleaved(const std::string& name, const std::string& of, int64_t begin, int64_t count, int64_t heads) {
    const std::vector<float> rows = values(of, begin, count);
    const int64_t width = shape(of, count).back(), size = count / heads, half = size / 2;
    std::vector<float> turned(rows.size());
    for (int64_t row = 0; row < count; ++row) {
      const int64_t feature = row % size, source = row - feature + (feature % 2 == 0 ? 0 : half) + feature / 2;
      std::copy_n(rows.data() + source * width, width, turned.data() + row * width);
    }
    file_.add_tensor(name, shape(of, count), std::move(turned));
  }

 private:
  std::vector<int64_t> shape(const std::string& of, int64_t count) const {
    std::vector<int64_t> shape = params_.find(of).var.shape().to_vector();
    if (count >= 0) shape.front() = count;
    return shape;
  }
  std::vector<float> values(const std::string& of, int64_t begin, int64_t count) const {
    const Param& param = params_.find(of);
    const int64_t width = param.var.size() / param.var.dim(0);
    const float* const first = params_.values() + param.offset + begin * width;
    return {first, first + (count < 0 ? param.var.dim(0) : count) * width};
  }

  const ParamStore& params_;
  GgufFile& file_;
};

void add_weights(const SavedRun& run, const LanguageModelConfig& model, GgufFile& file) {
  const ParamStore& params = run.model->params();
  Tensors tensors(params, file);
  tensors.add("token_embd.weight", "embed.weight");
  tensors.add("output_norm.weight", "final_norm.gain");
  if (!model.tied_output) tensors.add("output.weight", "output.weight");
  const std::vector<LayerConfig> layers = expanded_layers(model);
  const int64_t width = model.width;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& mixer = std::get<AttentionConfig>(layers[i].mixer);
    const std::string to = fmt::format("blk.{}.", i), from = fmt::format("blocks.{}.", i);
    tensors.add(to + "attn_norm.weight", from + "mixer_norm.gain");
    for (const int64_t part : {0, 1}) {
      const std::string name = to + (part == 0 ? "attn_q.weight" : "attn_k.weight");
      if (mixer.rotary.pairs == RotaryPairs::halves)
        tensors.add_interleaved(name, from + "mixer.to_qkv.weight", part * width, width, mixer.heads);
      else
        tensors.add(name, from + "mixer.to_qkv.weight", part * width, width);
    }
    tensors.add(to + "attn_v.weight", from + "mixer.to_qkv.weight", 2 * width, width);
    tensors.add(to + "attn_output.weight", from + "mixer.to_out.weight");
    tensors.add(to + "ffn_norm.weight", from + "feed_forward_norm.gain");
    const int64_t hidden = params.find(from + "feed_forward.down.weight").var.dim(1);
    tensors.add(to + "ffn_gate.weight", from + "feed_forward.up.weight", 0, hidden);
    tensors.add(to + "ffn_up.weight", from + "feed_forward.up.weight", hidden, hidden);
    tensors.add(to + "ffn_down.weight", from + "feed_forward.down.weight");
  }
}

void add_shape(const SavedRun& run, const LanguageModelConfig& model, GgufFile& file) {
  const LayerConfig& layer = model.layers.front();
  const auto& mixer = std::get<AttentionConfig>(layer.mixer);
  const auto number = [](int64_t value) { return static_cast<uint32_t>(value); };
  const Param& down = run.model->params().find("blocks.0.feed_forward.down.weight");
  file.add("general.architecture", std::string_view("llama"));
  file.add("general.name", std::string_view(run.config.name));
  file.add("general.file_type", uint32_t{0});
  file.add("llama.context_length", number(model.max_length));
  file.add("llama.embedding_length", number(model.width));
  file.add("llama.block_count", number(static_cast<int64_t>(expanded_layers(model).size())));
  file.add("llama.feed_forward_length", number(down.var.dim(1)));
  file.add("llama.attention.head_count", number(mixer.heads));
  file.add("llama.attention.head_count_kv", number(mixer.heads));
  file.add("llama.attention.layer_norm_rms_epsilon", static_cast<float>(layer.norm.eps));
  file.add("llama.rope.dimension_count", number(model.width / mixer.heads));
  file.add("llama.rope.freq_base", static_cast<float>(mixer.rotary.base));
  file.add("llama.vocab_size", number(model_vocabulary(run.config, *run.tokenizer)));
}

}  // namespace

void write_gguf(const SavedRun& run, const fs::path& folder) {
  const LanguageModelConfig& model = checked(run);
  GgufFile file;
  add_shape(run, model, file);
  const nlohmann::json origin = export_origin(run);
  file.add("capstan.format", static_cast<uint32_t>(origin.at("format").get<int64_t>()));
  file.add("capstan.version", std::string_view(origin.at("version").get_ref<const std::string&>()));
  file.add("capstan.weights", std::string_view(origin.value("weights", std::string("unknown"))));
  add_tokenizer(run, file);
  add_weights(run, model, file);
  file.write((folder / "model.gguf").string());
  write_file((folder / "README.md").string(), model_card(run, nullptr, nlohmann::json::object()));
}

}  // namespace capstan
