// The choice of train.precision: auto, and the agreement of ranks on it. tests/run/test_precision.cpp.
#include "run/training/precision.hpp"

#include <vector>

#include "core/base/error.hpp"
#include "core/products/gemm_backend.hpp"

namespace capstan {
namespace {

std::string bf16_refusal() {
  TrainConfig config;
  config.precision = Precision::bf16;
  return precision_obstacle(config);
}

PrecisionChoice float32_since(const std::string& reason) {
  return {Precision::float32, "train.precision: auto is float32: " + reason};
}

}  // namespace

PrecisionChoice choose_precision(const PrecisionTimes& seconds) {
  constexpr double worthwhile_share = 0.9;
  const Precision chosen = seconds.bf16 <= worthwhile_share * seconds.float32 ? Precision::bf16 : Precision::float32;
  return {chosen, fmt::format("train.precision: auto is {}: a step takes {:.3g} s in float32 and {:.3g} s in bf16",
                              enum_name(chosen), seconds.float32, seconds.bf16)};
}

PrecisionChoice choose_precision(const RunConfig& config, const std::function<PrecisionTimes()>& times) {
  if (config.train.kernels == KernelChoice::portable) return float32_since("portable kernels gain nothing by bf16");
  // A CPU that only emulates bf16 has an obstacle, too: emulation is never faster.
  if (const std::string obstacle = bf16_obstacle(); !obstacle.empty())
    return float32_since(obstacle.substr(0, obstacle.rfind(':')));
  return choose_precision(times());
}

Precision agreed_precision(Communicator& ranks, Precision chosen) {
  if (ranks.size() == 1) return chosen;
  const bool bf16 = ranks.broadcast(chosen == Precision::bf16 ? "bf16" : "") == "bf16";
  if (!bf16) return Precision::float32;
  const std::vector<std::string> obstacles = ranks.gather(bf16_refusal());
  for (size_t rank = 0; rank < obstacles.size(); ++rank)
    if (!obstacles[rank].empty())
      throw Error(fmt::format("train.precision: {} has chosen bf16, in which {} cannot train: {}", ranks.name_of(0),
                              ranks.name_of(static_cast<int>(rank)), obstacles[rank]));
  return Precision::bf16;
}

}  // namespace capstan
