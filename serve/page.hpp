// page.html, as serve/CMakeLists.txt puts it into the program.
#pragma once

namespace capstan {

extern const char* const serve_page;

}  // namespace capstan
