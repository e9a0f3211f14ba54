// report.css and report.js, as run/CMakeLists.txt puts them into the program.
#pragma once

namespace capstan {

extern const char *const report_style, *const report_script;

}  // namespace capstan
