// The parts of a model and their cost: the table of `capstan inspect`, and what run/setup expects a run to take.
// tests/models/test_summary.cpp compares it with the parameters made and the memory that a forward pass holds.
#pragma once

#include <string>
#include <vector>

#include "models/model.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// One part of a model. Costs are per token.
struct LayerSummary {
  std::string name;   // "blocks.0"
  std::string mixer;  // "aft-local", as mixer_label() says; empty for other parts
  int64_t parameters = 0;
  double flops = 0;             // forward pass
  double decode_flops = 0;      // one step of a generation at position `length`
  double activation_bytes = 0;  // kept for the backward pass
  int64_t state_bytes = 0;      // decode state of one sequence at `length` tokens
};

/// The parts of a model in the order in which they were made, and their totals.
struct ModelSummary {
  int64_t length = 0;  // tokens per document that the costs are for
  bool decodes = false;
  std::vector<LayerSummary> layers;

  int64_t frozen = 0;                  // parameters that are not trained
  std::vector<std::string> estimated;  // mixers without a cost(): only their products with parameters are counted

  /// The part called `name`; adds one if there is none.
  LayerSummary& part(const std::string& name);

  int64_t parameters() const;
  double flops() const;           // per token, forward
  double decode_flops() const;    // of one step of a generation at position `length`
  double training_flops() const;  // per token: 3 times flops() (4 for blocks that are recomputed)
  double activation_bytes() const;
  int64_t state_bytes() const;

  bool recompute = false;
  std::string text;  // describes a model whose costs are not those of layers; empty: the table does
};

/// The parameters of each part and the products with its weight matrices.
ModelSummary summarize_parameters(const ParamStore& store, int64_t length);
/// The summary of embedding, blocks and final norm, without the output: where a model's own summary() begins.
ModelSummary summarize_stack(const Stack& stack, const ParamStore& store, int64_t length, DecodeStates states);

inline ModelSummary summarize(const Model& model, const ParamStore& store, int64_t length) {
  return model.summary(store, length, DecodeStates::measured);
}
/// Bytes per token of documents of `length` tokens that the forward pass keeps for the backward pass: the sum of
/// activation_bytes. The store needs no memory (ParamMemory::none).
inline double kept_bytes(const Model& model, const ParamStore& store, int64_t length) {
  return model.summary(store, length, DecodeStates::left_out).activation_bytes();
}

/// The model's own text, or a table with a line per part and one of totals.
std::string to_text(const ModelSummary& summary);

}  // namespace capstan::CAPSTAN_PRECISION
