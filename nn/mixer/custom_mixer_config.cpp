#include "nn/mixer/custom_mixer_config.hpp"

#include <map>

#include "core/base/error.hpp"

namespace capstan {
namespace {

std::map<std::string, CustomMixerOptions>& all_options() {
  static std::map<std::string, CustomMixerOptions> all;
  return all;
}

}  // namespace

void set_custom_options(const std::string& name, CustomMixerOptions options) {
  all_options()[name] = std::move(options);
}

const CustomMixerOptions* find_custom_options(const std::string& name) {
  const auto found = all_options().find(name);
  return found == all_options().end() ? nullptr : &found->second;
}

std::vector<std::string> registered_mixers() {
  std::vector<std::string> names;
  for (const auto& [name, options] : all_options()) names.push_back(name);
  return names;
}

AnyConfig options_of(const CustomMixerConfig& config) {
  const CustomMixerOptions* const registered = find_custom_options(config.name);
  if (registered == nullptr || registered->defaults.same_type(config.options)) return config.options;
  return registered->defaults;
}

bool CustomMixerConfig::has_position_limit() const {
  const CustomMixerOptions* const registered = find_custom_options(name);
  return registered != nullptr && registered->has_position_limit && registered->has_position_limit(options_of(*this));
}

void validate(const CustomMixerConfig& config, const ModelShape& model, Problems& problems) {
  const CustomMixerOptions* const registered = find_custom_options(config.name);
  if (registered == nullptr)
    problems.add("name",
                 fmt::format("this program registers no mixer \"{}\" (nn/mixer/custom_mixer.hpp)", config.name));
  else if (registered->validate)
    registered->validate(options_of(config), model, problems);
}

}  // namespace capstan
