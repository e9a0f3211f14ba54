#include "run/imports/importers.hpp"

namespace capstan {

const std::vector<Importers>& all_importers() {
  static const std::vector<Importers> all = {
      aft_importers(),         //
      fastformer_importers(),  //
      gau_importers(),         //
      flash_importers(),       //
      attention_importers(),
  };
  return all;
}

}  // namespace capstan
