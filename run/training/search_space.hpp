// What `capstan autotune` tries: the values of a sweep or, without one, the usual ones for a model. search.cpp trains
// them. tests/run/test_search_space.cpp.
#pragma once

#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

/// The run of the configuration as it is.
constexpr const char* given_run = "default";

/// The configuration as it is, and every other one of its sweep or of default_search_space(). Throws ConfigError for
/// runs that cannot be trained, shortened or compared. `force`: whatever memory they need.
std::vector<RunConfig> candidates_of(const ConfigOptions& options, bool force);

/// Overrides with the values of a sweep, such as "sweep.train.lr=[5e-4, 1e-3, 2e-3]", for a configuration that has no
/// key `sweep`: of a linear classifier its n-grams; else rates and dropout around those of the configuration.
std::vector<std::string> default_search_space(const RunConfig& config);

/// The configuration with 1 / divisor of its steps or, if it has none, of its labelled examples.
RunConfig shortened(RunConfig config, int64_t divisor);

/// Adds a problem if trials cannot be shortened, or would have no validation to be compared by.
void check_tunable(const RunConfig& config, Problems& problems);

/// A key in which the configurations differ although their validation results then cannot be compared, or differ by
/// chance alone: the data, the seed. Empty if there is none.
std::string incomparable_key(const RunConfig& a, const RunConfig& b);

}  // namespace capstan
