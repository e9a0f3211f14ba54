// main() of every test program, and the count of its test cases that scripts/run-tests.sh sums up.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/machine/kernel_levels.hpp"
#include "core/products/blas_info.hpp"

namespace {

void write_counts(int passed, int failed, int skipped) {
  const char* path = std::getenv("CAPSTAN_TEST_COUNTS");
  if (path != nullptr) std::ofstream(path) << passed << ' ' << failed << ' ' << skipped << '\n';
}

/// At the end of a run writes "<passed> <failed> <skipped>" to the file that CAPSTAN_TEST_COUNTS names. A test case is
/// skipped when it says so, or part of it does: MESSAGE("skipped: why").
class Counter final : public doctest::IReporter {
 public:
  explicit Counter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData&) override { skips_ = false; }
  void log_message(const doctest::MessageData& message) override {
    skips_ = skips_ || std::strncmp(message.m_string.c_str(), "skipped: ", 9) == 0;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ++(!stats.testCaseSuccess ? failed_ : skips_ ? skipped_ : passed_);
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
  bool skips_ = false;
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};

REGISTER_LISTENER("counter", 1, Counter);

}  // namespace

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);  // the kernels that users get
  const char* level = std::getenv("CAPSTAN_CPU");
  if (level != nullptr && !capstan::cpu_has_level(level)) {
    std::fprintf(stderr, "skipped: this CPU has no %s\n", level);
    write_counts(0, 0, 1);
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
