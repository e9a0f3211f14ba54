// Options that several subcommands share, recipes by name, and commands that run on several ranks.
// tests/cli/inputs/test_bad_input.cpp holds remedies, test_ranks.cpp the ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/products/packed_matrix.hpp"
#include "run/setup/run_config.hpp"
#include "train/ranks/launch.hpp"

namespace capstan {

class CommandOption;
class CommandParser;

/// --config FILE... and --set KEY=VALUE... Returns the option --config.
CommandOption* add_config_options(CommandParser& command, ConfigOptions& options);

/// --force: train even if the memory cannot be enough.
void add_force_flag(CommandParser& command, bool& force);

/// --weights: the number format in which decoding stores weights.
void add_weights_option(CommandParser& command, std::string& name, const std::string& help);
/// Throws ConfigError for an unknown name.
DecodeWeights weights_named(const std::string& name);

/// A remedy for CommandParser::on_stray_argument, for commands that take one run.
std::string one_run(const std::string& argument);

// The configurations of configs/, by name.

/// `name`, or with .yaml after it, if there is such a file. Otherwise the recipe "classify", "compare/listops" or
/// "configs/classify.yaml" of the working folder, of the installed program or of the sources that it was built from;
/// `name` if there is none.
std::string recipe_path(const std::string& name);

/// The names of all recipes, sorted: classify, compare/listops.
std::vector<std::string> recipe_names();

// Commands that run as several processes: `mpirun -n 4 capstan train ...`.

/// --mpi and --rank-timeout.
void add_rank_options(CommandParser& command, RankOptions& options);

/// Throws ConfigError when several processes were started: of `command` ("capstan score"), each would do all of the
/// work.
void refuse_ranks(const std::string& command);

/// Runs `body` in every rank of the job and returns its exit code, which is the same for all. When it fails in one
/// rank, that one says why and ends all of them; an error that all have in common is reported by rank 0. Ranks other
/// than 0 are silent otherwise.
int run_on_ranks(const RankOptions& options, const std::function<int(Communicator& ranks)>& body);

}  // namespace capstan
