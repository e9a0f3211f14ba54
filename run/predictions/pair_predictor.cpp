// Completions of prompts, by a language model that was trained on pairs.
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/command_line/output.hpp"
#include "core/base/error.hpp"
#include "run/predictions/predictor.hpp"

namespace capstan {
namespace {

class PairPredictor final : public Predictor {
 public:
  PairPredictor(const SavedRun& run, const PredictOptions& options)
      : run_(run), options_(options), completions_(options.completions) {
    completions_.best = std::max<int64_t>(1, options.top_k);
    completions_.batch = options.batch_size;
    check_options(completions_);
  }

  void add(InputText text) override {
    try {
      prompts_.push_back(prompt_of(run_, text.text, text.place));
    } catch (const Error&) {
      flush();
      throw;
    }
    texts_.push_back(std::move(text));
    if (static_cast<int64_t>(prompts_.size()) >= options_.batch_size) flush();
  }

  void flush() override {
    if (prompts_.empty()) return;
    const auto written = complete(run_, prompts_, completions_, count_);
    count_ += static_cast<int64_t>(prompts_.size());
    for (size_t i = 0; i < written.size(); ++i) write(texts_[i], written[i]);
    flush_output();
    prompts_.clear();
    texts_.clear();
  }

  std::string summary() const override { return options_.errors ? errors_text(wrong_, count_) : ""; }

 private:
  void write(const InputText& text, const std::vector<Completion>& completions) {
    if (options_.errors) {
      // Both through the tokenizer: it may change case and spaces.
      if (completions.front().text == run_.tokenizer->decode(run_.tokenizer->encode(text.label, text.place))) return;
      ++wrong_;
    }
    if (options_.format == "jsonl") {
      nlohmann::ordered_json line{{"completion", completions.front().text},
                                  {"log_probability", completions.front().log_probability},
                                  {"finished", completions.front().finished}};
      if (options_.top_k > 0)
        for (const Completion& one : completions)
          line["completions"].push_back({{"completion", one.text}, {"log_probability", one.log_probability}});
      if (options_.errors) {
        line["target"] = text.label;
        line["place"] = text.place;
      }
      line["prompt"] = text.text;
      std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
      return;
    }
    if (options_.errors) {
      std::cout << fmt::format("{}\t{}\t{}\t{}\n", tsv_field(text.label), tsv_field(completions.front().text),
                               text.place, tsv_field(text.text));
      return;
    }
    std::string line;
    for (const Completion& one : completions) {
      if (!line.empty()) line += '\t';
      line += tsv_field(one.text);
      if (options_.top_k > 0) line += fmt::format("\t{:.4f}", one.log_probability);
    }
    std::cout << line << (options_.echo ? '\t' + tsv_field(text.text) : "") << '\n';
  }

  const SavedRun& run_;
  const PredictOptions& options_;
  CompletionOptions completions_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<InputText> texts_;
  int64_t count_ = 0, wrong_ = 0;
};

}  // namespace

std::unique_ptr<Predictor> make_pair_predictor(const SavedRun& run, const PredictOptions& options) {
  return std::make_unique<PairPredictor>(run, options);
}

}  // namespace capstan
