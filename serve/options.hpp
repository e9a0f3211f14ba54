// What a server is told when it starts: the options of `capstan serve`, with the same defaults.
#pragma once

#include <string>
#include <vector>

#include "serve/completions.hpp"
#include "serve/engine.hpp"
#include "serve/http/http.hpp"

namespace capstan {

struct ServeOptions {
  std::vector<std::string> runs;  // run folders, or folders of checkpoints; each is a model
  std::string host = "127.0.0.1";
  std::vector<std::string> host_names;  // names that requests may call the server, besides localhost and addresses
  int64_t port = 8080;                  // 0: any that is free
  std::string token;                    // the secret that requests must have; empty: none
  int64_t threads = 0;                  // computing threads; 0: as the first run says
  EngineOptions engine;
  CompletionLimits completion;
  HttpLimits http;
  int64_t queue = 256;        // sequences and texts that may wait, besides those in slots
  double client_share = 0.5;  // the share of slots, queue and memory that one address may have
};

}  // namespace capstan
