// What the files of a run must be: `capstan verify`. A new file of a run folder needs a check here.
// tests/cli/runs/test_verify.cpp holds what is found, tests/train/test_damaged_runs.cpp what damage a checkpoint can
// have.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace capstan {

/// A file or a checkpoint of a run.
struct RunPart {
  std::string name;  // below the run's folder
  bool damaged = false;
  std::string what;  // its content, or what is wrong with it
};

/// Reads every file of a run, checkpoints in full, and compares them with their checksums and with each other. Writes
/// nothing. Throws Error when the folder is not that of a run.
std::vector<RunPart> check_run(const std::filesystem::path& folder);

/// A line for the run and a row per part. Returns whether all are whole.
bool print_parts(const std::string& run, const std::vector<RunPart>& parts, std::ostream& out);

}  // namespace capstan
