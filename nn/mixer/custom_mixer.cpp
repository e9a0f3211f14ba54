// The table of mixers that a program has registered. tests/nn/systems/test_register_mixer.cpp and
// tests/run/test_custom_mixer.cpp.
#include "nn/mixer/custom_mixer.hpp"

#include <map>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

std::map<std::string, CustomMixer>& custom_mixers() {
  static std::map<std::string, CustomMixer> mixers;
  return mixers;
}

const CustomMixer& custom_mixer(const std::string& name) {
  const auto entry = custom_mixers().find(name);
  if (entry != custom_mixers().end()) return entry->second;
  const std::string known = join(CustomMixerConfig::type_names());
  throw ConfigError(fmt::format("mixer: this program registers no mixer \"{}\" (registered: {})", name,
                                known.empty() ? "none" : known));
}

}  // namespace

void add_custom_mixer(const CustomMixer& mixer) {
  check(custom_mixers().emplace(mixer.type_name, mixer).second, "register_mixer: a mixer \"{}\" is already registered",
        mixer.type_name);
}

CustomMixerConfig::CustomMixerConfig(const std::string& name)
    : mixer(&custom_mixer(name)), type_name(mixer->type_name), options(mixer->defaults) {}

std::vector<std::string> CustomMixerConfig::type_names() {
  std::vector<std::string> names;
  for (const auto& [name, mixer] : custom_mixers()) names.push_back(name);
  return names;
}

}  // namespace capstan
