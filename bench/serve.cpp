#include "bench/serve.hpp"

#include <fmt/core.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/measure.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"

namespace capstan::bench {
namespace {

nlohmann::json info(const Subject& subject) {
  const BlasInfo blas = blas_info();
  return {{"threads", threads()},
          {"simd", kernel_level()},
          {"blas", blas.version},
          {"float_products", blas.float_products},
          {"blas_core", blas.core},
          {"blas_threading", blas.threading},
          {"compiler", fmt::format("GCC {}", __VERSION__)},
          {"unit_flops", subject.flops()},
          {"unit_tokens", subject.tokens()},
          {"weights_read", subject.weights_read()},
          {"weights_read_seconds", read_seconds(subject.weights(), subject.weights_read())}};
}

/// The answer to one request, a line of serve.hpp. Throws std::invalid_argument for an unknown one.
nlohmann::json answer(Subject& subject, const std::string& line) {
  std::istringstream words(line);
  std::string request;
  words >> request;
  if (request == "check") {
    const Outcome outcome = subject.check();
    return {{"loss", outcome.loss}, {"grad_norm", outcome.grad_norm}};
  }
  if (request == "round") {
    int64_t repeats = 1;
    words >> repeats;
    return {{"seconds", subject.run(repeats)}};
  }
  if (request == "sgemm") return {{"flops_per_second", sgemm_rate()}};
  if (request == "memory") return {{"peak_bytes", take_peak_bytes()}};
  if (request == "info") return info(subject);
  throw std::invalid_argument("bench: unknown request " + request);
}

}  // namespace

void serve(const Setup& setup) {
  const std::unique_ptr<Subject> subject = make_subject(setup);
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json reply;
    try {
      reply = answer(*subject, line);
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}

}  // namespace capstan::bench
