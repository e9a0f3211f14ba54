#include "train/signals.hpp"

namespace capstan {
namespace {

constexpr int watched[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int number) {
  if (number == SIGINT && received_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  received_signal = number;
}

}  // namespace

StopSignals::StopSignals() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &action, &previous_[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &previous_[i], nullptr);
}

int StopSignals::received() { return received_signal; }

}  // namespace capstan
