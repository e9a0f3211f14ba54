#include "tests/fuzz/tables.hpp"

namespace capstan::fuzz {
namespace {

const Registered csv_target("csv", [](std::string_view input) { read_rows_of(input, "csv"); });

}  // namespace
}  // namespace capstan::fuzz
