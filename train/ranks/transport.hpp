// Messages between the processes of a job: what a plugin such as libcapstan_mpi.so provides, and what Communicator is
// made on. In tests, ranks are threads with a transport of their own (tests/train/rank_threads.hpp). A plugin may be
// built apart from the program: a change of this header raises Transport::version.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/no_copy.hpp"

namespace capstan {

/// Two kinds of messages, which do not wait for each other: those of the work, and words between ranks that wait.
enum class Channel { work, words };

/// Messages from one process to another. Those of a channel from a to b arrive in the order in which they were sent, so
/// that the receiver, who knows what comes next, needs no labels. All calls come from one thread. Methods throw
/// std::runtime_error when the library reports a failure.
class Transport {
 public:
  /// Raised when this class changes: plugins of other versions are refused.
  static constexpr int version = 2;
  /// The most bytes of one message.
  static constexpr size_t longest = size_t{1} << 30;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "Open MPI v4.1.4"
  virtual const char* library() const = 0;

  /// Begins to send or to receive `count` bytes, which must stay where they are until done().
  virtual uint64_t send(int to, const void* bytes, size_t count, Channel channel) = 0;
  virtual uint64_t receive(int from, void* bytes, size_t count, Channel channel) = 0;
  /// Is it done? Does not wait. The request is gone once the answer was true.
  virtual bool done(uint64_t request) = 0;

  /// Ends all processes of the job with this exit code, this one last; returns if the library cannot.
  virtual void abort(int code) = 0;
  /// All processes call it, at the end.
  virtual void finish() = 0;
};

/// What a plugin exports by these names. `problem` takes the reason when the result is null.
using TransportVersion = int (*)();
using OpenTransport = Transport* (*)(char* problem, size_t room);
constexpr const char* transport_version_name = "capstan_transport_version";
constexpr const char* open_transport_name = "capstan_open_transport";

/// A limit for calls of other libraries that cannot be interrupted. Ends the process with a message and exit code 1
/// unless it is destroyed within `seconds`: where a process of a job was killed while all were starting or ending, MPI
/// may wait for it for ever.
class Deadline : NoCopy {
 public:
  Deadline(double seconds, std::string message);
  ~Deadline();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;  // the end of what was limited
  std::thread thread_;
};

}  // namespace capstan
