// Collects the rows that cannot be used, and says or throws which they are. tests/data/labelled/test_bad_rows.cpp holds
// the messages.
#include "data/files/bad_rows.hpp"

#include <algorithm>

namespace capstan {
namespace {

constexpr size_t shown = 10;    // problems in a message
constexpr int shown_alike = 3;  // of these, that differ by their place only

}  // namespace

void BadRows::add(const std::string& problem) {
  if (first_.size() < shown && ++alike_[problem.substr(std::min(problem.find(": "), problem.size()))] <= shown_alike)
    first_.push_back(problem);
  ++count_;
}

std::string BadRows::counted() const { return fmt::format("{} {}{}", count_, noun_, count_ == 1 ? "" : "s"); }

std::vector<std::string> BadRows::listed() const {
  std::vector<std::string> lines = first_;
  if (count_ > static_cast<int64_t>(first_.size()))
    lines.push_back(fmt::format("... and {} more", count_ - static_cast<int64_t>(first_.size())));
  return lines;
}

void BadRows::check(bool any_good) const {
  if (count_ == 0 || rule_ == OnError::skip) return;
  std::string message;
  for (const std::string& line : listed()) message += line + "\n";
  if (!any_good) throw BadRowsError(message + "data: no " + noun_ + " can be used");
  throw BadRowsError(message +
                     fmt::format("data: {} cannot be used: correct {}, or leave {} out with data.on_error: skip",
                                 counted(), count_ == 1 ? "it" : "them", count_ == 1 ? "it" : "them"));
}

std::vector<std::string> BadRows::repeated_headers() const {
  if (headers_ == 0) return {};
  return {fmt::format("data: {} left out that {} the header again, as in files that were joined; the first: {}",
                      headers_ == 1 ? "1 row" : fmt::format("{} rows", headers_), headers_ == 1 ? "is" : "are",
                      first_header_)};
}

std::vector<std::string> BadRows::summary() const {
  std::vector<std::string> lines = repeated_headers();
  if (count_ > 0 && rule_ == OnError::skip)
    lines.push_back(fmt::format("data: {} left out (on_error: skip), the first: {}", counted(), first_.front()));
  return lines;
}

}  // namespace capstan
