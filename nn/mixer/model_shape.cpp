#include "nn/mixer/model_shape.hpp"

#include "core/base/error.hpp"

namespace capstan {

void check_heads(int64_t heads, const ModelShape& model, Problems& problems) {
  if (heads < 1 || model.width % heads != 0)
    problems.add("heads", fmt::format("{} heads do not divide the width {}", heads, model.width));
}

}  // namespace capstan
