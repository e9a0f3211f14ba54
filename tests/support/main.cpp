// main() of every test program, and the record of its test cases that scripts/test.sh sums up.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/machine/kernel_levels.hpp"
#include "core/products/blas_info.hpp"

namespace {

constexpr const char* skip_mark = "skipped: ";

/// Writes "<passed> <failed> <skipped>" to the file that CAPSTAN_TEST_COUNTS names,
/// then a line "<case>: <reason>" for each skipped case.
void write_counts(int passed, int failed, const std::vector<std::string>& skipped) {
  const char* path = std::getenv("CAPSTAN_TEST_COUNTS");
  if (path == nullptr) return;
  std::ofstream file(path);
  file << passed << ' ' << failed << ' ' << skipped.size() << '\n';
  for (const std::string& line : skipped) file << line << '\n';
}

/// Counts test cases and collects the reasons of skipped ones. A test case is skipped when it says so, or part of it
/// does: MESSAGE("skipped: why"). A case that fails counts as failed, whatever it skipped.
class Counter final : public doctest::IReporter {
 public:
  explicit Counter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    name_ = test.m_name;
    reasons_.clear();
  }
  void log_message(const doctest::MessageData& message) override {
    const std::string text = message.m_string.c_str();
    if (text.rfind(skip_mark, 0) != 0) return;
    const std::string reason = text.substr(std::char_traits<char>::length(skip_mark));
    if (reasons_.find(reason) == std::string::npos) reasons_ += (reasons_.empty() ? "" : "; ") + reason;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!stats.testCaseSuccess) {
      ++failed_;
    } else if (reasons_.empty()) {
      ++passed_;
    } else {
      skipped_.push_back(name_ + ": " + reasons_);
    }
  }
  void test_run_end(const doctest::TestRunStats&) override { write_counts(passed_, failed_, skipped_); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::string name_, reasons_;  // of the current case; the reasons are joined by "; "
  std::vector<std::string> skipped_;
  int passed_ = 0, failed_ = 0;
};

REGISTER_LISTENER("counter", 1, Counter);

}  // namespace

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);  // the kernels that users get
  const char* level = std::getenv("CAPSTAN_CPU");
  if (level != nullptr && !capstan::cpu_has_level(level)) {
    std::fprintf(stderr, "skipped: this CPU has no %s\n", level);
    write_counts(0, 0, {std::string("all cases: this CPU has no ") + level});
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
