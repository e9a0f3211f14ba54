// Tables that are emptied after every epoch.
#pragma once

#include "nn/params/param_store.hpp"
#include "train/optimizers/optimizer.hpp"

namespace capstan {

bool has_fresh_tables(const ParamStore& params);

/// Between two epochs: the values of parameters with ParamOptions::fresh_each_epoch become zero, which is what such a
/// table starts with, and so does what the optimizer and the average (null: there is none) remember of them. In the
/// second reading of a text a table that remembers the first is always right, and a model that reads it learns to trust
/// it more than an unknown text deserves; a fresh table is as right as it will be there.
void empty_fresh_tables(ParamStore& params, Optimizer& optimizer, WeightAverage* average);

}  // namespace capstan
