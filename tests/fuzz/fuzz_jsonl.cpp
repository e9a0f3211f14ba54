#include "tests/fuzz/tables.hpp"

namespace capstan::fuzz {
namespace {

const Registered jsonl_target("jsonl", [](std::string_view input) { read_rows_of(input, "jsonl"); });

}  // namespace
}  // namespace capstan::fuzz
