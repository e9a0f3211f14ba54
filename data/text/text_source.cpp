// The source `text`: windows for training and evaluation, the identity.
// Saved runs contain the identity: tests/data/test_data_source.cpp. tests/data/test_text_source.cpp checks the windows.
#include "data/text/text_source.hpp"

#include "core/base/error.hpp"
#include "data/files/token_row.hpp"
#include "data/text/text_loading.hpp"
#include "data/text/text_windows.hpp"

namespace capstan {
namespace {

/// How many tokens each weighted source has, for the identity: the fingerprint covers the tokens, but not where one
/// source ends and the next begins.
std::string sources_text(const TextCorpus& corpus) {
  std::string text;
  for (size_t i = 0; i < corpus.sources.size(); ++i)
    text += fmt::format("source {}: {} tokens\n", i, corpus.sources[i].end - corpus.sources[i].begin);
  return text;
}

std::string identity_of(const TextSourceConfig& config, const TextData& data) {
  // A run goes on with other values of these keys: they name files or the cache, concern evaluation alone, or change
  // the tokens, which the fingerprint covers.
  const std::vector<std::string> without = {"include", "exclude", "overlap", "validation", "documents", "cache"};
  return source_identity(settings_of(config), without, data.fingerprint, sources_text(data.train));
}

class TextSource final : public DataSource {
 public:
  TextSource(const TextSourceConfig& config, const SourceInputs& inputs)
      : config_(config), data_(load_text(config, inputs)), batches_(inputs.batches) {
    if (!config.train.empty())
      training_.emplace(data_.train, TrainingWindows::Options{config.sequence_length, config.windows, inputs.seed},
                        inputs.batches);
  }

  const SourceContent& content() const override { return data_; }
  std::string identity() const override { return identity_of(config_, data_); }
  bool has(Split split) const override { return data_[split].size() > 0; }
  const BatchSource& training() const override {
    check_has(Split::train);
    return *training_;
  }
  std::unique_ptr<BatchSource> evaluation(Split split) const override { return windows(split, all_windows()); }
  std::unique_ptr<BatchSource> validation() const override { return validation_windows(); }
  std::optional<TextSize> text_size(Split split) const override;

 protected:
  std::vector<std::string> describe_split(Split split) const override;

 private:
  EvaluationWindows::Options all_windows() const {
    return {config_.sequence_length, start_token(config_, tokenizer()), config_.overlap};
  }
  std::unique_ptr<EvaluationWindows> windows(Split split, const EvaluationWindows::Options& options) const {
    check_has(split, fmt::format(", or data.{}_fraction", to_string(split)));
    return std::make_unique<EvaluationWindows>(data_[split], options, batches_);
  }
  std::unique_ptr<EvaluationWindows> validation_windows() const {
    // Over 250,000 bytes of this repository's sources the mean loss has a standard error of 0.01 nats.
    constexpr int64_t enough_tokens = 250'000;
    EvaluationWindows::Options options = all_windows();
    if (config_.validation == ValidationRule::quick) {
      options.overlap = 0;
      options.max_tokens = enough_tokens;
    }
    return windows(Split::valid, options);
  }

  TextSourceConfig config_;
  TextData data_;
  BatchConfig batches_;
  std::optional<TrainingWindows> training_;
};

std::optional<TextSize> TextSource::text_size(Split split) const {
  const TextCorpus& text = data_[split];
  return TextSize{text.bytes, split == Split::train ? std::nullopt : std::optional(text.words)};
}

std::vector<std::string> TextSource::describe_split(Split split) const {
  const TextCorpus& text = data_[split];
  std::vector<std::string> lines{fmt::format("{} files, {} bytes, {} tokens", text.files, text.bytes, text.size())};
  if (split == Split::valid && config_.validation == ValidationRule::quick)
    if (const int64_t read = validation_windows()->counted_tokens(); read < text.size())
      lines.push_back(fmt::format("during training, {} of these tokens are read (data.validation: quick)", read));
  for (size_t i = 0; training_ && i < text.sources.size(); ++i) {
    const TextCorpus::Source& source = text.sources[i];
    const TrainingWindows::Share share = training_->share(i);
    lines.push_back(fmt::format(
        "{}: {} tokens, weight {}: {} windows ({:.2f} %) of an epoch, {:.3g} passes", source.name,
        source.end - source.begin, source.weight, share.windows,
        100 * static_cast<double>(share.windows) / static_cast<double>(training_->examples_per_epoch()), share.passes));
  }
  return lines;
}

}  // namespace

SourceFacts facts(const TextSourceConfig& config) {
  SourceFacts facts;
  facts.longest = config.sequence_length;
  facts.longest_key = "sequence_length";
  facts.overlap = config.overlap;
  facts.has_documents = has_documents(config.documents);
  facts.files = {{"train", config.train}, {"valid", config.valid}, {"test", config.test}};
  facts.added_tokens = facts.has_documents ? 1 : 0;
  return facts;
}

DataReport check_source(const TextSourceConfig& config, const SourceInputs& inputs) {
  check_valid("data", config);
  return check_text(config, inputs);
}

std::unique_ptr<DataSource> make_source(const TextSourceConfig& config, const SourceInputs& inputs) {
  return std::make_unique<TextSource>(config, inputs);
}

}  // namespace capstan
