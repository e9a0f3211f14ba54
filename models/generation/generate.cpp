// The loop over several prompts of one length: their texts share a decode state, a row each, until they end. Windows
// are read one text at a time, because a prefill rounds differently from steps and in company.
#include "models/generation/generate.hpp"

#include <algorithm>

#include "core/array/selected_rows.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "models/generation/written_text.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The model, its state and the texts so far.
class Generation {
 public:
  Generation(const Model& model, const std::vector<Prompt>& prompts, const GenerateOptions& options)
      : model_(model),
        options_(options),
        state_(model.make_state(static_cast<int64_t>(prompts.size()), options.weights)),
        reader_(model.make_state(1, options.weights)),
        out_(prompts.size()) {
    reader_.share(state_);
    for (size_t i = 0; i < prompts.size(); ++i) {
      open_.push_back({i, WrittenText(model, prompts[i], options)});
      check(prompts[i].tokens.size() == prompts[0].tokens.size(),
            "generate: prompts of {} and {} tokens; give one length at a time", prompts[0].tokens.size(),
            prompts[i].tokens.size());
    }
  }

  std::vector<Generated> run() {
    if (options_.max_tokens == 0) return std::move(out_);
    for (Array logits = read();; logits = read()) {
      std::vector<int64_t> kept;
      std::vector<int32_t> tokens(open_.size());
      parallel_units(static_cast<int64_t>(open_.size()), [&](int64_t row) {
        const auto at = static_cast<size_t>(row);
        tokens[at] = open_[at].text.choose(logits.rows(row, row + 1));
      });
      for (size_t row = 0; row < open_.size(); ++row) {
        const auto at = static_cast<int64_t>(row);
        if (goes_on(open_[row], tokens[row], logits.rows(at, at + 1)))
          kept.push_back(at);
        else
          out_[open_[row].prompt] = std::move(open_[row].text.result());
      }
      if (kept.empty()) return std::move(out_);
      keep(kept);
    }
  }

 private:
  struct Open {
    size_t prompt;  // its index
    WrittenText text;
  };

  /// Adds the token to its text; false when the text ends here.
  bool goes_on(Open& open, int32_t token, const Array& logits) {
    const WrittenText::Added added = open.text.add(token, logits);
    if (added == WrittenText::Added::end) return false;
    if (options_.on_token && !options_.on_token(static_cast<int64_t>(open.prompt), token)) {
      open.text.result().end = GenerateEnd::callback;
      return false;
    }
    return added == WrittenText::Added::goes_on;
  }

  /// Goes on with the texts in these rows alone, whose states move up to the places of those that have ended.
  void keep(const std::vector<int64_t>& rows) {
    std::vector<Open> kept;
    for (size_t to = 0; to < rows.size(); ++to) {
      if (rows[to] != static_cast<int64_t>(to)) state_.copy(static_cast<int64_t>(to), state_, rows[to]);
      kept.push_back(std::move(open_[static_cast<size_t>(rows[to])]));
    }
    open_ = std::move(kept);
  }

  /// The logits after the texts: all take a step, or all have another window, because they have one length.
  Array read() {
    if (open_[0].text.read() == 0) return read_windows();
    std::vector<int32_t> tokens;
    for (Open& open : open_) {
      tokens.push_back(open.text.window().back());
      open.text.has_read(static_cast<int64_t>(open.text.window().size()));
    }
    return model_.step(Ids(Shape{static_cast<int64_t>(tokens.size())}, tokens), state_);
  }

  /// Reads the windows, each by itself, so that its bits do not depend on the others; equal ones once.
  Array read_windows() {
    if (open_[0].text.begin() > 0 && !slid_ && options_.on_slide) options_.on_slide();
    slid_ = open_[0].text.begin() > 0;
    DecodeState& reader = state_.batch() == 1 ? state_ : reader_;
    Array logits(Shape{static_cast<int64_t>(open_.size()), model_.vocabulary()}), window_logits;
    for (size_t row = 0; row < open_.size(); ++row) {
      WrittenText& text = open_[row].text;
      if (row == 0 || text.window() != open_[row - 1].text.window())
        window_logits = read_window(model_, text, reader);
      else
        text.has_read(static_cast<int64_t>(text.window().size()));
      state_.copy(static_cast<int64_t>(row), reader, 0);
      copy_row(logits, static_cast<int64_t>(row), window_logits, 0);
    }
    return logits;
  }

  const Model& model_;
  const GenerateOptions& options_;
  DecodeState state_;   // row i is that of open_[i]
  DecodeState reader_;  // of one text, to read windows
  std::vector<Open> open_;
  std::vector<Generated> out_;
  bool slid_ = false;
};

}  // namespace

int64_t window_begin(int64_t last, std::optional<int64_t> limit) {
  if (!limit || last < *limit) return 0;
  const int64_t step = *limit - (std::max<int64_t>(1, *limit / 2) - 1);
  return ((last - *limit) / step + 1) * step;
}

std::vector<Generated> generate_together(const Model& model, const std::vector<Prompt>& prompts,
                                         const GenerateOptions& options) {
  return prompts.empty() ? std::vector<Generated>() : Generation(model, prompts, options).run();
}

Generated generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  return generate_together(model, {{prompt, 0}}, options).front();
}

}  // namespace capstan::CAPSTAN_PRECISION
