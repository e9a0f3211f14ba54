// The parts of the module `capstan._capstan`. What people use, with its documentation, is in python/capstan.
#pragma once

#include <nanobind/nanobind.h>

namespace capstan::python {

void bind_run(nanobind::module_& module);
void bind_training(nanobind::module_& module);
void bind_online(nanobind::module_& module);

}  // namespace capstan::python
