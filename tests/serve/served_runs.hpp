// Small trained runs, and a server of them.
#pragma once

#include <map>
#include <string>
#include <thread>

#include "run/run.hpp"
#include "serve/client.hpp"
#include "serve/server.hpp"
#include "tests/support/temporary_folder.hpp"

namespace capstan::testing {

/// Trained once: aft-simple, aft-local, aft-conv, fastformer, gau, flash, attention and test-fading, of which only
/// forward() is written (language models of characters, named so), windowed (attention with 64 learned positions),
/// words and bytes (aft-simple with these tokenizers), spam (a linear classifier), topics (one of several labels), and
/// two whose weights give nothing finite: broken and broken-classifier.
class ServedRuns {
 public:
  ServedRuns();

  std::string folder(const std::string& name) const { return place_.path(name); }
  const Run& run(const std::string& name) const { return runs_.at(name); }

 private:
  void train_one(const std::string& name, const std::string& data, const std::string& model,
                 const std::string& train = "steps: 8, batch_size: 4, valid_every: 4");

  TemporaryFolder place_;
  std::map<std::string, Run> runs_;
};

const ServedRuns& served_runs();

/// Serves until it is destroyed.
class Serving {
 public:
  explicit Serving(ServeOptions options, double client_share = 1)
      : server(with_port(std::move(options), client_share)), thread_([this] { server.run(); }) {}
  ~Serving() {
    server.stop();
    if (thread_.joinable()) thread_.join();
  }
  /// Until run() has returned.
  void wait() { thread_.join(); }
  int port() const { return server.port(); }

  Server server;

 private:
  static ServeOptions with_port(ServeOptions options, double client_share) {
    options.port = 0;
    options.client_share = client_share;
    return options;
  }
  std::thread thread_;
};

inline ServeOptions serve_options(const std::vector<std::string>& names) {
  ServeOptions options;
  for (const std::string& name : names) options.runs.push_back(served_runs().folder(name));
  return options;
}

/// A server of aft-simple and spam, for requests that leave it as it was.
inline Serving& shared_server() {
  static Serving serving(serve_options({"aft-simple", "spam"}));
  return serving;
}
inline int shared_port() { return shared_server().port(); }

}  // namespace capstan::testing
