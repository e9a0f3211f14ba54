#include "run/imports/import_gau.hpp"

#include <cmath>

#include "run/imports/import_gated.hpp"
#include "run/imports/importers.hpp"

namespace capstan {
ImportedModule import_gau(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "GAU";
  GauConfig config;
  take_projections(import, module, config);
  take_views(import, "offsetscale.", {0, 1}, config.key_dim, module);
  take_position_buckets(import, std::sqrt(static_cast<double>(module.width)), module, config);
  take_norm(import, module);
  const bool any_length = hints.length <= 0 && !hints.laplace && !hints.causal;
  if (hints.length <= 0 && !any_length)
    throw Error("GAU: the module divides its logits by the length of the text: give that length with --length");
  config.kernel = hints.laplace ? AttentionKernel::laplace : AttentionKernel::squared_relu;
  config.logits = LogitForm::whole_length;
  // The keys that a token of a bidirectional module sees are as many as the text has.
  config.normaliser = any_length ? Normaliser::counted : Normaliser::paper;
  if (!any_length) config.paper_length = hints.length;
  module.notes.push_back(
      any_length
          ? "the module was taken as bidirectional: it is met for texts of any length"
          : fmt::format("the module divides its logits by the length of each text: it is met for texts of {} tokens",
                        hints.length));
  config.rotary.enabled = false;
  module.layer.mixer = config;
  return module;
}

Importers gau_importers() {
  return {{{"GAU (to_hidden, to_qk, offsetscale)", [](const Import& import) { return import.has("offsetscale.gamma"); },
            import_gau}},
          {{"GAU-alpha (gau_alpha, cls)",
            [](const Import& import) { return import.has("gau_alpha.embeddings.word_embeddings.weight"); },
            import_gau_alpha}}};
}

}  // namespace capstan
