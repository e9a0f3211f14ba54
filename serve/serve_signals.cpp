// SIGTERM drains the server, a second one or SIGINT stops it, SIGHUP opens the runs anew. tests/cli/test_serve.sh.
#include "serve/serve_signals.hpp"

#include <ctime>

#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

ServeSignals::ServeSignals() {
  sigemptyset(&watched_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched_, signal);
  parallel_for(threads(), 1, [&](int64_t, int64_t) { pthread_sigmask(SIG_BLOCK, &watched_, nullptr); });
  thread_ = std::thread([this] { watch(); });
}

void ServeSignals::run(Server& server) {
  server_ = &server;
  try {
    server.run();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void ServeSignals::end() {
  if (!thread_.joinable()) return;
  done_ = true;
  thread_.join();
  pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
}

/// Waits for a signal with a pause, so that end() need not send one to wake it.
void ServeSignals::watch() {
  while (!done_) {
    const timespec pause{0, 50'000'000};
    if (const int signal = sigtimedwait(&watched_, nullptr, &pause); signal > 0) act(signal);
  }
}

void ServeSignals::act(int signal) {
  Server* const server = server_;
  if (server == nullptr) {
    pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  } else if (signal == SIGHUP) {
    server->reload();
  } else if (signal == SIGTERM && !drains_) {
    drains_ = true;
    log_info("SIGTERM: what is under way is still answered; a second signal ends it");
    server->drain();
  } else {
    server->stop();
  }
}

}  // namespace capstan
