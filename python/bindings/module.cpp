#include "python/bindings/module.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <pthread.h>

#include <cctype>
#include <cstring>
#include <string>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/console.hpp"
#include "core/io/log.hpp"
#include "core/products/blas_info.hpp"
#include "python/bindings/engine.hpp"
#include "run/inputs/input_text.hpp"

namespace nb = nanobind;

namespace capstan::python {
namespace {

/// A message without the dashes of the command line's options: "--set train.steps=x: ..." names an argument here.
std::string as_in_python(std::string message) {
  for (const char* const option : {"--set: ", "--set "})
    for (size_t at; (at = message.find(option)) != std::string::npos;) message.erase(at, std::strlen(option));
  for (size_t at = 0; (at = message.find("--", at)) != std::string::npos; ++at)
    if ((at == 0 || message[at - 1] == ' ' || message[at - 1] == '(') && std::islower(message[at + 2]) != 0)
      message.erase(at, 2);
  return message;
}

/// `sink`(level, line) takes all messages. What it raises is reported as Python does for destructors, and training goes
/// on.
void send_log_to(nb::callable sink) {
  auto* const kept = new nb::callable(std::move(sink));  // never destroyed: a message may come after the interpreter
  set_log_sink([kept](LogLevel level, std::string_view message) {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire acquired;
    try {
      (*kept)(enum_name(level), message);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the log of capstan");
    }
  });
}

/// `show`(line) gets the line that shows how far the work is, "[=====     ]  52% training : ...", and "" at its end;
/// None: nobody does.
void show_progress_with(nb::object show) {
  if (show.is_none()) return set_console_line({});
  auto* const kept = new nb::object(std::move(show));  // never destroyed, as above
  set_console_line([kept](const std::string& line) {
    if (!nb::is_alive()) return;
    const nb::gil_scoped_acquire acquired;
    try {
      (*kept)(line);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the progress of capstan");
    }
  });
}

}  // namespace
}  // namespace capstan::python

NB_MODULE(_capstan, module) {
  using namespace capstan;
  nb::set_leak_warnings(false);  // an exception that holds a run when Python ends is no fault of its owner
  module.attr("__version__") = CAPSTAN_VERSION;
  static const nb::exception<Error> error(module, "Error", PyExc_ValueError);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const OutOfMemory& refused) {
      PyErr_SetString(PyExc_MemoryError, refused.what());
    } catch (const Error& refused) {
      PyErr_SetString(error.ptr(), python::as_in_python(refused.what()).c_str());
    }
  });
  use_better_blas_core();
  pthread_atfork(python::before_fork, nullptr, python::after_fork_in_child);
  module.def("set_log_level", [](const std::string& level) { set_log_level(enum_value<LogLevel>(level).value()); });
  module.def("send_log_to", &python::send_log_to);
  module.def("show_progress_with", &python::show_progress_with, nb::arg("show").none());
  module.def("blas_core", [] { return blas_info().core; });
  python::bind_run(module);
  python::bind_training(module);
  python::bind_online(module);
}
