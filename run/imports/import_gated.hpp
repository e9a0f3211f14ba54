// What GAU and FLASH of FLASH-pytorch have in common.
#pragma once

#include "nn/systems/gated/unit.hpp"
#include "run/imports/import_tensors.hpp"

namespace capstan {

/// The port projects to values | gate and, separately, to the shared features; here the rows are gate | values |
/// features.
void take_projections(Import& import, ImportedModule& module, GatedUnitConfig& config);
/// Gains and offsets of the views, in the order of Capstan.
void take_views(Import& import, const std::string& name, const std::vector<int64_t>& order, int64_t key_dim,
                ImportedModule& module);
void take_position_buckets(Import& import, double scale, ImportedModule& module, GatedUnitConfig& config);
/// LayerNorm, or ScaleNorm with its single gain.
void take_norm(Import& import, ImportedModule& module);

}  // namespace capstan
