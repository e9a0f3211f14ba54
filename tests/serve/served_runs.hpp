// Small trained runs, and a server of them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "run/run.hpp"
#include "serve/client.hpp"
#include "serve/server.hpp"

namespace capstan::testing {

/// Trained once: aft-simple, aft-local, aft-conv, fastformer, gau, flash, attention and test-fading, of which only
/// forward() is written (language models of characters, named so),
/// windowed (attention with 64 learned positions) and spam (a linear classifier).
class ServedRuns {
 public:
  ServedRuns();
  ~ServedRuns();
  ServedRuns(const ServedRuns&) = delete;
  ServedRuns& operator=(const ServedRuns&) = delete;

  std::string folder(const std::string& name) const { return (place_ / name).string(); }
  const Run& run(const std::string& name) const { return runs_.at(name); }

 private:
  void train_one(const std::string& name, const std::string& data, const std::string& model);

  std::filesystem::path place_;
  std::map<std::string, Run> runs_;
};

const ServedRuns& served_runs();

/// Serves until it is destroyed.
class Serving {
 public:
  explicit Serving(ServeOptions options) : server(with_port(std::move(options))), thread_([this] { server.run(); }) {}
  ~Serving() {
    server.stop();
    if (thread_.joinable()) thread_.join();
  }
  /// Until run() has returned.
  void wait() { thread_.join(); }
  int port() const { return server.port(); }

  Server server;

 private:
  static ServeOptions with_port(ServeOptions options) {
    options.port = 0;
    options.client_share = 1;
    return options;
  }
  std::thread thread_;
};

inline ServeOptions serve_options(const std::vector<std::string>& names) {
  ServeOptions options;
  for (const std::string& name : names) options.runs.push_back(served_runs().folder(name));
  return options;
}

}  // namespace capstan::testing
