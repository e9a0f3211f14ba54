// Training runs that are broken off and begun again, held against an unbroken one.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

/// A training command: everything but the run's name and how often it saves.
struct Training {
  std::string name, config;
  Words overrides;
};

/// A language model with averaged weights and accumulation, another without on random windows, and a classifier on
/// batches by length; all with dropout.
const std::vector<Training>& trainings();

/// `capstan train` of this training as the run `name`.
Words train_command(const Training& training, const std::string& name, const Words& more = {});

/// The last step in the run's metrics.jsonl; 0 when there is none.
int64_t steps_done(const Workplace& place, const std::string& name);
/// Waits until the run has come to `step`. False: it ended before.
bool wait_for_step(Process& process, const Workplace& place, const std::string& name, int64_t step);

/// Kills of one run: how many, and how many left a half-written checkpoint behind.
struct Kills {
  int made = 0, while_saving = 0;
};
/// Runs the command, kills it (SIGKILL) at a random moment, and runs it again, `count` times in all; then lets it end.
/// The first kill comes within the program's start, the others around steps drawn from [1, last_step].
Kills train_and_kill(const Workplace& place, const Words& command, const std::string& name, int count,
                     int64_t last_step, std::mt19937& random);

/// The final weights and the optimizer's state agree bit for bit.
void check_same_weights(const Workplace& place, const std::string& name, const std::string& unbroken);
/// metrics.jsonl of both runs agree in everything but time and memory, and no step occurs twice.
void check_same_metrics(const Workplace& place, const std::string& name, const std::string& unbroken);

}  // namespace capstan::testing
