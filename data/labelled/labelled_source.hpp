// Labelled texts from TSV, CSV and JSONL files, or from one file per text, for classifiers: the source `labelled`
// (data/batches/data_source.hpp says what a source brings). Which examples are held out, and the fingerprint of all,
// are saved by runs and must not change: tests/data/labelled/test_labelled_source.cpp and test_data_source.cpp.
#pragma once

#include <memory>

#include "data/batches/data_source.hpp"
#include "data/batches/example_set.hpp"
#include "data/labelled/labelled_config.hpp"

namespace capstan {

/// How the texts of the source become examples.
TextRule text_rule(const LabelledSourceConfig& config);
SourceFacts facts(const LabelledSourceConfig& config);
std::unique_ptr<DataSource> make_source(const LabelledSourceConfig& config, const SourceInputs& inputs);
/// Bad rows are errors of the report. Throws Error when too little is left to count.
DataReport check_source(const LabelledSourceConfig& config, const SourceInputs& inputs);

/// Reads, splits and tokenises. `tokenizer`: that of an earlier run (whose classes must be in the config); otherwise
/// one is made from the training texts. Throws Error naming file, line and remedy; if a model classifies the texts,
/// also when they do not have two classes. `log` takes the progress. `scratch`: as in SourceInputs.
ClassificationData load_labelled(const LabelledSourceConfig& config,
                                 std::shared_ptr<const Tokenizer> tokenizer = nullptr, bool classifies = true,
                                 const LogLine& log = {}, const std::string& scratch = "");

}  // namespace capstan
