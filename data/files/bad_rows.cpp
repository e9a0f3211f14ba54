#include "data/files/bad_rows.hpp"

namespace capstan {
namespace {

constexpr size_t shown = 10;

}  // namespace

void BadRows::add(const std::string& problem) {
  if (first_.size() < shown) first_.push_back(problem);
  ++count_;
}

std::string BadRows::counted() const { return fmt::format("{} {}{}", count_, noun_, count_ == 1 ? "" : "s"); }

void BadRows::check() const {
  if (count_ == 0 || rule_ == OnError::skip) return;
  std::string message;
  for (const std::string& problem : first_) message += problem + "\n";
  if (count_ > static_cast<int64_t>(first_.size()))
    message += fmt::format("... and {} more\n", count_ - static_cast<int64_t>(first_.size()));
  throw Error(message + fmt::format("data: {} cannot be used: correct {}, or leave {} out with data.on_error: skip",
                                    counted(), count_ == 1 ? "it" : "them", count_ == 1 ? "it" : "them"));
}

std::vector<std::string> BadRows::summary() const {
  if (count_ == 0) return {};
  return {fmt::format("data: {} left out (on_error: skip), the first: {}", counted(), first_.front())};
}

}  // namespace capstan
