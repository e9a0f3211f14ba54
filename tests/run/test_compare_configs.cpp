// configs/compare: every task goes with every system, and the systems of a size have as many parameters as each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/source_dir.hpp"

using namespace capstan;

namespace {

const std::vector<std::string> tasks{"listops", "imdb-bytes", "imdb-words", "tinyshakespeare", "wikitext-2", "enwiki"},
    systems{"attention", "gau", "flash", "fastformer", "aft-full", "aft-local", "aft-conv", "aft-simple"};

std::string file(const std::string& name) { return source_path("configs/compare/" + name + ".yaml"); }

/// Parameters that work: without the table of learned positions, which is as large as the task's texts are long, and
/// what belongs to hashed n-grams.
double working_parameters(const RunModel& model) {
  int64_t count = model.params().count();
  for (const Param& param : model.params().params())
    if (param.name.find("positions") != std::string::npos || param.name.find("ngram") != std::string::npos)
      count -= param.var.value().size();
  return static_cast<double>(count);
}

}  // namespace

TEST_CASE("systems of one size have the same number of parameters on every task, within 5 %") {
  for (const auto& [size, expected] : {std::pair<std::string, double>{"tiny", 1e6}, {"medium", 10e6}}) {
    for (const std::string& task : tasks) {
      std::vector<double> counts;
      for (const std::string& system : systems) {
        INFO(task << ", " << size << "-" << system);
        const RunConfig config = load_config<RunConfig>({file(task), file(size + "-" + system)}, {});
        const RunModel model(config, /*vocabulary=*/100, /*classes=*/2);
        counts.push_back(working_parameters(model));
        CHECK(counts.back() == doctest::Approx(expected).epsilon(0.05));
      }
      const double least = *std::min_element(counts.begin(), counts.end());
      const double most = *std::max_element(counts.begin(), counts.end());
      INFO(task << ", " << size << ": " << least << " to " << most);
      CHECK(most / least <= 1.05);
    }
  }
}

TEST_CASE("every block-*.yaml goes with every recipe of labelled texts and has as many parameters, within 2 %") {
  for (const std::string recipe : {"imdb", "amazon", "ag-news", "dbpedia", "r8", "trec"}) {
    const std::string path = source_path("configs/" + recipe + ".yaml");
    const auto parameters = [&](const std::vector<std::string>& files) {
      return working_parameters(RunModel(load_config<RunConfig>(files, {}), /*vocabulary=*/10000, /*classes=*/2));
    };
    const double own = parameters({path});
    for (const std::string& system : systems) {
      if (system == "aft-simple") continue;  // the recipes' own
      INFO(recipe << ", block-" << system);
      CHECK(parameters({path, file("block-" + system)}) == doctest::Approx(own).epsilon(0.02));
    }
  }
}
