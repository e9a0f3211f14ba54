// Descriptors 0, 1 and 2, which a program may be started without.
#pragma once

namespace capstan {

/// Opens /dev/null on those that are closed, so that no file of the program gets their number and with it the log.
/// Writing to a standard output that was closed fails, as it would without this. Ends the process when /dev/null is
/// missing.
void open_standard_descriptors();

}  // namespace capstan
