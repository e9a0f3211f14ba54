// Counts what clients have taken of a room, and gives it back where a part ends.
#include "serve/room.hpp"

namespace capstan {
namespace {

bool fits(const Need& taken, const Need& more, const Need& most) {
  return taken.places + more.places <= most.places && taken.bytes + more.bytes <= most.bytes;
}

}  // namespace

void Room::add(const std::string& client, const Need& need, int64_t sign) {
  Need& own = clients_.try_emplace(client, Need{0, 0}).first->second;
  for (Need* const taken : {&taken_, &own}) {
    taken->places += sign * need.places;
    taken->bytes += sign * need.bytes;
  }
  if (own.places == 0) clients_.erase(client);
}

bool Room::take(const std::string& client, const Need& need) {
  const std::lock_guard lock(mutex_);
  const auto own = clients_.find(client);
  if (!fits(taken_, need, all_) || !fits(own == clients_.end() ? Need{0, 0} : own->second, need, of_client_))
    return false;
  add(client, need, 1);
  return true;
}

std::shared_ptr<Room::Part> Room::enter(const std::string& client, const Need& need) {
  if (!take(client, need)) return nullptr;
  return std::make_shared<Part>(*this, client, need);
}

int64_t Room::places_taken() const {
  const std::lock_guard lock(mutex_);
  return taken_.places;
}

Room::Part::~Part() {
  const std::lock_guard lock(room_.mutex_);
  room_.add(client_, need_, -1);
}

void Room::Part::grow(int64_t bytes, int64_t most, const char* param, const char* lower) {
  if (need_.bytes + bytes > most)
    throw ApiError(400, fmt::format("{}: the answer has more than {} MB: lower {}", param, most >> 20, lower), param);
  if (!room_.take(client_, {0, bytes}))
    throw ApiError(429, fmt::format("no room for more of this client's answers: lower {}, or try again later", lower));
  need_.bytes += bytes;
}

}  // namespace capstan
