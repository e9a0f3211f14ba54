// Functions of SourceConfig, the variant of all sources of data, for code that does not know the source's type.
// tests/data/test_data_source.cpp.
#include "data/sources/data_config.hpp"

#include <vector>

#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// The names of the sources of data whose SourceFacts, with default options, `is_meant` accepts.
template <class IsMeant, class... Cases>
std::vector<std::string> types_of(const IsMeant& is_meant, const std::variant<Cases...>&) {
  std::vector<std::string> types;
  const auto add = [&](const char* type, const SourceFacts& facts) {
    if (is_meant(facts)) types.emplace_back(type);
  };
  (add(Cases::type_name, facts(Cases{})), ...);
  return types;
}

/// The report on a source that has no check of its own: what the log says about its splits.
template <class Config>
DataReport check_source(const Config& config, const SourceInputs& inputs) {
  DataTable table{"splits", "Splits", {"split"}, {}};
  for (const std::string& line : make_source(config, inputs)->description()) table.rows.push_back({line});
  return {{table}, {}, {}};
}

}  // namespace

const char* type_of(const SourceConfig& config) {
  return std::visit([](const auto& source) { return std::decay_t<decltype(source)>::type_name; }, config);
}

SourceFacts facts_of(const SourceConfig& config) {
  return std::visit([](const auto& source) { return facts(source); }, config);
}

std::string source_types(bool has_labels) {
  return join_first(types_of([&](const SourceFacts& facts) { return facts.has_labels == has_labels; }, SourceConfig{}),
                    " or ");
}

DataReport check_source(const SourceConfig& config, const SourceInputs& inputs) {
  return std::visit([&](const auto& source) { return check_source(source, inputs); }, config);
}

std::string renewed_identity(const SourceConfig& config, const std::string& saved, const std::string& now) {
  const Settings defaults =
      std::visit([](const auto& source) { return settings_of(std::decay_t<decltype(source)>{}); }, config);
  return renewed_identity(saved, now, defaults);
}

std::unique_ptr<DataSource> open_source(const SourceConfig& config, const SourceInputs& inputs) {
  return std::visit([&](const auto& source) { return make_source(source, inputs); }, config);
}

}  // namespace capstan
