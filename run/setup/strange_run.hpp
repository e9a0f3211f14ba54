// A run that may be from a stranger: what it names outside of its folder is not used unless it is known.
#pragma once

#include <filesystem>

#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

/// Throws Error if a link in the run's folder leads out of it.
void refuse_links_outside(const std::filesystem::path& folder,
                          const char* remedy = "if the run is from somebody you trust, add --trust");

/// Do the files of the data hold what the run was trained with, according to the fingerprint in the state of its
/// checkpoint? A fingerprint is of training and validation data, so the answer for a test set that is read from files
/// is no.
bool are_known(const SavedRun& run, const DataSource& data, Split split);

/// For --trust.
constexpr const char* trust_help =
    "the run is from somebody you trust: follow its links out of its folder, and use files that are not known to be "
    "those of "
    "its training";

}  // namespace capstan
