// A picture of a sweep: a result of its runs over one key of their configuration, as `capstan compare --picture` draws
// it. tests/run/test_sweep_picture.cpp holds lines, names and points.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// The vertical axis: the best validation by train.monitor, its bits per token, seconds of training, tokens
/// per second of training, or peak memory.
enum class PictureValue { score, bits, seconds, tokens_per_second, peak_rss_mb };

inline std::vector<EnumName<PictureValue>> enum_names(PictureValue) {
  return {{PictureValue::score, "score"},
          {PictureValue::bits, "bits"},
          {PictureValue::seconds, "seconds"},
          {PictureValue::tokens_per_second, "tokens_per_second"},
          {PictureValue::peak_rss_mb, "peak_rss_mb"}};
}

struct SweepPictureOptions {
  std::string over;  // the key of the horizontal axis, or its end: "window"
  PictureValue value = PictureValue::score;
  /// The name of a line, such as "attention": the vertical axis is then the seconds of training until the validation
  /// loss is the best one of that line's run at the same place, and runs that do not get there are left out.
  std::string reach;
};

/// An SVG that stands alone. A line has the runs that are alike but for the key, their seed and data.fold, of which
/// each point is the mean, with the sample deviation as a bar; it is called by the values of the other keys in which
/// the runs differ. Keys that follow from the key `over` count as alike. Runs without the key `over`, such as those of
/// a mixer that has no window, are a level line. Throws Error where runs do not differ in the key, or there is nothing
/// to draw.
std::string sweep_picture(const std::vector<RunRecord>& runs, const SweepPictureOptions& options);

}  // namespace capstan
