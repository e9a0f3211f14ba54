// Which runs can be compared: their records in groups that were evaluated on the same texts, the best first.
// tests/run/test_run_table.cpp and tests/cli/runs/test_eval.cpp hold it.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// Records of run_folders(), by comparable(), and of each group the best first: by the measure that train.monitor
/// names, by validation loss if the runs differ in that (with a warning). Those without validation follow, sorted by
/// training loss. A folder without a record is left out with a warning; plain files are ignored, since runs/* may match
/// some. Throws Error when no record is left.
std::vector<RunRecord> read_records(const std::vector<std::string>& folders);

/// Groups of runs whose figures can be compared: with one type of model, evaluated on the same texts as far as files,
/// split and number of texts tell. Groups and the runs in them are in the order of `runs`; those without a validation
/// so far are with the first that will have the same one.
std::vector<std::vector<RunRecord>> comparable(const std::vector<RunRecord>& runs);

/// The names of the files that a key of `data` lists, without their folders; "" if there are none.
std::string file_names(const RunConfig& config, const std::string& key);
/// The texts of a run's best validation: "5452 texts, cross-validated", "1090 texts held out" of the training data,
/// "500 texts of valid.tsv". Empty if there is none. `whole`: with the names of the training files.
std::string evaluated_on(const RunRecord& run, bool whole = true);

}  // namespace capstan
