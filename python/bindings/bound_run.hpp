// A run as Python sees it.
#pragma once

#include <memory>

#include "python/bindings/engine.hpp"
#include "run/run.hpp"

namespace capstan::python {

struct BoundRun {
  explicit BoundRun(Run opened) : run(std::move(opened)) {}

  Run run;
};

}  // namespace capstan::python
