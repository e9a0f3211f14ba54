// capstan serve: answers requests over HTTP with trained models. tests/cli/test_serve.sh.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/strings/strings.hpp"
#include "data/files/text_file.hpp"
#include "serve/server.hpp"

namespace capstan {
namespace {

struct ServeCommandOptions {
  ServeOptions serve;                           // its token, weights and limits in bytes are set from the fields below
  std::string weights = "float32", token_file;  // weights: a name of DecodeWeights
  int64_t cache_mb = 256, body_kb = 1024;       // memory for states, which models share; size of a request at most
};

#ifdef CAPSTAN_SERVE

/// Watches for SIGTERM, SIGINT and SIGHUP on a thread of its own, and blocks them in all others: the frame of a handler
/// that interrupts a product of oneDNN could overwrite its data (train/loop/signals.hpp).
class ServeSignals : NoCopy {
 public:
  /// Blocks the signals in the calling thread and those of the pool; threads that are started later inherit it.
  ServeSignals() {
    sigemptyset(&watched_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched_, signal);
    parallel_for(threads(), 1, [&](int64_t, int64_t) { pthread_sigmask(SIG_BLOCK, &watched_, nullptr); });
    thread_ = std::thread([this] { watch(); });
  }
  ~ServeSignals() { end(); }

  /// Runs the server, on which signals act until run() has ended, so that none finds it half destroyed. Before and
  /// after, a signal ends the process.
  void run(Server& server) {
    server_ = &server;
    try {
      server.run();
    } catch (...) {
      end();
      throw;
    }
    end();
  }

 private:
  void end() {
    if (!thread_.joinable()) return;
    done_ = true;
    thread_.join();
    pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
  }

  /// Waits for a signal with a pause, so that end() need not send one to wake it.
  void watch() {
    for (bool drains = false; !done_;) {
      const timespec pause{0, 50'000'000};
      const int signal = sigtimedwait(&watched_, nullptr, &pause);
      if (signal < 0) continue;
      Server* const server = server_;
      if (server == nullptr) {
        pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
        std::signal(signal, SIG_DFL);
        std::raise(signal);
      } else if (signal == SIGHUP) {
        server->reload();
      } else if (signal == SIGTERM && !drains) {
        drains = true;
        log_info("SIGTERM: what is under way is still answered; a second signal ends it");
        server->drain();
      } else {
        server->stop();
      }
    }
  }

  sigset_t watched_;
  std::atomic<bool> done_ = false;
  std::atomic<Server*> server_ = nullptr;
  std::thread thread_;
};

/// The token of the file or, without one, of CAPSTAN_TOKEN; empty without both. Throws ConfigError for one that no
/// header could have.
std::string token_of(const std::string& file) {
  const char* const set = std::getenv("CAPSTAN_TOKEN");
  std::string token = set != nullptr ? set : "";
  if (!file.empty()) token = TextReader::input(file, 1).read_rest();
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!printable || (token.empty() && (!file.empty() || set != nullptr)))
    throw ConfigError(fmt::format("{}: the token must be one line of printable ASCII characters without blanks",
                                  file.empty() ? "CAPSTAN_TOKEN" : file));
  return token;
}

int serve(ServeCommandOptions options) {
  refuse_ranks("capstan serve");
  ServeSignals signals;
  options.serve.token = token_of(options.token_file);
  options.serve.engine.weights = weights_named(options.weights);
  options.serve.engine.session_bytes = options.cache_mb << 20;
  options.serve.http.body_bytes = static_cast<size_t>(options.body_kb) << 10;
  Server server(options.serve);
  if (options.serve.token.empty() && options.serve.host != "127.0.0.1" && options.serve.host != "::1" &&
      options.serve.host != "localhost")
    log_warning("anybody who reaches this address can use the models: set CAPSTAN_TOKEN, or give --token-file");
  std::vector<std::string> names;
  for (const auto& model : server.models()) names.push_back(model->name());
  const std::string& host = options.serve.host;
  const bool is_ipv6 = host.find(':') != std::string::npos;  // which is in brackets in the addresses of pages
  log_info(fmt::format("http://{}:{}/ serves {}", is_ipv6 ? "[" + host + "]" : host, server.port(), join(names)));
  signals.run(server);
  return exit_done;
}

#else

int serve(const ServeCommandOptions&) {
  throw Error(
      "this build has no server: install the package libboost-dev (scripts/install-deps.sh does) and build again");
}

#endif

}  // namespace

void add_serve_command(CommandParser& cli) {
  const auto [command, options] =
      cli.add_subcommand<ServeCommandOptions>("serve", "Answer requests over HTTP with trained models", serve);
  ServeOptions& serve = options.serve;
  command.add_option("run", serve.runs, "run folders, or folders of checkpoints; each is a model", "RUN")->required();
  command.add_option("--host", serve.host, "address to listen at, or localhost; 0.0.0.0 = all of this machine",
                     "ADDRESS");
  command.add_option(
      "--host-name", serve.host_names,
      "names by which requests may ask, as in the addresses of pages; localhost and addresses always may", "NAME");
  command.add_number("--port", serve.port, between(0, 65535), "port to listen at; 0 = any that is free");
  command.add_option("--token-file", options.token_file,
                     "file with the token that requests must have; without it, the variable CAPSTAN_TOKEN", "FILE");
  add_weights_option(command, options.weights, "number format of the weights");
  command.add_number("--threads", serve.threads, size_from(0), "threads that compute; 0 = as the first run says");
  command.add_number("--slots", serve.engine.slots, between(1, 4096), "texts of a model that are written together");
  command.add_number("--queue", serve.queue, size_from(0), "texts that wait for slots; above it, answers are 429");
  command.add_number("--client-share", serve.client_share, between(0, 1),
                     "part of slots, queue and memory that one client address may have");
  command.add_number("--cache-mb", options.cache_mb, size_from(0),
                     "memory for sessions, in equal parts for each model");
  command.add_number("--max-prompt", serve.completion.prompt_tokens, size_from(1), "tokens of a prompt at most");
  command.add_number("--max-tokens", serve.completion.new_tokens, size_from(1), "new tokens of a text at most");
  command.add_number("--max-body-kb", options.body_kb, between(1, 1 << 20), "size of a request at most");
  command.add_number("--idle", serve.http.idle_seconds, greater(0),
                     "seconds for a request to come in, and for a client to take what it is sent");
  command.add_number("--drain", serve.drain_seconds, at_least(0), "seconds for answers to end after SIGTERM");
  command.footer(R"(For example:  capstan serve runs/quickstart-lm
              curl http://127.0.0.1:8080/v1/completions -d '{"prompt": "The ", "max_tokens": 50}'
SIGTERM ends the server when all requests are answered; SIGHUP opens the runs again, with newer checkpoints.)");
}

}  // namespace capstan
