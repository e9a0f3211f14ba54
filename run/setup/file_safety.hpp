// Which files a command may use around a run. It reads nothing outside the folder of a run that may be from a stranger,
// unless it is known to be what the run was trained with; it writes to no file that belongs to a run or is read.
// Commands and run/{exports,imports,training} call it; tests/cli/runs/test_strange_runs.cpp and test_own_files.cpp hold
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/setup/saved_run.hpp"

namespace capstan {

/// Throws Error if a link in the run's folder leads out of it.
void refuse_links_outside(const std::filesystem::path& folder,
                          const char* remedy = "if the run is from somebody you trust, add --trust");

/// Do the files of the data hold what the run was trained with, according to the fingerprint in the state of its
/// checkpoint? A fingerprint is of training and validation data, so the answer for a test set that is read from files
/// is no.
bool has_data_of_training(const SavedRun& run, const DataSource& data, Split split);

/// For --trust.
constexpr const char* trust_help =
    "the run is from somebody you trust: follow its links out of its folder, and use files that are not known to be "
    "those of "
    "its training";

/// Throws ConfigError where `path` is, or would be, a file that belongs to a run: its configuration, tokenizer, records
/// and all below its checkpoints. Other files may be in the folder of a run, such as its report.
void refuse_file_of_run(const std::filesystem::path& path);

/// Throws Error unless `path`, the value of --output, may be written: it is no folder, link or pipe, no file of a run
/// and none of `inputs`.
void check_output_file(const std::string& path, const std::vector<std::string>& inputs = {});

/// Throws ConfigError where --output is one of the files of the data of the run in `folder`, seen from here or from
/// where it was trained.
void refuse_data_file(const std::string& path, const RunConfig& config, const std::filesystem::path& folder);

}  // namespace capstan
