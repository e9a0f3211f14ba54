#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>

#include "core/base/no_copy.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/module.hpp"
#include "run/report/page.hpp"
#include "run/run.hpp"
#include "run/summaries/run_record.hpp"
#include "train/loop/signals.hpp"
#include "train/records/metrics.hpp"

namespace capstan::python {
namespace {

/// What a training that was told to end has saved.
Run open_saved(const std::vector<std::string>& files, const std::vector<std::string>& overrides,
               const std::string& config) {
  const auto run = files.empty() ? load_config_text<RunConfig>(config, "the configuration")
                                 : load_config<RunConfig>(files, overrides);
  return Run::open(std::filesystem::path(run.folder) / run.name);
}

/// While it lives, observe(line) gets each line of metrics.jsonl; when it returns True, the training is asked to save
/// and end. It must not raise.
class Observer : NoCopy {
 public:
  explicit Observer(nb::object observe) : observe_(std::move(observe)) {
    if (observe_.is_none()) return;
    set_record_sink([this](const std::string& line) {
      const nb::gil_scoped_acquire acquired;
      if (!nb::cast<bool>(observe_(line))) return;
      asked_ = true;
      StopSignals::request(SIGINT);
    });
  }
  ~Observer() { set_record_sink({}); }
  bool asked() const { return asked_; }

 private:
  nb::object observe_;
  std::atomic<bool> asked_ = false;
};

/// Trains what the files and values say or, without files, the YAML text `config`, and opens the run. A signal that
/// ends the training does afterwards what it does in a program that trains nothing: SIGINT raises KeyboardInterrupt.
Run train(const std::vector<std::string>& files, const std::vector<std::string>& overrides, const std::string& config,
          nb::object observe) {
  static std::mutex one_at_a_time;
  const std::unique_lock<std::mutex> lock(one_at_a_time, std::try_to_lock);
  if (!lock)
    throw Error("capstan.train: another training runs in this process; wait for its end, or start another process");
  const Observer observer(std::move(observe));
  int signal = 0;
  const auto work = [&] {
    try {
      if (!files.empty()) return capstan::train(ConfigOptions{files, overrides});
      return capstan::train(load_config_text<RunConfig>(config, "the configuration"));
    } catch (const Interrupted&) {
      if (observer.asked()) return open_saved(files, overrides, config);
      signal = StopSignals::received();
      throw;
    }
  };
  try {
    // Where Ctrl-C came before the training took the signals:
    return compute(work, [] { StopSignals::request(SIGINT); });
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
  module.def("train", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg("observe").none() = nb::none());
  module.def("report_page", [](const std::string& folder) {
    return compute([&] { return report_page({ReportedRun{read_record(folder)}}); });
  });
  module.def("check_keys", &check_keys);
}

}  // namespace capstan::python
