// Momentum orthogonalised by a Newton-Schulz iteration, for matrices; AdamW for all other parameters. Jordan et al.
// 2024, "Muon: an optimizer for hidden layers in neural networks"; learning rate and decay as in Liu et al. 2025,
// arXiv 2502.16982. The bits do not depend on threads or ranks: tests/train/test_muon.cpp and test_ranks.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/elementwise.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

/// For every matrix W (R, C) of the store (is_matrix; stacked matrices are updated separately):
///   M = 0.95 M + G,   W = (1 - lr weight_decay) W - lr 0.2 sqrt(max(R, C)) orthogonal(G + 0.95 M)
/// An orthogonal matrix times sqrt(max(R, C)) has elements with a root mean square of 1, so that of the update is 0.2
/// in units of the learning rate, for all shapes. AdamW's updates have about 0.2 to 0.4, so one learning rate serves
/// all parameters.
struct MuonConfig {
  static constexpr const char* type_name = "muon";
  std::optional<double> weight_decay = 0.1;
  AdamWConfig adamw;

  static std::vector<StateSpec> states();
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, MuonConfig& c) {
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of matrices: each step uses this value times the learning rate; null = chosen for train.minutes, "
    "so that weights forget within three quarters of a pass over the text");
  f("adamw", c.adamw, any(),
    "settings for all but matrices: embeddings, output layers, vectors, tables updated by rows");
}

/// Replaces a row-major matrix U S V^T by about U V^T: X = matrix / its Frobenius norm, then five times
/// X = a X + (b X X^T + c (X X^T)^2) X with (a, b, c) = (3.4445, -4.7750, 2.0315). This brings singular values
/// above 0.002 of the norm to between 0.68 and 1.21. A matrix of zeros stays. Runs on the calling thread. bf16:
/// products may be of factors that are rounded to bf16, as in Jordan et al. 2024, where the CPU has instructions for
/// it.
void orthogonalise(real* matrix, int64_t rows, int64_t columns, bool bf16 = false);

}  // namespace capstan
