#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/module.hpp"
#include "python/bindings/texts.hpp"
#include "run/run.hpp"
#include "run/training/online_run.hpp"

namespace capstan::python {
namespace {

void learn(OnlineRun& self, const nb::list& texts, const std::vector<LabelSet>& labels,
           const std::vector<double>& weights) {
  const std::vector<InputText> all = input_texts(texts);
  compute([&] { self.learn(all, labels, weights); });
}

FloatRows online_probabilities(const OnlineRun& self, const nb::list& texts) {
  return rows_of(true, texts, self.classes().size(),
                 [&](const std::vector<InputText>& some) { return self.probabilities(some); });
}

FloatRows online_decision_values(const OnlineRun& self, const nb::list& texts) {
  return rows_of(true, texts, self.classes().size(),
                 [&](const std::vector<InputText>& some) { return self.decision_values(some); });
}

}  // namespace

void bind_online(nb::module_& module) {
  nb::class_<OnlineRun>(module, "OnlineRun")
      .def("__init__",
           [](OnlineRun* self, const std::vector<std::string>& files, const std::vector<std::string>& overrides,
              const std::vector<std::string>& classes) {
             new (self) OnlineRun(load_config<RunConfig>(files, overrides), classes);
           })
      .def_static("go_on", [](const Run& run) { return compute([&] { return OnlineRun(run); }); })
      .def_prop_ro("texts", &OnlineRun::texts)
      .def_prop_ro("rule", &OnlineRun::rule)
      .def("learn", &learn)
      .def("probabilities", &online_probabilities)
      .def("decision_values", &online_decision_values)
      .def("write", [](const OnlineRun& self, const std::string& folder) { compute([&] { self.write(folder); }); });
}

}  // namespace capstan::python
