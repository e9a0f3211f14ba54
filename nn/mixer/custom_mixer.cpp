#include "nn/mixer/custom_mixer.hpp"

#include <map>

#include "core/base/error.hpp"
#include "core/text/join.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

std::map<std::string, MixerMaker>& makers() {
  static std::map<std::string, MixerMaker> all;
  return all;
}

}  // namespace

void register_mixer(const std::string& name, CustomMixerOptions options, MixerMaker make) {
  check(!name.empty() && make != nullptr, "register_mixer: a mixer needs a name and a function that makes it");
  check(makers().emplace(name, std::move(make)).second, "register_mixer: a mixer \"{}\" is already registered", name);
  set_custom_options(name, std::move(options));
}

void register_mixer(const std::string& name,
                    std::function<std::unique_ptr<Mixer>(const Scope& scope, const MixerShape& shape)> make) {
  MixerMaker ignoring_options;
  if (make != nullptr)
    ignoring_options = [make = std::move(make)](const Scope& scope, const MixerShape& shape, const AnyConfig&) {
      return make(scope, shape);
    };
  register_mixer(name, CustomMixerOptions{}, std::move(ignoring_options));
}

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const CustomMixerConfig& config) {
  const auto found = makers().find(config.name);
  if (found == makers().end()) {
    std::vector<std::string> names;
    for (const auto& [name, maker] : makers()) names.push_back(name);
    const std::string known = join(names);
    throw ConfigError(fmt::format("mixer: no custom mixer \"{}\" was registered by this program (registered: {})",
                                  config.name, known.empty() ? "none" : known));
  }
  return found->second(scope, shape, options_of(config));
}

}  // namespace capstan::CAPSTAN_PRECISION
