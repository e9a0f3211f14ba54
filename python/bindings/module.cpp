#include "python/bindings/module.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <pthread.h>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/products/blas_info.hpp"
#include "python/bindings/engine.hpp"
#include "run/predictions/input_text.hpp"
#include "train/records/log.hpp"

namespace nb = nanobind;

namespace capstan::python {
namespace {

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "";
}

/// `sink`(level, line) takes all messages. What it raises is reported as Python does for destructors, and training goes
/// on.
void send_log_to(nb::callable sink) {
  auto* const kept = new nb::callable(std::move(sink));  // never destroyed: a message may come after the interpreter
  set_log_sink([kept](LogLevel level, std::string_view message) {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire acquired;
    try {
      (*kept)(name_of(level), message);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the log of capstan");
    }
  });
}

}  // namespace
}  // namespace capstan::python

NB_MODULE(_capstan, module) {
  using namespace capstan;
  module.attr("__version__") = CAPSTAN_VERSION;
  nb::exception<Error> error(module, "Error", PyExc_ValueError);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const OutOfMemory& refused) {
      PyErr_SetString(PyExc_MemoryError, refused.what());
    }
  });
  use_better_blas_core();
  pthread_atfork(python::before_fork, nullptr, python::after_fork_in_child);
  module.def("send_log_to", &python::send_log_to);
  module.def("blas_core", [] { return blas_info().core; });
  python::bind_run(module);
  python::bind_training(module);
}
