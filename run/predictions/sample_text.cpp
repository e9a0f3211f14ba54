#include "run/predictions/sample_text.hpp"

#include <algorithm>
#include <utility>

namespace capstan {

std::string StopFilter::push(const std::string& text) {
  pending_ += text;
  for (const std::string& stop : stops_) {
    const size_t at = pending_.find(stop);
    if (at == std::string::npos) continue;
    done_ = true;
    return std::exchange(pending_, "").substr(0, at);
  }
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t length = std::min(stop.size() - 1, pending_.size()); length > keep; --length)
      if (pending_.compare(pending_.size() - length, length, stop, 0, length) == 0) keep = length;
  const std::string shown = pending_.substr(0, pending_.size() - keep);
  pending_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() { return std::exchange(pending_, ""); }

}  // namespace capstan
