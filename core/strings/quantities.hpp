// Numbers, times and sizes as people read them: tests/core/strings/test_text.cpp.
#pragma once

#include <string>

namespace capstan {

/// "12.3k", "4.56M".
std::string short_count(double count);
/// "2m10s", "3h04m".
std::string short_time(double seconds);
/// "512 bytes", "1.4 MB", in powers of 1000.
std::string bytes_text(double bytes);

}  // namespace capstan
