// Everything a configuration may name as its data.
#pragma once

#include <variant>

#include "data/associative_recall.hpp"
#include "data/labelled_source.hpp"
#include "data/listops.hpp"
#include "data/text_source.hpp"

namespace capstan {

/// YAML: data: {type: text, train: [...]}.
using SourceConfig = std::variant<TextSourceConfig, LabelledSourceConfig, ListOpsConfig, AssociativeRecallConfig>;

}  // namespace capstan
