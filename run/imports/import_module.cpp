#include "run/imports/import_module.hpp"

#include "core/strings/join.hpp"
#include "run/imports/importers.hpp"

namespace capstan {

ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  Import import(file, prefix, hints.approximate);
  std::vector<std::string> names;
  for (const Importers& system : all_importers())
    for (const auto& importer : system.modules) {
      names.emplace_back(importer.names);
      if (!importer.recognises(import)) continue;
      ImportedModule module = importer.import(import, hints);
      import.check_nothing_left();
      module.approximations = import.approximations();
      return module;
    }
  throw Error(fmt::format("{}: none of {} was found{}; set --prefix to what precedes these names in the file",
                          file.path(), join(names), prefix.empty() ? "" : " after the prefix " + prefix));
}

}  // namespace capstan
