#include "apps/imports/import_module.hpp"

#include "apps/imports/import_aft.hpp"
#include "apps/imports/import_fastformer.hpp"
#include "apps/imports/import_gated.hpp"

namespace capstan {

ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  Import import(file, prefix);
  ImportedModule module;
  if (import.has("fc_q.weight")) {
    module = import_aft_full(import);
  } else if (import.has("query.weight") && import.has("pos_bias")) {
    module = import_aft_local(import, hints.window);
  } else if (import.has("query_att.weight") || import.has("self.query_att.weight")) {
    module = import_fastformer(import);
  } else if (import.has("qk_offset_scale.gamma")) {
    module = import_flash(import, hints);
  } else if (import.has("offsetscale.gamma")) {
    module = import_gau(import, hints);
  } else {
    throw Error(fmt::format(
        "{}: none of AFT_FULL (fc_q, fc_k, fc_v, position_biases), AFTLocal (query, key, value, output, "
        "pos_bias), FastSelfAttention (query, query_att, key, key_att, transform), GAU (to_hidden, to_qk, "
        "offsetscale) and FLASH (to_hidden, to_qk, qk_offset_scale) was found{}; set --prefix to what precedes "
        "these names in the file",
        file.path(), prefix.empty() ? "" : " after the prefix " + prefix));
  }
  import.check_nothing_left();
  return module;
}

}  // namespace capstan
