// What a run needs at least in memory, known from its configuration before anything is allocated. Training refuses a
// run that needs more than there is, so the need must be a lower bound. tests/run/test_run_memory.cpp holds what
// counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/machine/memory_limit.hpp"
#include "nn/params/param_store.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// What the memory of a run depends on besides its configuration. The defaults are the least that any data have.
struct DataExtent {
  int64_t vocabulary = 2, classes = 2;
  int64_t examples = 1;       // of an epoch
  double example_tokens = 1;  // in a batch, padding included
  double taken = 0;           // bytes that the process has already: itself and the data
};

/// The extent that is known before the data are read: what any data have at least.
DataExtent min_extent(const RunConfig& config);
/// The extent of data that have been opened.
DataExtent extent_of(const RunConfig& config, const DataSource& data);

/// Bytes that training holds at the same time, at least.
struct MemoryNeed {
  double taken = 0;  // DataExtent::taken
  double parameters = 0;
  double gradients = 0;    // with the gradients of lanes that wait to be added up
  double optimizer = 0;    // the optimizer's state
  double activations = 0;  // what the forward pass over one (micro-)batch keeps
  double tokens = 0;       // of that batch
  double lanes = 1;        // that threads compute at the same time, each with such activations

  double total() const { return taken + parameters + gradients + optimizer + activations; }
};
/// The need of one of `ranks` ranks; infinite if the sizes cannot be counted.
MemoryNeed memory_need(const RunConfig& config, const DataExtent& data, int64_t ranks = 1);

/// Why a run cannot be trained within a limit.
struct MemoryProblem {
  std::string key;      // what takes most: that of a batch, or the model
  std::string message;  // bytes, limit, remedy
};
/// least: what a run needs at least, so that none is refused which could be trained. ample: from above, for sizes that
/// are chosen, with what the backward pass, libraries and an evaluation take.
enum class MemoryBound { least, ample };
/// The problem of one of `ranks` ranks, of which `neighbours` share the limit; none if it can be trained.
std::optional<MemoryProblem> memory_problem(const RunConfig& config, const DataExtent& data, const MemoryLimit& limit,
                                            int64_t ranks = 1, int64_t neighbours = 1,
                                            MemoryBound bound = MemoryBound::least);

/// "1958016 parameters and 12812288 in tables of n-grams", of which a token reads a few rows.
std::string parameters_text(const ParamStore& params);

}  // namespace capstan
