#include "core/io/safetensors.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

#include "core/base/error.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

struct ScratchFile : TemporaryFolder {
  std::string path = TemporaryFolder::path("file");
  void put(const std::string& content) const { write("file", content); }
  std::string get() const { return read("file"); }
};

/// A file with this header and data.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return length + header + data;
}

std::string error_of(const std::string& content) {
  const ScratchFile file;
  file.put(content);
  const std::string message = message_of<Error>([&] { SafetensorsFile{file.path}; });
  if (message == "no error") return "";
  CHECK(contains(message, file.path));
  return message;
}

std::string example_content() {
  const ScratchFile file;
  const std::vector<float> a = {1, -2, 3.5F, 0, 1e-30F, 7};
  const std::vector<double> b = {0.1, 0.2};
  const std::vector<int32_t> c = {-1, 1 << 30};
  write_safetensors(
      file.path,
      {{"a", DType::f32, {2, 3}, a.data()}, {"b", DType::f64, {2}, b.data()}, {"c", DType::i32, {2, 1}, c.data()}},
      {{"note", "x"}});
  return file.get();
}

}  // namespace

TEST_CASE("safetensors: what was written is read") {
  const ScratchFile file;
  file.put(example_content());
  const SafetensorsFile read(file.path);
  REQUIRE(read.tensors().size() == 3);
  CHECK(read.at("a").shape == std::vector<int64_t>{2, 3});
  CHECK(read.at("a").to_floats() == std::vector<float>{1, -2, 3.5F, 0, 1e-30F, 7});
  CHECK(read.at("b").to_doubles() == std::vector<double>{0.1, 0.2});
  CHECK(read.at("c").to_doubles() == std::vector<double>{-1, 1 << 30});
  CHECK(read.metadata().at("note") == "x");
  CHECK(read.find("d") == nullptr);
  CHECK_THROWS_AS(read.at("d"), Error);
}

TEST_CASE("safetensors: a file that several write in parts is that of a single writer") {
  const std::vector<float> a = {1, -2, 3.5F, 0, 1e-30F, 7};
  const std::vector<double> b = {0.1, 0.2};
  const std::vector<int32_t> c = {-1, 1 << 30};
  const ScratchFile file;
  const SafetensorsParts parts(
      file.path,
      {{"a", DType::f32, {2, 3}, nullptr}, {"b", DType::f64, {2}, nullptr}, {"c", DType::i32, {2, 1}, nullptr}},
      {{"note", "x"}});
  parts.create();
  parts.write({{"c", 0, 2, c.data()}, {"a", 4, 6, a.data() + 4}});
  parts.write({{"a", 0, 4, a.data()}, {"b", 1, 2, b.data() + 1}});
  CHECK_THROWS_AS(SafetensorsFile{file.path}, Error);
  parts.write({{"b", 0, 1, b.data()}});
  parts.finish();
  const std::string content = file.get();
  CHECK(content == example_content());
  file.put(content);
  const SafetensorsFile read(file.path);
  std::vector<double> part(3);
  read.at("a").copy_part(1, 4, part.data());
  CHECK(part == std::vector<double>{-2, 3.5, 0});
  CHECK_THROWS_AS(read.at("a").copy_part(1, 7, part.data()), std::invalid_argument);
}

namespace {

/// 5,000 rows of 3, of which some are not zero; with a tensor beside it.
struct Table {
  std::vector<float> values = std::vector<float>(15'000, 0.0F);
  std::vector<double> other{1, 2};
  std::vector<TensorToWrite> tensors;
  explicit Table(bool sparse) {
    std::vector<unsigned char> bits(625, 0);
    for (const int row : {0, 7, 8, 511, 512, 513, 4999}) {
      values[static_cast<size_t>(3 * row + row % 3)] = row == 7 ? -0.0F : static_cast<float>(row + 1);
      bits[static_cast<size_t>(row / 8)] =
          static_cast<unsigned char>(bits[static_cast<size_t>(row / 8)] | 1 << (row % 8));
    }
    tensors = {{"t", DType::f32, {5000, 3}, values.data()}, {"other", DType::f64, {2}, other.data()}};
    if (sparse) tensors[0].stored = std::make_shared<const StoredRows>(5000, bits);
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("safetensors: rows of zeros that are left out are read as zeros, in whole and in parts") {
  const ScratchFile file;
  const Table table(true);
  write_safetensors(file.path, table.tensors, {{"note", "x"}});
  const std::string content = file.get();
  CHECK(content.size() < 2000);
  const SafetensorsFile read(file.path);
  REQUIRE(read.tensors().size() == 2);
  CHECK(read.at("t").shape == std::vector<int64_t>{5000, 3});
  CHECK(read.at("t").size == 15'000);
  CHECK(same_bits(read.at("t").to_floats(), table.values));
  CHECK(read.at("other").to_doubles() == table.other);
  for (const int64_t begin : {0, 1, 20, 22, 25, 1535, 1539, 14'997, 15'000})
    for (const int64_t length : {0, 1, 2, 5, 40}) {
      const int64_t end = std::min<int64_t>(begin + length, 15'000);
      std::vector<float> part(static_cast<size_t>(end - begin), 9);
      read.at("t").copy_part(begin, end, part.data());
      CHECK(same_bits(part, {table.values.begin() + begin, table.values.begin() + end}));
    }
  const FileTensor rows = read.at("t").without_zeros();
  CHECK(rows.shape == std::vector<int64_t>{7, 3});
  CHECK(rows.to_floats()[3 * 6 + 1] == 5000);
  CHECK(read.at("other").without_zeros().to_doubles() == table.other);
  // Others see an ordinary file: rows, and the bits that say which.
  CHECK(content.find(R"("t.rows":{"data_offsets")") != std::string::npos);
  CHECK(content.find(R"("shape":[7,3])") != std::string::npos);
}

TEST_CASE("safetensors: few rows are found by the gaps between them") {
  std::vector<unsigned char> bits(625, 0);
  std::vector<float> values(5000, 0);
  for (const int row : {0, 1, 256, 257, 513, 1024, 4999}) {  // gaps of 0, 254, 0, 255, 510, and more
    bits[static_cast<size_t>(row / 8)] |= static_cast<unsigned char>(1 << (row % 8));
    values[static_cast<size_t>(row)] = static_cast<float>(row + 1);
  }
  const auto stored = std::make_shared<const StoredRows>(5000, bits, StoredRows::Form::gaps);
  const std::vector<unsigned char> gaps = stored->bytes();
  CHECK(std::vector<unsigned char>(gaps.begin(), gaps.begin() + 9) ==
        std::vector<unsigned char>{0, 0, 254, 0, 255, 0, 255, 255, 0});
  const ScratchFile file;
  write_safetensors(file.path, {{"t", DType::f32, {5000}, values.data(), stored}});
  CHECK(file.get().size() < 500);
  CHECK(same_bits(SafetensorsFile(file.path).at("t").to_floats(), values));
  const auto from = [&](int64_t rows, const std::vector<unsigned char>& all) {
    return StoredRows::from_gaps(rows, all.data(), static_cast<int64_t>(all.size())).count();
  };
  CHECK(from(5000, gaps) == 7);
  CHECK(from(255, {254}) == 1);
  CHECK(from(0, {}) == 0);
  for (const auto& [rows, bad] : std::vector<std::pair<int64_t, std::vector<unsigned char>>>{
           {4999, gaps}, {int64_t{1} << 40, {1}}, {255, {255}}, {255, {255, 0}}, {3, {0, 0, 0, 0}}, {0, {0}}})
    CHECK_THROWS_AS(from(rows, bad), std::invalid_argument);
}

TEST_CASE("safetensors: elements are multiplied by the factor of their tensor") {
  const ScratchFile file;
  const std::vector<unsigned char> bytes{0x38, 0xb8, 0x01, 0x7e};  // 1, -1, 2^-9, 448
  write_safetensors(file.path,
                    {{"a", DType::f8, {2, 2}, bytes.data(), nullptr, 0.25F}, {"b", DType::f8, {4}, bytes.data()}});
  const SafetensorsFile read(file.path);
  CHECK(read.at("a").to_floats() == std::vector<float>{0.25F, -0.25F, 0x1p-11F, 112});
  CHECK(read.at("b").to_doubles() == std::vector<double>{1, -1, 0x1p-9, 448});
  const auto with_factors = [](const std::string& description) {
    return error_of(file_of(R"({"__metadata__":{"factors":")" + description +
                                R"("},"t":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})",
                            std::string(1, '\0')));
  };
  CHECK(with_factors(R"({\"format\":1,\"of\":{\"t\":2.5}})") == "");
  for (const auto& [description, says] : std::vector<std::pair<const char*, const char*>>{
           {R"({\"format\":2,\"of\":{\"t\":2.5}})", "a newer version of Capstan wrote this file"},
           {R"({\"format\":1,\"of\":{\"u\":2.5}})", "tensor u"},
           {R"({\"format\":1,\"of\":{\"t\":\"x\"}})", "tensor t"},
           {R"({\"format\":1})", "factors"}})
    CHECK_MESSAGE(contains(with_factors(description), says), description, ": ", with_factors(description));
}

TEST_CASE("safetensors: rows that are left out of a file that several write, whose parts may begin within a row") {
  const ScratchFile file;
  const Table table(true);
  write_safetensors(file.path, table.tensors);
  const std::string single = file.get();
  const SafetensorsParts parts(file.path, table.tensors);
  parts.create();
  int64_t begin = 0;
  for (const int64_t end : {1, 22, 24, 1534, 15'000}) {
    parts.write({{"t", begin, end, table.values.data() + begin}});
    begin = end;
  }
  parts.write({{"other", 0, 2, table.other.data()}});
  parts.finish();
  CHECK(file.get() == single);
}

TEST_CASE("safetensors: rows and bits that do not match are damage, and a later form is that of a newer version") {
  const auto sparse = [](const std::string& description, const std::string& bits_dtype = "U8",
                         const std::string& bits = "t.rows") {
    return error_of(file_of(R"({"__metadata__":{"sparse":")" + description +
                                R"("},"t":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},")" + bits +
                                R"(":{"dtype":")" + bits_dtype + R"(","shape":[1],"data_offsets":[4,5]}})",
                            std::string("\0\0\0\0\1", 5)));
  };
  for (const int format : {1, 2, 3, 4}) {
    const std::string description = fmt::format(R"({{\"format\":{},\"rows\":{{\"t\":3}}}})", format);
    const bool for_pytorch = format > 2;
    CHECK(sparse(description, "U8", for_pytorch ? "t_rows" : "t.rows") == "");
    CHECK(contains(sparse(description, "U8", for_pytorch ? "t.rows" : "t_rows"), "there is no tensor t"));
  }
  for (const auto& [description, says] : std::vector<std::pair<const char*, const char*>>{
           {R"({\"format\":5,\"rows\":{\"t\":3}})", "a newer version of Capstan wrote this file"},
           {R"({\"format\":1,\"rows\":{\"t\":0}})", "tensor t"},
           {R"({\"format\":1,\"rows\":{\"t\":9}})", "tensor t"},
           {R"({\"format\":1,\"rows\":{\"t\":-1}})", "tensor t"},
           {R"({\"format\":1,\"rows\":{\"t\":1e300}})", "tensor t"},
           {R"({\"format\":1,\"rows\":{\"u\":3}})", "tensor u"},
           {R"({\"format\":1,\"rows\":[]})", "sparse"},
           {R"({\"rows\":{\"t\":3}})", "sparse"},
           {"{", "sparse"},
           {"7", "sparse"}})
    CHECK_MESSAGE(contains(sparse(description), says), description, ": ", sparse(description));
  CHECK(sparse(R"({\"format\":1,\"rows\":{\"t\":3}})", "I8").find("tensor t") != std::string::npos);
}

/// Processor time, in seconds, that opening a file of so many tables without rows takes.
double seconds_to_open(int tables) {
  const ScratchFile file;
  const auto none = std::make_shared<const StoredRows>(1, std::vector<unsigned char>{0});
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < tables; ++i) tensors.push_back({"t" + std::to_string(i), DType::u8, {1}, nullptr, none});
  write_safetensors(file.path, tensors);
  const std::clock_t begin = std::clock();
  CHECK(SafetensorsFile(file.path).tensors().size() == tensors.size());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST_CASE("safetensors: the time to open a file of tables without rows does not grow with their number's square") {
  const double few = seconds_to_open(2'000);
  CHECK(seconds_to_open(40'000) < 100 * few);  // 20 times as many tables
}

TEST_CASE("safetensors: a file takes no memory after its checksum was compared, nor after its tensors were copied") {
  const auto resident_bytes = [] {
    std::ifstream file("/proc/self/statm");
    int64_t size = 0, resident = 0;
    file >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  };
  const ScratchFile file;
  const auto odd_rows = std::make_shared<StoredRows>(2 << 20, std::vector<unsigned char>((2 << 20) / 8, 0xaa));
  for (const auto& stored : {std::shared_ptr<StoredRows>(), odd_rows}) {  // 64 MB in the file
    const int64_t rows = stored ? stored->rows() : 1 << 20;
    std::vector<float> values(static_cast<size_t>(rows) * 16, 1.5F);
    write_safetensors(file.path, {{"a", DType::f32, {rows, 16}, values.data(), stored}}, {});
    const int64_t before = resident_bytes();
    const SafetensorsFile read(file.path);
    CHECK(resident_bytes() - before < 24 << 20);
    read.at("a").copy_to(values.data());
    CHECK(resident_bytes() - before < 24 << 20);
    CHECK(values.back() == 1.5F);
  }
}

TEST_CASE("safetensors: half precisions, unaligned data, and files without a checksum") {
  const std::string data("\x00\x3c\x00\xc0\x01\x00\x00\x7c\x80\x3f\x49\x40",
                         12);  // 1, -2, 2^-24, inf; bf16 1, 3.140625
  const ScratchFile file;
  file.put(file_of(
      R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}})",
      data));
  const SafetensorsFile read(file.path);
  CHECK(read.at("h").to_doubles() == std::vector<double>{1, -2, std::ldexp(1.0, -24), HUGE_VAL});
  CHECK(read.at("b").to_doubles() == std::vector<double>{1, 3.140625});
}

TEST_CASE("safetensors: a scalar and an empty tensor") {
  const ScratchFile file;
  const float x = 5;
  write_safetensors(file.path, {{"s", DType::f32, {}, &x}, {"e", DType::f32, {0, 3}, nullptr}});
  const SafetensorsFile read(file.path);
  CHECK(read.at("s").to_floats() == std::vector<float>{5});
  CHECK(read.at("e").size == 0);
}

TEST_CASE("safetensors: damaged files are named with the tensor") {
  struct Case {
    const char* header;
    const char* expected;
  };
  for (
      const Case& c : {
          Case{R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", "its header:1:54: not JSON"},
          Case{R"([1])", "not a JSON object"},
          Case{
              R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              "\"t\" occurs twice"},
          Case{R"({"t":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "tensor t: unknown dtype \"F33\""},
          Case{R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "tensor t: F32 of shape [3]"},
          Case{R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "tensor t: its data [0, 12) is outside"},
          Case{R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "tensor t: its data [8, 0)"},
          Case{R"({"t":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "tensor t: expected whole numbers"},
          Case{R"({"t":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", "tensor t: expected whole numbers"},
          Case{R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", "tensor t: shape"},
          Case{R"({"t":{"dtype":"F32","shape":[2]}})", "tensor t: needs dtype"},
          Case{R"({"t":7})", "tensor t: needs dtype"},
          Case{
              R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              "tensor t: its data overlaps"},
          Case{R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "tensor t: its data leaves a gap"},
          Case{R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "4 bytes after the last tensor"},
          Case{R"({"__metadata__":{"k":1},"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "k is not a string"},
          Case{R"({"__metadata__":{"k":[[[[[[1]]]]]]}})", "nested deeper than 3 levels"},
      }) {
    CAPTURE(c.header);
    check_contains(error_of(file_of(c.header, "12345678")), {c.expected});
  }
  CHECK(error_of("").find("only 0 bytes") != std::string::npos);
  CHECK(error_of(std::string(8, '\xff')).find("declares") != std::string::npos);
  CHECK(error_of(file_of("{}").substr(0, 9)).find("ends inside the header") != std::string::npos);
  CHECK_THROWS_AS(SafetensorsFile("/nowhere/x.safetensors"), Error);
  CHECK_THROWS_AS(SafetensorsFile("/"), Error);
}

TEST_CASE("safetensors: a flipped bit anywhere, or a cut anywhere, is noticed") {
  const std::string whole = example_content();
  REQUIRE(error_of(whole).empty());
  int unnoticed = 0;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    if (error_of(flipped).empty()) ++unnoticed;
  }
  // What may pass: the checksum's own key misspelt (8 letters),
  // and spaces behind the header turned into other white space.
  CHECK(unnoticed <= 10);
  for (size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(error_of(whole.substr(0, length)).empty());
}

TEST_CASE("safetensors: random damage ends in success or an Error") {
  const std::string whole = example_content();
  std::mt19937 random(12);
  int failures = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string mutated = damaged(whole, random, "{}[]\",:0919-e ");
    // Half of them without a checksum, so that the checks behind it are reached.
    if (round % 2 == 0)
      if (const size_t key = mutated.find("xxh3_128"); key != std::string::npos) mutated[key] = 'y';
    const ScratchFile file;
    file.put(mutated);
    try {
      const SafetensorsFile read(file.path);
      for (const FileTensor& tensor : read.tensors())
        CHECK(static_cast<int64_t>(tensor.to_doubles().size()) == tensor.size);
    } catch (const Error&) {
      ++failures;
    }
  }
  CHECK(failures > 3000);
}
