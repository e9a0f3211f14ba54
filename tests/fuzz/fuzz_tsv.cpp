#include "tests/fuzz/tables.hpp"

namespace capstan::fuzz {
namespace {

const Registered tsv_target("tsv", [](std::string_view input) { read_rows_of(input, "tsv"); });

}  // namespace
}  // namespace capstan::fuzz
