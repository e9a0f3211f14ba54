// Everything a configuration may name as its data.
#pragma once

#include <variant>

#include "data/generated/associative_recall.hpp"
#include "data/generated/listops.hpp"
#include "data/labelled/labelled_source.hpp"
#include "data/text/text_source.hpp"

namespace capstan {

/// YAML: data: {type: text, train: [...]}.
using SourceConfig = std::variant<TextSourceConfig, LabelledSourceConfig, ListOpsConfig, AssociativeRecallConfig>;

}  // namespace capstan
