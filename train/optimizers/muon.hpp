// Momentum orthogonalised by a Newton-Schulz iteration, for matrices; AdamW for all other parameters. Jordan et al.
// 2024, "Muon: an optimizer for hidden layers in neural networks"; learning rate and decay as in Liu et al. 2025,
// arXiv 2502.16982.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/adamw.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

/// For every matrix W (R, C) of the store (is_matrix; stacked matrices are updated separately):
///   M = momentum M + G,   W = (1 - lr weight_decay) W - lr update_rms sqrt(max(R, C)) orthogonal(M)
/// with orthogonal(G + momentum M) for Nesterov. An orthogonal matrix times sqrt(max(R, C)) has elements with a root
/// mean square of 1, so update_rms is that of the update in units of the learning rate, for all shapes. AdamW's updates
/// have about 0.2 to 0.4, so one learning rate serves all parameters.
struct MuonConfig {
  static constexpr const char* type_name = "muon";
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;
  double update_rms = 0.2;
  double weight_decay = 0.1;
  AdamWConfig adamw;

  static std::vector<StateSpec> states();
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, MuonConfig& c) {
  f("momentum", c.momentum, between_below(0, 1),
    "for matrices: share of the sum of gradients that is kept at every step");
  f("nesterov", c.nesterov, any(), "for matrices: use Nesterov momentum, which looks one step ahead");
  f("iterations", c.iterations, between(1, 20), "for matrices: number of Newton-Schulz iterations");
  f("update_rms", c.update_rms, greater(0),
    "for matrices: root mean square of an update's elements at a learning rate of 1; that of AdamW is about 0.2 to "
    "0.4");
  f("weight_decay", c.weight_decay, at_least(0),
    "for matrices: decoupled decay; each step uses this value times the learning rate");
  f("adamw", c.adamw, any(),
    "settings for all other parameters: embeddings, output layers, vectors, tables updated by rows");
}

/// Replaces a row-major matrix U S V^T by about U V^T: X = matrix / its Frobenius norm, then `iterations` times
/// X = a X + (b X X^T + c (X X^T)^2) X with (a, b, c) = (3.4445, -4.7750, 2.0315). Five of them bring singular values
/// above 0.002 of the norm to between 0.68 and 1.21. A matrix of zeros stays. Runs on the calling thread.
void orthogonalise(real* matrix, int64_t rows, int64_t columns, int64_t iterations);

}  // namespace capstan
