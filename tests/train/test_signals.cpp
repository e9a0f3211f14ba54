#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "core/machine/parallel.hpp"
#include "core/products/gemm_backend.hpp"
#include "tests/support/threads.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

std::atomic<int> handled = 0;
std::atomic<pthread_t> handled_by{};

extern "C" void note_thread(int) {
  handled_by = pthread_self();
  ++handled;
}

/// SIGUSR2 is noted while it lives.
class NotedSignal {
 public:
  NotedSignal() {
    handled = 0;
    struct sigaction action {};
    action.sa_handler = note_thread;
    sigaction(SIGUSR2, &action, &before_);
  }
  ~NotedSignal() { sigaction(SIGUSR2, &before_, nullptr); }
  NotedSignal(const NotedSignal&) = delete;
  NotedSignal& operator=(const NotedSignal&) = delete;

 private:
  struct sigaction before_;
};

/// Of every thread of parallel_for: is SIGUSR2 blocked?
std::vector<bool> blocked_in_team() {
  std::vector<int> blocked(static_cast<size_t>(threads()), -1);
  parallel_for(threads(), 1, [&](int64_t begin, int64_t) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked[static_cast<size_t>(begin)] = sigismember(&mask, SIGUSR2);
  });
  return {blocked.begin(), blocked.end()};
}

}  // namespace

TEST_CASE("while a SignalThread lives, no signal to the process interrupts a thread that computes") {
  const Threads threads_used(2);
  const NotedSignal noted;
  CHECK(blocked_in_team() == std::vector<bool>{false, false});
  {
    const SignalThread signal_thread;
    CHECK(blocked_in_team() == std::vector<bool>{true, true});
    kill(getpid(), SIGUSR2);
    while (handled == 0) std::this_thread::yield();
    CHECK_FALSE(pthread_equal(handled_by, pthread_self()));
    bool inherited = false;
    std::thread([&] { inherited = blocked_in_team().front(); }).join();
    CHECK(inherited);
  }
  CHECK(blocked_in_team() == std::vector<bool>{false, false});
}

TEST_CASE("what the caller had blocked stays blocked, on the SignalThread as well") {
  const Threads threads_used(2);  // no thread of an earlier team is left out
  const NotedSignal noted;
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &own, &before);
  {
    const SignalThread signal_thread;
    kill(getpid(), SIGUSR2);
  }
  CHECK(handled == 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (handled == 0) std::this_thread::yield();
}

TEST_CASE("signals during float products leave the heap and the products whole") {
  const int64_t m = 256, n = 128, k = 512;
  const std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f);
  const NotedSignal noted;
  const SignalThread signal_thread;
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) {
      kill(getpid(), SIGUSR2);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  bool right = true;
  for (int round = 0; round < 200 || handled < 100; ++round) {
    // Neighbours of what the product takes for itself: the heap notices their damage when they go.
    const std::vector<float> neighbour(1000 + 100 * static_cast<size_t>(round % 7), 1.0f);
    std::vector<float> c(m * n);
    multiply(Product<float>{m, n, k, {a.data(), k}, {b.data(), n}, c.data(), n, 1, 0});
    right = right && std::all_of(c.begin(), c.end(), [](float x) { return x == 64; }) && neighbour.back() == 1;
  }
  stop = true;
  sender.join();
  CHECK(right);
}
