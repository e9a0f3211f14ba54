#include "apps/runs/run_data.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/config/settings.hpp"
#include "data/tokenizers/number_tokenizer.hpp"

namespace capstan {

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

Split split_called(const std::string& name) {
  for (const Split split : {Split::train, Split::valid, Split::test})
    if (name == to_string(split)) return split;
  throw ConfigError(fmt::format("--split: {} is none of train, valid, test", name));
}

namespace {

/// The settings of a source that decide what an example is. Where the files lie does not: their content is in the
/// fingerprint, as are labels and what the tokenizer makes of a text.
std::string settings_text(const SourceConfig& source) {
  const Settings settings = std::visit([](const auto& config) { return settings_of(config); }, source);
  static const std::vector<std::string> places = {"train",
                                                  "valid",
                                                  "test",
                                                  "include",
                                                  "exclude",
                                                  "classes",
                                                  "classes_file",
                                                  "tokenizer.vocabulary",
                                                  "tokenizer.model",
                                                  "tokenizer.normalise",
                                                  "tokenizer.case_fold",
                                                  "first_label",
                                                  "overlap",
                                                  "documents",
                                                  "on_error",
                                                  "cache",
                                                  "cache_above_mb"};
  std::string text;
  for (const auto& [key, value] : settings) {
    const bool is_place = std::any_of(places.begin(), places.end(), [&key = key](const std::string& place) {
      return key == place || key.rfind(place + ".", 0) == 0;
    });
    if (!is_place) text += key + ": " + value + "\n";
  }
  return text;
}

/// Where each source lies, which the fingerprint of the content does not tell.
std::string sources_text(const TextCorpus& corpus) {
  std::string text;
  for (size_t i = 0; i < corpus.sources.size(); ++i)
    text += fmt::format("source {}: {} tokens\n", i, corpus.sources[i].end - corpus.sources[i].begin);
  return text;
}

/// A line per source.
std::vector<std::string> mixture_lines(const TextCorpus& corpus, const TrainingWindows& windows) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < corpus.sources.size(); ++i) {
    const TextCorpus::Source& source = corpus.sources[i];
    const TrainingWindows::Share share = windows.share(i);
    lines.push_back(fmt::format(
        "train: {}: {} tokens, weight {}: {} windows ({:.2f} %) of an epoch, {:.3g} passes", source.name,
        source.end - source.begin, source.weight, share.windows,
        100 * static_cast<double>(share.windows) / static_cast<double>(windows.examples_per_epoch()), share.passes));
  }
  return lines;
}

ClassificationData load_classification(const SourceConfig& source, std::shared_ptr<const Tokenizer> tokenizer,
                                       const std::vector<std::string>& classes) {
  if (const auto* listops = std::get_if<ListOpsConfig>(&source)) return make_listops(*listops);
  LabelledSourceConfig config = std::get<LabelledSourceConfig>(source);
  if (!classes.empty()) config.classes = classes;
  return load_labelled(config, std::move(tokenizer));
}

}  // namespace

RunData::RunData(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                 const std::vector<std::string>& classes)
    : config_(config), is_text_(std::holds_alternative<TextSourceConfig>(config.data)) {
  const BatchConfig batches{config.train.batch_size, config.train.batch_tokens};
  const auto seed = static_cast<uint64_t>(config.seed);
  std::string sources, fingerprint;
  if (is_text_) {
    const auto& source = std::get<TextSourceConfig>(config.data);
    const Tell tell =
        config.train.progress == ProgressMode::none ? Tell() : [](const std::string& line) { spdlog::info(line); };
    text_ = load_text(source, std::move(tokenizer), tell);
    tokenizer_ = text_.tokenizer;
    fingerprint = text_.fingerprint;
    auto windows = std::make_unique<TrainingWindows>(
        text_.train, TrainingWindows::Options{source.sequence_length, source.windows, seed}, batches);
    sources = sources_text(text_.train);
    mixture_ = mixture_lines(text_.train, *windows);
    training_ = std::move(windows);
  } else if (recall_ = std::get_if<AssociativeRecallConfig>(&config.data); recall_ != nullptr) {
    tokenizer_ = std::make_shared<NumberTokenizer>(recall_->vocabulary);
    fingerprint = AssociativeRecall(*recall_).fingerprint();
    training_ = std::make_unique<RecallBatches>(*recall_, to_string(Split::train), recall_->train, batches, seed);
  } else {
    labelled_ = load_classification(config.data, std::move(tokenizer), classes);
    tokenizer_ = labelled_.tokenizer;
    classes_ = labelled_.classes;
    fingerprint = labelled_.fingerprint();
    training_ = std::make_unique<BucketedBatches>(labelled_.train, batches, seed);
  }
  identity_ = settings_text(config.data) + sources + "fingerprint of the content: " + fingerprint + "\n";
}

const ExampleSet& RunData::examples(Split split) const {
  return split == Split::train ? labelled_.train : split == Split::valid ? labelled_.valid : labelled_.test;
}

std::vector<int64_t> RunData::class_counts() const {
  return labelled_.train.class_counts(static_cast<int64_t>(classes_.size()));
}

const TextCorpus& RunData::corpus(Split split) const {
  if (!is_text_) throw Error("data: this is not text");
  const TextCorpus& corpus = split == Split::train ? text_.train : split == Split::valid ? text_.valid : text_.test;
  if (corpus.size() == 0)
    throw Error(fmt::format("data: there is no {} split: give data.{}, or data.{}_fraction", to_string(split),
                            to_string(split), to_string(split)));
  return corpus;
}

int64_t RunData::sequences(Split split) const {
  return split == Split::train ? recall_->train : split == Split::valid ? recall_->valid : recall_->test;
}

bool RunData::has(Split split) const {
  if (recall_ != nullptr) return sequences(split) > 0;
  if (!is_text_) return examples(split).size() > 0;
  return (split == Split::train ? text_.train : split == Split::valid ? text_.valid : text_.test).size() > 0;
}

std::unique_ptr<BatchSource> RunData::evaluation(Split split, bool per_file) const {
  const BatchConfig batches{config_.train.batch_size, config_.train.batch_tokens};
  if (is_text_) {
    const auto& source = std::get<TextSourceConfig>(config_.data);
    return std::make_unique<EvaluationWindows>(
        corpus(split),
        EvaluationWindows::Options{source.sequence_length, start_token(source, *tokenizer_), source.overlap, per_file},
        batches);
  }
  if (per_file) throw Error("data: only text comes from files");
  if (!has(split))
    throw Error(fmt::format("data: there is no {} split: give data.{}", to_string(split), to_string(split)));
  if (recall_ != nullptr)
    return std::make_unique<RecallBatches>(*recall_, to_string(split), sequences(split), batches, std::nullopt);
  return std::make_unique<OrderedBatches>(examples(split), batches);
}

const std::vector<std::string>& RunData::left_out() const { return is_text_ ? text_.left_out : labelled_.left_out; }

std::vector<std::string> RunData::description() const {
  std::vector<std::string> lines = left_out();
  lines.push_back(fmt::format("tokenizer: {}, {} tokens", tokenizer_->kind(), tokenizer_->vocabulary_size()));
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    if (!has(split)) continue;
    if (is_text_) {
      const TextCorpus& text = corpus(split);
      lines.push_back(fmt::format("{}: {} files, {} bytes, {} tokens", to_string(split), text.files.size(),
                                  text.bytes(), text.size()));
      if (split == Split::train) lines.insert(lines.end(), mixture_.begin(), mixture_.end());
    } else if (recall_ != nullptr) {
      lines.push_back(fmt::format("{}: {} sequences of {} tokens, {} of them asked for", to_string(split),
                                  sequences(split), recall_->length, recall_->pairs));
    } else {
      const ExampleSet& set = examples(split);
      lines.push_back(fmt::format("{}: {} examples of {} classes, {} tokens, the longest {}", to_string(split),
                                  set.size(), classes_.size(), set.token_count(), set.longest()));
    }
  }
  return lines;
}

}  // namespace capstan
