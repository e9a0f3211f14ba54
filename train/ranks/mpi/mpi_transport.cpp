// libcapstan_mpi.so: messages by MPI (train/ranks/transport.hpp). Built against Open MPI or MPICH with the C interface,
// which both have; loaded by train/ranks/launch.cpp, so it uses nothing of the library.
// tests/cli/training/test_ranks.cpp runs it.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/ranks/transport.hpp"

namespace capstan {
namespace {

int tag(Channel channel) { return channel == Channel::work ? 1 : 2; }

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return std::string(text, static_cast<size_t>(std::max(length, 0)));
}

/// Throws what the library says of an error. `doing`: what could not be done.
void check(int error, const char* doing) {
  if (error != MPI_SUCCESS) throw std::runtime_error(std::string("MPI: cannot ") + doing + ": " + text_of(error));
}

/// The first line of what the library calls itself, without what follows its version.
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string name(text, static_cast<size_t>(std::max(length, 0)));
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

/// A request is a place in requests_, which the next one takes when it is done.
class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "start");
    if (provided < MPI_THREAD_FUNNELED)
      throw std::runtime_error("MPI: this library does not allow programs with threads");
    // A communicator of its own: nothing else of this process can take its messages.
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "start");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "start");
    check(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "start");
    check(MPI_Comm_rank(world_, &rank_), "start");
    check(MPI_Comm_size(world_, &size_), "start");
    library_ = library_name();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* library() const override { return library_.c_str(); }

  uint64_t send(int to, const void* bytes, size_t count, Channel channel) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, tag(channel), world_, &request), "send");
    return keep(request);
  }

  uint64_t receive(int from, void* bytes, size_t count, Channel channel) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, from, tag(channel), world_, &request), "receive");
    return keep(request);
  }

  bool done(uint64_t request) override {
    int flag = 0;
    check(MPI_Test(&requests_[request], &flag, MPI_STATUS_IGNORE), "receive");
    if (flag == 0) return false;
    free_.push_back(request);
    return true;
  }

  void abort(int code) override { MPI_Abort(world_, code); }
  void finish() override {
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) {  // words that did not come
        MPI_Cancel(&request);
        MPI_Request_free(&request);
      }
    MPI_Finalize();
  }

 private:
  uint64_t keep(MPI_Request request) {
    if (free_.empty()) {
      requests_.push_back(request);
      return requests_.size() - 1;
    }
    const uint64_t place = free_.back();
    free_.pop_back();
    requests_[place] = request;
    return place;
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::string library_;
  std::vector<MPI_Request> requests_;
  std::vector<uint64_t> free_;  // places in requests_
};

}  // namespace
}  // namespace capstan

extern "C" {

__attribute__((visibility("default"))) int capstan_transport_version() { return capstan::Transport::version; }

__attribute__((visibility("default"))) capstan::Transport* capstan_open_transport(char* problem, size_t room) {
  try {
    return new capstan::MpiTransport;
  } catch (const std::exception& error) {
    std::strncpy(problem, error.what(), room - 1);
    problem[room - 1] = '\0';
    return nullptr;
  }
}
}
