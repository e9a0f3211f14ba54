#include "run/imports/import_module.hpp"

#include "run/imports/import_aft.hpp"
#include "run/imports/import_attention.hpp"
#include "run/imports/import_fastformer.hpp"
#include "run/imports/import_gated.hpp"

namespace capstan {

ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  Import import(file, prefix, hints.approximate);
  ImportedModule module;
  if (import.has("fc_q.weight")) {
    module = import_aft_full(import);
  } else if (import.has("query.weight") && import.has("pos_bias")) {
    module = import_aft_local(import, hints.window);
  } else if (import.has("query_att.weight") || import.has("self.query_att.weight")) {
    module = import_fastformer(import, hints);
  } else if (import.has("attention.self.query_att.weight")) {
    module = import_fastformer_layer(import, hints);
  } else if (import.has("to_q.weight") && import.has("project.weight")) {
    module = import_aft_projected(import, hints.window);
  } else if (import.has("self_attn.in_proj_weight")) {
    module = import_encoder_layer(import, hints);
  } else if (import.has("in_proj_weight")) {
    module = import_attention(import, hints);
  } else if (import.has("qk_offset_scale.gamma")) {
    module = import_flash(import, hints);
  } else if (import.has("offsetscale.gamma")) {
    module = import_gau(import, hints);
  } else {
    throw Error(fmt::format(
        "{}: none of AFT_FULL (fc_q, fc_k, fc_v, position_biases), AFTLocal (query, key, value, output, pos_bias), "
        "AFTFull and AFTSimple (to_q, to_k, to_v, project, wbias), FastSelfAttention (query, query_att, key, key_att, "
        "transform), FastformerLayer (attention.self, intermediate, output), GAU (to_hidden, to_qk, offsetscale), "
        "FLASH "
        "(to_hidden, to_qk, qk_offset_scale), MultiheadAttention (in_proj_weight, out_proj) and "
        "TransformerEncoderLayer (self_attn, linear1, linear2, norm1, norm2) was found{}; set --prefix to what "
        "precedes "
        "these names in the file",
        file.path(), prefix.empty() ? "" : " after the prefix " + prefix));
  }
  import.check_nothing_left();
  module.approximations = import.approximations();
  return module;
}

}  // namespace capstan
