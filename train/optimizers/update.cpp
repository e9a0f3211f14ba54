// Allocates what an optimizer keeps for the elements that a rank owns, in one block without gaps, and finds a
// parameter's part of it. Neighbours with one learning rate are joined, so that kernels get long pieces.
// tests/train/test_optimizer.cpp.
#include "train/optimizers/update.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"

namespace capstan {

OptimizerState::OptimizerState(const StateSpec& spec, const ParamStore& params, const std::vector<Elements>& owned)
    : name_(spec.name), holds_(spec.holds) {
  stop_point();
  check(params.finalized(), "optimizer: the parameter store is not finalized");
  const std::vector<const Param*> ordered = by_place(params);
  int64_t size = 0;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (!holds(*ordered[i])) continue;
    const double factor = ordered[i]->lr_factor;
    const Elements held{ordered[i]->offset, i + 1 < ordered.size() ? ordered[i + 1]->offset : params.flat_size()};
    for (const Elements& part : owned) {
      const Elements here = common(held, part);
      if (here.size() == 0) continue;
      if (!pieces_.empty() && pieces_.back().end == here.begin && pieces_.back().lr_factor == factor)
        pieces_.back().end = here.end;
      else
        pieces_.push_back({here.begin, here.end, size, factor});
      size += here.size();
    }
  }
  block_ = Array::zeros(Shape{size});
}

ParamPart<const real> OptimizerState::of(const Param& param) const {
  for (const Piece& piece : pieces_) {
    const Elements here = common({piece.begin, piece.end}, {param.offset, param.offset + param.var.size()});
    if (here.size() > 0)
      return {block_.data() + piece.at + (here.begin - piece.begin), here.begin - param.offset,
              here.end - param.offset};
  }
  return {};
}

ParamPart<real> OptimizerState::of(const Param& param) {
  const ParamPart<const real> part = std::as_const(*this).of(param);
  return {const_cast<real*>(part.values), part.begin, part.end};
}

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
