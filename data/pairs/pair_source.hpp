// Pairs of texts from TSV, CSV and JSONL files, for language models that write the second after the first.
#pragma once

#include <memory>

#include "data/batches/data_source.hpp"
#include "data/pairs/pair_config.hpp"

namespace capstan {

SourceFacts facts(const PairSourceConfig& config);
std::unique_ptr<DataSource> make_source(const PairSourceConfig& config, const SourceInputs& inputs);
/// Bad rows are errors of the report. Throws Error when too little is left to count.
DataReport check_source(const PairSourceConfig& config, const SourceInputs& inputs);

/// The columns of a file of this format. labels: its rows have targets.
ColumnChoice pair_columns(const PairSourceConfig& config, TableFormat format, bool targets = true);

}  // namespace capstan
