// Writes every change that a traced command makes below a folder into a DiskLog.
#pragma once

#include "tests/faults/disk_log.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {

class DiskRecorder final : public CallObserver {
 public:
  explicit DiskRecorder(const std::filesystem::path& root) : log_(root) {}

  Verdict before(const CallStop& stop) override;
  void after(const CallStop& stop) override;
  bool wants_results() const override { return true; }

  const DiskLog& log() const { return log_; }
  /// Calls whose effect is not modelled; empty: the log is complete.
  const std::string& unknown() const { return unknown_; }

 private:
  void opened(const CallStop& stop, uint64_t flags);
  void wrote(const CallStop& stop, const std::string& path, uint64_t offset, const std::string& bytes);
  void changed_names(const CallStop& stop);
  void changed_data(const CallStop& stop);

  DiskLog log_;
  std::string unknown_;
};

}  // namespace capstan::testing
