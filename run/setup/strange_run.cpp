#include "run/setup/strange_run.hpp"

#include "core/io/file.hpp"

namespace capstan {

namespace fs = std::filesystem;

void refuse_links_outside(const fs::path& folder, const char* remedy) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(folder, error);
  for (fs::recursive_directory_iterator entry(inside, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_symlink(unknown)) continue;
    const fs::path way = fs::weakly_canonical(entry->path(), unknown).lexically_relative(inside);
    if (unknown || way.empty() || *way.begin() == "..")
      throw Error(fmt::format("{}: links to {}, outside of the run: {}", entry->path().string(),
                              fs::read_symlink(entry->path(), unknown).string(), remedy));
  }
  if (error && error.value() != ENOENT && error.value() != ENOTDIR)
    throw_file_error("list", folder.string(), error.value());
}

bool are_known(const SavedRun& run, const DataSource& data, Split split) {
  const SourceFacts facts = facts_of(run.config.data);
  if (facts.files.empty()) return true;
  if (split == Split::test || !run.state) return false;
  const auto saved = run.state->identity.find("data");
  const std::string now = data.identity();
  return saved != run.state->identity.end() && renewed_identity(run.config.data, saved->second, now) == now;
}

}  // namespace capstan
