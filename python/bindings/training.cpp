#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <csignal>
#include <mutex>

#include "python/bindings/engine.hpp"
#include "python/bindings/module.hpp"
#include "run/run.hpp"
#include "train/loop/signals.hpp"

namespace capstan::python {
namespace {

/// Trains what the files and values say or, without files, the YAML text `config`, and opens the run. A signal that
/// ends the training does afterwards what it does in a program that trains nothing: SIGINT raises KeyboardInterrupt.
Run train(const std::vector<std::string>& files, const std::vector<std::string>& overrides, const std::string& config) {
  static std::mutex one_at_a_time;
  const std::unique_lock<std::mutex> lock(one_at_a_time, std::try_to_lock);
  if (!lock)
    throw Error("capstan.train: another training runs in this process; wait for its end, or start another process");
  int signal = 0;
  try {
    return compute(
        [&] {
          try {
            if (!files.empty()) return capstan::train(ConfigOptions{files, overrides});
            return capstan::train(load_config_text<RunConfig>(config, "the configuration"));
          } catch (const Interrupted&) {
            signal = StopSignals::received();
            throw;
          }
        },
        [] { StopSignals::request(SIGINT); });  // Ctrl-C came before the training took the signals
  } catch (const Interrupted&) {
    if (signal != 0) ::raise(signal);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

/// Throws Error unless there are such keys, which may have these values.
void check_keys(const std::vector<std::string>& files, const std::vector<std::string>& overrides) {
  load_config<RunConfig>(files, overrides);
}

}  // namespace

void bind_training(nb::module_& module) {
  StopSignals::outlive_second();
  module.def("train", &train);
  module.def("check_keys", &check_keys);
}

}  // namespace capstan::python
