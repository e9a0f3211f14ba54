// Waiting asks the transport in turns, which become rarer, and looks for what may never come: ended and stopped
// processes of this machine (Watch), and ranks of other machines, which tell each other for whom they wait
// (WaitingRanks). tests/train/test_communicator.cpp.
#include "train/ranks/communicator.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <list>
#include <map>

#include "core/machine/memory_limit.hpp"
#include "core/strings/strings.hpp"
#include "train/ranks/transport.hpp"

namespace capstan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof(name) - 1) != 0) return "an unknown machine";
  return name;
}

/// Host name, boot id and namespace of process ids, which differs between two containers on one machine.
std::string machine_name() {
  char space[64] = "";
  const ssize_t length = ::readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + " " + boot + " " + std::string(space, static_cast<size_t>(std::max<ssize_t>(length, 0)));
}

/// A text that changes while a process of this machine works or looks out for messages, and stays the same while it is
/// stopped or waits for what does not come. Empty where that cannot be known, and for a process that waits for a disk.
std::string sign_of_life(int64_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::string status, times;
  std::getline(std::ifstream(folder + "/stat"), status);
  std::getline(std::ifstream(folder + "/schedstat"), times);  // of its first thread, in nanoseconds
  const size_t name_end = status.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= status.size()) return "";
  if (status[name_end + 2] == 'D') return "";
  size_t at = name_end + 2;  // the state is field 3; user and system time of all threads are fields 14 and 15
  for (int field = 3; field < 14 && at != std::string::npos; ++field) at = status.find(' ', at + 1);
  const size_t end = at == std::string::npos ? at : status.find(' ', status.find(' ', at + 1) + 1);
  return at == std::string::npos ? "" : status.substr(at, end - at) + " " + times;
}

}  // namespace

/// Ranks that have waited for some time tell all others for whom: if 0 waits for 1, and 1 for 2, then 2 is missing.
class Communicator::WaitingRanks : NoCopy {
 public:
  explicit WaitingRanks(Communicator& ranks) : ranks_(ranks) {}

  /// Tells the others that this rank waits for `peer`, at most eight times within the time-out, and hears what they
  /// tell. A receive from each of them is always on its way: `unknown` marks those for which none has begun.
  void exchange(int peer) {
    Transport& transport = *ranks_.transport_;
    const bool tells = seconds_since(told_) >= ranks_.timeout_ / 8;
    if (tells) told_ = Clock::now();
    sent_.remove_if([&](const Word& word) { return transport.done(word.request); });
    for (int rank = 0; rank < ranks_.size_; ++rank) {
      if (rank == ranks_.rank_) continue;
      Word& next = next_[rank];
      const auto listen = [&] {
        next.request = transport.receive(rank, &next.waits_for, sizeof(next.waits_for), Channel::words);
      };
      if (next.waits_for == unknown) {
        next.waits_for = ranks_.rank_;
        listen();
      }
      for (; transport.done(next.request); listen()) heard_[rank] = {next.waits_for, Clock::now()};
      if (!tells) continue;
      sent_.push_back({peer});
      sent_.back().request = transport.send(rank, &sent_.back().waits_for, sizeof(peer), Channel::words);
    }
  }

  /// Has any other rank told that it waits?
  bool hears_any() const {
    return std::any_of(heard_.begin(), heard_.end(), [&](const auto& entry) { return is_fresh(entry.second); });
  }

  /// The rank for which `peer` waits, or the one for which that waits, and so on.
  int last_in_line(int peer) const {
    int last = peer;
    for (int count = 0; count < ranks_.size_; ++count) {
      const auto found = heard_.find(last);
      if (found == heard_.end() || !is_fresh(found->second) || found->second.waits_for == ranks_.rank_) return last;
      last = found->second.waits_for;
    }
    return peer;  // they wait for each other
  }

 private:
  static constexpr int unknown = -1;
  /// A message, and the memory that it is sent from or received into.
  struct Word {
    int waits_for = unknown;
    uint64_t request = 0;
  };
  struct Heard {
    int waits_for;
    Clock::time_point at;
  };
  /// Was it told lately, so that the rank still waits?
  bool is_fresh(const Heard& heard) const { return seconds_since(heard.at) < ranks_.timeout_ / 3; }

  Communicator& ranks_;
  Clock::time_point told_;
  std::list<Word> sent_;        // on their way; a list, so that they stay where they are
  std::map<int, Word> next_;    // by sender: what is being received
  std::map<int, Heard> heard_;  // by sender: what came last
};

/// How long nothing has arrived, stops of this process not counted: a job stopped as a whole (Ctrl-Z, a
/// suspended job of Slurm) loses none of its ranks.
class Communicator::Watch : NoCopy {
 public:
  explicit Watch(Communicator& ranks) : ranks_(ranks) {}

  /// Call it when something has arrived.
  void moved() {
    idle_ = 0;
    checked_ = Clock::now();
    turns_ = 0;
  }
  /// Call it when nothing has arrived: lets others use the processor, for longer and longer, and throws RankFailure
  /// when there is nothing to wait for.
  void pause(const std::vector<Pending>& missing) {
    const timespec nap{0, ++turns_ < 20000 ? 5'000 : 200'000};
    turns_ < 200 ? ::sched_yield() : ::nanosleep(&nap, nullptr);
    // On a busy machine a turn may take long: the clock says when it is time to look around, not their number.
    double passed = seconds_since(checked_);
    if (passed < 0.05) return;
    ranks_.look_for_ended();
    passed = std::min(passed, std::max(0.5, ranks_.timeout_ / 4));  // a longer turn means that this process was stopped
    checked_ = Clock::now();
    look_for_still(passed);
    idle_ += passed;
    if (ranks_.waiting_ != nullptr && idle_ > ranks_.timeout_ / 8)
      ranks_.waiting_->exchange(
          std::find_if(missing.begin(), missing.end(), [](const Pending& pending) { return !pending.done; })->peer);
    if (idle_ <= std::max(ranks_.timeout_, 10 * ranks_.pause_)) return;
    const bool far = std::any_of(missing.begin(), missing.end(), [&](const Pending& pending) {
      return !pending.done && !ranks_.is_neighbour(pending.peer);
    });
    if (ranks_.long_timeouts_ == 0 || (far && idle_ > long_timeout_factor * ranks_.timeout_))
      ranks_.give_up(missing, idle_);
  }

 private:
  struct Life {
    std::string sign;
    double still = 0;  // seconds
  };

  /// Throws RankFailure for a rank of this machine that shows no sign of life. Others may wait for it, too: it is named
  /// before they miss each other's messages.
  void look_for_still(double passed) {
    unseen_ += passed;
    if (unseen_ < std::min(1.0, ranks_.timeout_ / 20)) return;
    for (const int rank : ranks_.neighbours_) {
      if (rank == ranks_.rank_ || static_cast<size_t>(rank) >= ranks_.places_.size()) continue;
      const std::string sign = sign_of_life(ranks_.places_[static_cast<size_t>(rank)].process);
      Life& life = lives_[rank];
      life = {sign, sign.empty() || sign != life.sign ? 0 : life.still + unseen_};
      if (life.still > 0.75 * ranks_.timeout_) ranks_.give_up({rank}, "sign of life", life.still);
    }
    unseen_ = 0;
  }

  Communicator& ranks_;
  Clock::time_point checked_ = Clock::now();
  double idle_ = 0, unseen_ = 0;  // seconds
  std::map<int, Life> lives_;     // of the ranks of this machine
  int64_t turns_ = 0;
};

Communicator::Communicator() = default;

Communicator::Communicator(std::unique_ptr<Transport> transport, double timeout)
    : transport_(std::move(transport)), rank_(transport_->rank()), size_(transport_->size()), timeout_(timeout) {
  std::vector<Place> places;
  for (const std::vector<std::string>& parts :
       gather_lists({host_name(), machine_name(), std::to_string(::getpid()), memory_limit().of}))
    places.push_back({parts.at(0), parts.at(1), std::stoll(parts.at(2)), parts.at(3)});
  places_ = std::move(places);
  neighbours_.clear();
  for (int rank = 0; rank < size_; ++rank)
    if (places_[static_cast<size_t>(rank)].machine == places_[static_cast<size_t>(rank_)].machine)
      neighbours_.push_back(rank);
  waiting_ = std::make_unique<WaitingRanks>(*this);
}

Communicator::~Communicator() {
  if (transport_ == nullptr) return;
  try {
    const Deadline end(0.75 * timeout_, "MPI does not end: another process of the job has ended before");
    transport_->finish();
  } catch (const std::exception&) {  // the job has ended, and nothing is left to be done
  }
}

std::string Communicator::name_of(int rank) const {
  if (static_cast<size_t>(rank) >= places_.size()) return fmt::format("rank {}", rank);
  const Place& place = places_[static_cast<size_t>(rank)];
  return fmt::format("rank {} (process {} on {})", rank, place.process, place.host);
}

int64_t Communicator::sharing_memory() const {
  if (places_.empty()) return 1;
  const std::string& mine = places_[static_cast<size_t>(rank_)].memory;
  if (starts_with(mine, "ulimit")) return 1;  // such a limit is of each process alone
  return std::count_if(neighbours_.begin(), neighbours_.end(),
                       [&](int rank) { return places_[static_cast<size_t>(rank)].memory == mine; });
}

std::vector<std::string> Communicator::description() const {
  std::set<std::string> machines;
  for (const Place& place : places_) machines.insert(place.machine);
  std::vector<std::string> lines{fmt::format("{} ranks by {} on {} machine{}", size_,
                                             transport_ ? transport_->library() : "nothing",
                                             std::max<size_t>(machines.size(), 1), machines.size() > 1 ? "s" : "")};
  for (int rank = 0; rank < size_; ++rank) lines.push_back("  " + name_of(rank));
  return lines;
}

Pending Communicator::send(int to, const void* bytes, size_t count) {
  check(count <= Transport::longest, "ranks: a message of {} bytes is too long", count);
  bytes_sent_ += static_cast<int64_t>(count);
  return {transport_->send(to, bytes, count, Channel::work), to};
}

Pending Communicator::receive(int from, void* bytes, size_t count) {
  check(count <= Transport::longest, "ranks: a message of {} bytes is too long", count);
  return {transport_->receive(from, bytes, count, Channel::work), from};
}

bool Communicator::is_done(Pending& pending) {
  if (!pending.done) pending.done = transport_->done(pending.request);
  return pending.done;
}

void Communicator::wait(std::vector<Pending>& all) {
  Watch watch(*this);
  for (Pending& pending : all) {
    while (!is_done(pending)) {
      // While this message is missing, others of the list may arrive.
      bool moved = false;
      for (Pending& other : all) moved = (!other.done && is_done(other)) || moved;
      if (moved)
        watch.moved();
      else
        watch.pause(all);
    }
    watch.moved();
  }
}

void Communicator::wait_for(Pending one) {
  std::vector<Pending> all{one};
  wait(all);
}

void Communicator::look_for_ended() const {
  for (const int rank : neighbours_) {
    if (static_cast<size_t>(rank) >= places_.size()) continue;
    const auto process = static_cast<pid_t>(places_[static_cast<size_t>(rank)].process);
    if (::kill(process, 0) != 0 && errno == ESRCH)
      throw RankFailure(fmt::format(
          "{} has ended: the job cannot go on without it. The last checkpoint is whole; the same command continues the "
          "run, with any number of ranks",
          name_of(rank)));
  }
}

void Communicator::give_up(const std::vector<Pending>& missing, double seconds) const {
  std::set<int> ranks;
  for (const Pending& pending : missing)
    if (!pending.done) ranks.insert(waiting_ != nullptr ? waiting_->last_in_line(pending.peer) : pending.peer);
  const bool alone = size_ > 2 && waiting_ != nullptr && !waiting_->hears_any();
  const std::string cut_off = fmt::format("message reaches {}, which may be cut off itself,", name_of(rank_));
  give_up(ranks, alone ? cut_off.c_str() : "message", seconds);
}

void Communicator::give_up(const std::set<int>& ranks, const char* missing, double seconds) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(name_of(rank));
  throw RankFailure(fmt::format(
      "no {} from {} for {:.0f} seconds: it has ended, hangs, or the network is down (--rank-timeout sets the "
      "limit). The last checkpoint is whole; the same command continues the run, with any number of ranks",
      missing, join(names, " or "), seconds));
}

bool Communicator::is_neighbour(int rank) const {
  return std::find(neighbours_.begin(), neighbours_.end(), rank) != neighbours_.end();
}

void Communicator::abort(int code) noexcept {
  if (transport_ == nullptr) return;
  try {
    const Deadline end(std::max(1.0, timeout_ / 6), "MPI does not end the other processes of the job");
    transport_->abort(code);
  } catch (const std::exception&) {  // this process ends all the same
  }
  ::_exit(code);
}

}  // namespace capstan
