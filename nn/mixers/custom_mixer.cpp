#include "nn/mixers/custom_mixer.hpp"

#include <map>

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

std::map<std::string, MixerMaker>& makers() {
  static std::map<std::string, MixerMaker> all;
  return all;
}

}  // namespace

void register_mixer(const std::string& name, MixerMaker make) {
  check(!name.empty() && make != nullptr, "register_mixer: a mixer needs a name and a function that makes it");
  check(makers().emplace(name, std::move(make)).second, "register_mixer: there is a mixer \"{}\" already", name);
}

std::vector<std::string> registered_mixers() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

std::unique_ptr<Mixer> make_custom_mixer(const Scope& scope, const MixerShape& shape, const CustomMixerConfig& config) {
  const auto found = makers().find(config.name);
  if (found == makers().end()) {
    std::string known;
    for (const std::string& name : registered_mixers()) known += (known.empty() ? "" : ", ") + name;
    throw ConfigError(fmt::format("mixer: no custom mixer \"{}\" was registered by this program (registered: {})",
                                  config.name, known.empty() ? "none" : known));
  }
  return found->second(scope, shape);
}

}  // namespace capstan::CAPSTAN_PRECISION
