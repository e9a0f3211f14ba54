// What is checked before training begins, for one message with all problems: files, memory, and what the machine lacks.
// tests/cli/inputs/test_bad_input.cpp holds the messages.
#include "run/training/check_run.hpp"

#include "data/files/file_list.hpp"
#include "run/setup/run_memory.hpp"
#include "run/summaries/run_folders.hpp"
#include "run/training/plan.hpp"
#include "run/warm_start/warm_start.hpp"
#include "run/warm_start/word_vectors.hpp"

namespace capstan {

void check_data_files(const RunConfig& config, Problems& problems) {
  for (const SourceFiles& files : facts_of(config.data).files)
    for (size_t i = 0; i < files.paths.size(); ++i)
      if (const std::string missing = missing_file(files.paths[i]); !missing.empty())
        problems.add(fmt::format("data.{}.{}", files.key, i),
                     fmt::format("{}, or set data.{}=[FILE]{}", missing, files.key,
                                 files.key == std::string("train") ? "" : ", or [] for none"));
}

void check_trainable(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems) {
  check_data_files(config, problems);
  check_init_from(config, problems);
  check_init_vectors(config, problems);
  add_machine_problems(config.train, "train.", problems);
  if (force || has_plan_to_make(config)) return;  // a plan chooses sizes that fit
  if (const auto memory =
          memory_problem(config, min_extent(config), memory_limit(), ranks.size(), ranks.sharing_memory()))
    problems.add(memory->key, memory->message);
}

void check_single_run(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems) {
  const std::filesystem::path folder = folder_of(config);
  if (std::filesystem::exists(folder / search_file))
    problems.add("name",
                 fmt::format("{} is the folder of a search by capstan autotune: choose another name", folder.string()));
  check_trainable(config, force, ranks, problems);
}

}  // namespace capstan
