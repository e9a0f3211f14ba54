// Runs of several checkpoints, for tests of resuming them.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/io/file.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"
#include "train/support.hpp"

namespace capstan::testing {

inline TrainConfig config_of(int64_t steps) {
  TrainConfig config = quiet_config(steps);
  config.accumulate = 2;  // 4 steps per epoch of 7 batches
  config.schedule.warmup_steps = 3;
  return config;
}

/// Lines of metrics.jsonl without what differs from run to run.
inline std::string comparable_metrics(const std::filesystem::path& folder) {
  std::ifstream file(folder / "metrics.jsonl");
  std::string all;
  for (std::string line; std::getline(file, line);) {
    for (const char* key : {"\"seconds\":", "\"tokens_per_second\":", "\"rss_bytes\":", "\"peak_rss_bytes\":"})
      if (const size_t at = line.find(key); at != std::string::npos) line.erase(at, line.find_first_of(",}", at) - at);
    all += line + "\n";
  }
  return all;
}

/// Does work() end in a process that is killed at its file call `kill`, counted from 0?
inline bool finishes(int64_t kill, const std::function<void()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int64_t calls = 0;
    set_file_hook([&](const char*, const std::string&) {
      if (calls++ == kill) _exit(9);
    });
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
  return WEXITSTATUS(status) == 0;
}

/// The checkpoints that are published while work() runs.
inline std::vector<std::string> published_by(const std::function<void()>& work) {
  std::vector<std::string> published;
  set_file_hook([&](const std::string& call, const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (call == "rename" && name.rfind("step-", 0) == 0) published.push_back(name);
  });
  work();
  set_file_hook({});
  return published;
}

/// All that a checkpoint's tensors hold.
inline std::string tensors_of(const std::filesystem::path& path) {
  const std::filesystem::path checkpoint = in_run(path);
  return read_text(checkpoint / "model.safetensors") + read_text(checkpoint / "optimizer.safetensors");
}

/// Why a checkpoint is damaged, in whichever file; empty: it is whole.
inline std::string damage_of(const std::filesystem::path& checkpoint) {
  return open_checkpoint(in_run(checkpoint), Reading::all).damage;
}

inline void flip_bit(const std::filesystem::path& path, size_t byte) {
  std::string content = read_text(path);
  content.at(byte) = static_cast<char>(content[byte] ^ 4);
  write_text(path, content);
}

/// A run of 8 steps with checkpoints at 4 and 8, both kept.
inline void make_two_checkpoints(Setup& setup) {
  TrainConfig config = config_of(8);
  config.keep_last = 5;
  train(setup.inputs, config);
}

}  // namespace capstan::testing
