// The weights that a run starts from: train.init_from. Training calls it once, before the first step; a run that goes
// on from a checkpoint does not. tests/cli/training/test_warm_start.cpp and test_warm_refusals.cpp hold what is taken
// and refused.
#pragma once

#include "run/warm_start/warm_rows.hpp"
#include "train/loop/trainer.hpp"

namespace capstan {

/// Fills the parameters from config.train.init_from, without the tensors of init_skip: a parameter takes the tensor of
/// its name and shape. Rows of embed, output, head and ngrams.output are found by token and class, those of position
/// tables by position, and tables of n-grams only fit if all that their hash depends on is equal. Whatever finds
/// nothing keeps its value. Returns where the weights are from, with a table for the log. Throws Error when the file
/// cannot be used, when nothing in it fits, when a pattern of init_skip matches no tensor, and when a value is not
/// finite.
WarmStart warm_start(const RunConfig& config, const RowNames& rows, const RunParts& parts);

/// Adds a problem unless train.init_from leads to something, or is not needed because the run has a checkpoint.
void check_init_from(const RunConfig& config, Problems& problems);

}  // namespace capstan
