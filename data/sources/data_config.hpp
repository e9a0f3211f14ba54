// Everything that a configuration may name as its data: the one list of sources, for run/ and the commands. A source
// that is added needs its include and its entry in the variant (docs/adding.md); the functions follow from it.
// tests/data/test_data_source.cpp tries all sources by this interface.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "data/labelled/labelled_source.hpp"
#include "data/pairs/pair_source.hpp"
#include "data/text/text_source.hpp"

namespace capstan {

/// YAML: data: {type: text, train: [...]}. What each of them must bring: data/batches/data_source.hpp.
using SourceConfig = std::variant<TextSourceConfig, LabelledSourceConfig, PairSourceConfig>;

const char* type_of(const SourceConfig& config);
SourceFacts facts_of(const SourceConfig& config);
/// The types of source for classifiers, or those for language models: "text or pairs".
std::string source_types(bool has_labels);

/// Reads all of the data and says what it finds, without writing anything that stays.
/// Throws Error when too little can be read to count it.
DataReport check_source(const SourceConfig& config, const SourceInputs& inputs);

/// An identity of such data that an earlier version saved, as this version would have saved it: keys that are new have
/// their defaults. `now`: the identity of the data as this version finds them.
std::string renewed_identity(const SourceConfig& config, const std::string& saved, const std::string& now);

/// Reads the data. Throws Error naming file, line and remedy; ConfigError for settings that contradict each other.
std::unique_ptr<DataSource> open_source(const SourceConfig& config, const SourceInputs& inputs);

}  // namespace capstan
