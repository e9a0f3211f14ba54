// capstan serve: answers requests over HTTP with trained models. tests/cli/test_serve.sh.
#include <algorithm>
#include <cstdlib>

#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "serve/server.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

struct ServeCommandOptions {
  ServeOptions serve;                      // its limits in bytes are set from the fields below
  int64_t cache_mb = 256, body_kb = 1024;  // memory for states, which models share; size of a request at most
};

#ifdef CAPSTAN_SERVE

/// The secret that requests must have; empty: none. Throws ConfigError for one that no header could have.
std::string access_token() {
  const char* const set = std::getenv("CAPSTAN_TOKEN");
  const std::string token = set != nullptr ? set : "";
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (set != nullptr && (token.empty() || !printable))
    throw ConfigError("CAPSTAN_TOKEN: the token must be printable ASCII characters without blanks");
  return token;
}

int serve(ServeCommandOptions options) {
  const SignalThread signals;
  ServeOptions& serve = options.serve;
  serve.token = access_token();
  serve.engine.session_bytes = options.cache_mb << 20;
  serve.http.body_bytes = static_cast<size_t>(options.body_kb) << 10;
  Server server(serve);
  std::vector<std::string> names;
  for (const auto& model : server.models()) names.push_back(model->name());
  const std::string& host = serve.host;
  if (serve.token.empty() && host != "127.0.0.1" && host != "::1" && host != "localhost")
    log_warning("anybody who reaches this address can use the models: set CAPSTAN_TOKEN");
  const bool is_ipv6 = host.find(':') != std::string::npos;  // which is in brackets in the addresses of pages
  log_info(fmt::format("http://{}:{}/ serves {}", is_ipv6 ? "[" + host + "]" : host, server.port(), join(names)));
  server.end_at_signals();
  server.run();
  return exit_done;
}

#else

int serve(const ServeCommandOptions&) {
  throw Error(
      "this build has no server: install the package libboost-dev (scripts/install-deps.sh does) and build again");
}

#endif

}  // namespace

void add_serve_command(CLI::App& program) {
  const auto [command, options] = add_command(program, "serve", "Answer requests over HTTP with trained models", serve);
  ServeOptions& serve = options.serve;
  add_runs(command, serve.runs, "run folders, or folders of checkpoints; each is a model");
  command.add_option("--host", serve.host, "address to listen at, or localhost; 0.0.0.0 = all of this machine")
      ->capture_default_str();
  command.add_option(
      "--host-name", serve.host_names,
      "names by which requests may ask, as in the addresses of pages; localhost and addresses always may");
  add_number(command, "--port", serve.port, between(0, 65535), "port to listen at; 0 = any that is free");
  add_word(command, "--weights", serve.engine.weights, "number format of the weights");
  add_number(command, "--threads", serve.threads, size_from(0), "threads that compute; 0 = as the first run says");
  add_number(command, "--slots", serve.engine.slots, between(1, 4096), "texts of a model that are written together");
  add_number(command, "--queue", serve.queue, size_from(0), "texts that wait for slots; above it, answers are 429");
  add_number(command, "--client-share", serve.client_share, between(0, 1),
             "part of slots, queue and memory that one client address may have");
  add_number(command, "--cache-mb", options.cache_mb, size_from(0),
             "memory for sessions, in equal parts for each model");
  add_number(command, "--max-prompt", serve.completion.prompt_tokens, size_from(1), "tokens of a prompt at most");
  add_number(command, "--max-tokens", serve.completion.new_tokens, size_from(1), "new tokens of a text at most");
  add_number(command, "--max-body-kb", options.body_kb, between(1, 1 << 20), "size of a request at most");
  add_number(command, "--idle", serve.http.idle_seconds, greater(0),
             "seconds for a request to come in, and for a client to take what it is sent");
  add_number(command, "--drain", serve.http.drain_seconds, at_least(0), "seconds for answers to end after SIGTERM");
  command.footer(R"(For example:  capstan serve runs/quickstart-lm
              curl http://127.0.0.1:8080/v1/completions -d '{"prompt": "The ", "max_tokens": 50}'
SIGTERM ends the server when all requests are answered. Where the variable CAPSTAN_TOKEN is set, requests need its
value as their token.)");
}

}  // namespace capstan
