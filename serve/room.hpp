// How much of a server's room clients have taken: places for texts with the memory of answers, and the memory of
// requests that wait to be read. tests/serve/test_clients.cpp holds the limits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/no_copy.hpp"
#include "serve/api.hpp"

namespace capstan {

/// What a request takes until it is answered.
struct Need {
  int64_t places = 1;  // sequences and other work, running or waiting
  int64_t bytes = 0;
};

/// What all clients may have together, and one of them. Thread-safe.
class Room {
 public:
  class Part;
  Room(const Need& all, const Need& of_client) : all_(all), of_client_(of_client) {}

  /// The most that a client can ever have.
  const Need& max_of_client() const { return of_client_; }
  /// Takes what is needed. Null where the client cannot have so much now. The room must outlive the part.
  std::shared_ptr<Part> enter(const std::string& client, const Need& need);
  int64_t places_taken() const;

 private:
  bool take(const std::string& client, const Need& need);
  void add(const std::string& client, const Need& need, int64_t sign);

  const Need all_, of_client_;
  mutable std::mutex mutex_;
  Need taken_{0, 0};
  std::map<std::string, Need> clients_;
};

/// What one request has of a room, which it gives back at the end.
class Room::Part : NoCopy {
 public:
  Part(Room& room, std::string client, const Need& need) : room_(room), client_(std::move(client)), need_(need) {}
  ~Part();

  int64_t bytes() const { return need_.bytes; }
  /// Takes more memory for an answer. Throws ApiError 400 above `most` bytes in all, and 429 where the client cannot
  /// have so much now; both name the field `param` and say to lower `lower`.
  void grow(int64_t bytes, int64_t most, const char* param, const char* lower);

 private:
  Room& room_;
  const std::string client_;
  Need need_;
};

}  // namespace capstan
