// The registry of a program's optimizers, by the name that train.optimizer.type gives. A name may be registered once.
// tests/run/test_custom_optimizer.cpp.
#include "train/optimizers/custom_optimizer.hpp"

#include <map>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

std::map<std::string, CustomOptimizer>& custom_optimizers() {
  static std::map<std::string, CustomOptimizer> registered;
  return registered;
}

const CustomOptimizer& custom_optimizer(const std::string& name) {
  const auto found = custom_optimizers().find(name);
  if (found != custom_optimizers().end()) return found->second;
  const std::string known = join(CustomOptimizerConfig::type_names());
  throw ConfigError(fmt::format("optimizer: this program registers no optimizer \"{}\" (registered: {})", name,
                                known.empty() ? "none" : known));
}

}  // namespace

void add_custom_optimizer(const CustomOptimizer& optimizer) {
  check(custom_optimizers().emplace(optimizer.type_name, optimizer).second,
        "register_optimizer: an optimizer \"{}\" is already registered", optimizer.type_name);
}

CustomOptimizerConfig::CustomOptimizerConfig(const std::string& name)
    : optimizer(&custom_optimizer(name)), type_name(optimizer->type_name), options(optimizer->defaults) {}

std::vector<std::string> CustomOptimizerConfig::type_names() {
  std::vector<std::string> names;
  for (const auto& [name, optimizer] : custom_optimizers()) names.push_back(name);
  return names;
}

}  // namespace capstan
