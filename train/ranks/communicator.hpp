// The processes of a job, called ranks, and what they say to each other, over a Transport: training steps, evaluation,
// checkpoints and the choices of run/ use it. All calls of a process come from one thread.
// tests/train/test_communicator.cpp has ranks as threads that stop or do not answer; tests/cli/training/test_ranks.cpp
// has processes.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/no_copy.hpp"
#include "train/ranks/transport.hpp"

namespace capstan {

/// Another rank ended, or does not answer.
class RankFailure : public Error {
 public:
  using Error::Error;
};

/// A message on its way.
struct Pending {
  uint64_t request = 0;
  int peer = 0;
  bool done = false;
};

/// Every method with "collective" in its comment is called by all ranks, in the same order. A job of one process has a
/// communicator of size 1, whose methods return at once. Waiting throws RankFailure, which names the rank, when a rank
/// of this machine has ended or shows no sign of life, and when nothing has arrived for too long. If the ranks from
/// which messages are missing wait themselves, the one for which they wait is named.
class Communicator : NoCopy {
 public:
  /// One process.
  Communicator();
  /// Collective. `timeout`: seconds without any message after which a rank that should have sent one counts as lost.
  Communicator(std::unique_ptr<Transport> transport, double timeout);
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }
  /// "rank 2 (process 4711 on node3)"
  std::string name_of(int rank) const;
  /// "4 ranks by Open MPI v4.1.4 on 2 machines", and a line with each rank's name.
  std::vector<std::string> description() const;
  /// The ranks of this machine, ascending.
  const std::vector<int>& neighbours() const { return neighbours_; }
  /// How many ranks of this machine, this one among them, have the same memory_limit(), such as a control group.
  int64_t sharing_memory() const;

  /// Collective: returns what all ranks give, by rank.
  std::vector<std::string> gather(std::string_view mine);
  /// Collective: gathers lists of texts without a \0.
  std::vector<std::vector<std::string>> gather_lists(const std::vector<std::string>& mine);
  /// Collective, blocks of one size: `all` has room for size() of them, and this rank's is in its place.
  void gather_blocks(void* all, size_t block);
  /// Collective: the values of all ranks, by rank. T must be trivially copyable.
  template <class T>
  std::vector<T> gather_values(const T& mine) {
    std::vector<T> all(static_cast<size_t>(size_));
    all[static_cast<size_t>(rank_)] = mine;
    gather_blocks(all.data(), sizeof(T));
    return all;
  }
  /// Collective: returns what rank 0 gives; other ranks may give anything.
  std::string broadcast(std::string_view of_first);
  /// Collective: returns when all ranks have called it.
  void barrier();

  /// Begins to send or receive; the memory is used until wait() has returned. Messages to a rank arrive in order.
  /// Throws std::invalid_argument for more bytes than Transport::longest.
  Pending send(int to, const void* bytes, size_t count);
  Pending receive(int from, void* bytes, size_t count);
  /// Returns when all are done.
  void wait(std::vector<Pending>& all);
  /// Other ranks may compute for so many seconds before they send: waiting allows ten times as long, if that is more
  /// than the time-out.
  void expect_pause(double seconds) { pause_ = seconds; }
  static constexpr double long_timeout_factor = 60;
  /// While it lives, waiting for a rank of this machine has no limit as long as that shows signs of life, and waiting
  /// for others has the limit long_timeout_factor * timeout: for work that takes one rank much longer than another.
  class LongTimeout : NoCopy {
   public:
    explicit LongTimeout(Communicator& ranks) : ranks_(ranks) { ++ranks_.long_timeouts_; }
    ~LongTimeout() { --ranks_.long_timeouts_; }

   private:
    Communicator& ranks_;
  };

  int64_t bytes_sent() const { return bytes_sent_; }

  /// Ends all ranks with this exit code. Does nothing in a job of one process.
  void abort(int code) noexcept;

 private:
  struct Place {
    std::string host;     // name
    std::string machine;  // what processes that see each other's ids have in common
    int64_t process = 0;
    std::string memory;  // what limits its memory
  };
  class Watch;
  class WaitingRanks;

  /// Asks once whether it is done.
  bool is_done(Pending& pending);
  void wait_for(Pending one);
  /// Throws RankFailure if a process of this machine has ended. Those of other machines are noticed by their silence.
  void look_for_ended() const;
  /// Is it a rank of this machine?
  bool is_neighbour(int rank) const;
  /// Throws RankFailure after so many seconds without any message.
  [[noreturn]] void give_up(const std::vector<Pending>& missing, double seconds) const;
  [[noreturn]] void give_up(const std::set<int>& ranks, const char* missing, double seconds) const;

  std::unique_ptr<Transport> transport_;
  int rank_ = 0, size_ = 1;
  double timeout_ = 0, pause_ = 0;
  int long_timeouts_ = 0;
  std::vector<Place> places_;
  std::vector<int> neighbours_{0};
  std::unique_ptr<WaitingRanks> waiting_;  // null: there is no other rank
  int64_t bytes_sent_ = 0;
};

}  // namespace capstan
