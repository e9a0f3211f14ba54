// Keys of texts in the cache: hashes of their content, not computed again while the files are unchanged.
// tests/data/test_token_cache.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/io/progress.hpp"
#include "data/batches/data_source.hpp"
#include "data/files/file_list.hpp"

namespace capstan {

/// Size of the files in bytes, compressed ones counted four times, which is about the size of their text.
size_t size_of_text(const std::vector<FoundFile>& files);

/// A hash of the place, the size and the last change of the files (nanoseconds; inode and change time, so
/// that a replaced file or a date set back is noticed).
std::string state_of_files(const std::vector<FoundFile>& files);

/// XXH3-128 over the names and the content of the files: a part of the name of the text's folder in the cache. The
/// result is noted in `folder` under the files' state, so that they need not be read again; not with CacheUse::read.
std::string key_of_content(const std::vector<FoundFile>& files, const std::string& folder, const LogLine& log,
                           CacheUse use);

}  // namespace capstan
