// Each token has four random words. The first decides whether the token is chosen, the second what the model reads
// there, the third which random token. A change of their use changes every evaluation: tests/models/test_masking.cpp.
#include "models/masking.hpp"

#include "core/base/error.hpp"

namespace capstan {
namespace {

/// True with the probability `share` for a random word; always for a share of 1.
bool drawn(uint32_t word, double share) { return static_cast<double>(word) < share * 4294967296.0; }

}  // namespace

Masking::Masking(const MaskingConfig& config, const RandomKey& key, const Tokens& tokens)
    : config_(config), training_key_(key), evaluation_key_(random_key(0, "masking in evaluation")), tokens_(tokens) {
  check(tokens.maskable > 0, "masking: {} tokens that may be masked", tokens.maskable);
}

MaskedTokens Masking::apply(const Batch& batch, const Segments& segments, bool training, uint64_t step) const {
  check(batch.tokens.shape() == segments.ids().shape() && batch.examples.shape() == Shape{segments.batch()},
        "masking: tokens {} and examples {} do not fit segment ids {}", batch.tokens.shape(), batch.examples.shape(),
        segments.ids().shape());
  const RandomKey& key = training ? training_key_ : evaluation_key_;
  const auto when = static_cast<uint32_t>(training ? step : 0);
  const bool labels = batch.labels.shape() == batch.tokens.shape();
  const auto maskable = static_cast<uint64_t>(tokens_.maskable);
  MaskedTokens masked{batch.tokens.clone(), {}, {}};
  int32_t* const out = masked.tokens.mutable_data();
  for (const auto& span : segments.spans()) {
    const auto example = static_cast<uint32_t>(batch.examples[span.row]);
    for (int64_t t = span.begin; t < span.end; ++t) {
      const int64_t at = span.row * segments.length() + t;
      const RandomWords random = random_words(key, example, static_cast<uint32_t>(t), when, 0);
      const int32_t token = batch.tokens[at];
      if (!drawn(random[0], config_.share) || token >= tokens_.maskable) continue;
      if (labels && batch.labels[at] == ignored_target) continue;
      masked.places.push_back(static_cast<int32_t>(at));
      masked.targets.push_back(token);
      if (drawn(random[1], config_.mask))
        out[at] = tokens_.mask;
      else if (drawn(random[1], config_.mask + config_.random))
        out[at] = static_cast<int32_t>((random[2] * maskable) >> 32);
    }
  }
  return masked;
}

}  // namespace capstan
