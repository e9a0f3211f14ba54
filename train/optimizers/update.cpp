#include "train/optimizers/update.hpp"

#include <utility>

#include "core/base/error.hpp"

namespace capstan {

OptimizerState::OptimizerState(const StateSpec& spec, const ParamStore& params) : name_(spec.name) {
  check(params.finalized(), "optimizer: the parameter store is not finalized");
  std::vector<const Param*> ordered;
  for (const Param& param : params.params()) ordered.push_back(&param);
  std::sort(ordered.begin(), ordered.end(), [](const Param* a, const Param* b) { return a->offset < b->offset; });
  int64_t size = 0;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (!spec.holds(*ordered[i])) continue;
    const int64_t begin = ordered[i]->offset;
    const int64_t end = i + 1 < ordered.size() ? ordered[i + 1]->offset : params.flat_size();
    if (!pieces_.empty() && pieces_.back().end == begin)
      pieces_.back().end = end;
    else
      pieces_.push_back({begin, end, size});
    size += end - begin;
  }
  block_ = Array::zeros(Shape{size});
}

const real* OptimizerState::of(const Param& param) const {
  for (const Piece& piece : pieces_)
    if (piece.begin <= param.offset && param.offset < piece.end)
      return block_.data() + piece.at + (param.offset - piece.begin);
  return nullptr;
}

real* OptimizerState::of(const Param& param) { return const_cast<real*>(std::as_const(*this).of(param)); }

std::vector<kernels::TableRows> rows_with_gradient(const ParamStore& params) {
  std::vector<kernels::TableRows> tables;
  for (const Param& param : params.params()) {
    if (param.table < 0) continue;
    const RowGrads& grads = params.row_grads(param);
    tables.push_back({param.offset, param.var.dim(1), grads.rows().data(), grads.values().data(), grads.count(),
                      param.options.decay});
  }
  return tables;
}

}  // namespace capstan
