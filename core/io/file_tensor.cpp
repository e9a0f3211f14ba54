// The tensors of an open safetensors file as numbers: elements are converted from what the file has of a tensor, rows
// that it left out become zeros, and the tensor's factor is multiplied in. tests/core/io/test_safetensors.cpp holds all
// three.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/f8.hpp"
#include "core/io/safetensors.hpp"

namespace capstan {
namespace {

struct DTypeInfo {
  DType dtype;
  const char* name;
  int64_t bytes;
};
constexpr DTypeInfo dtypes[] = {{DType::f64, "F64", 8},   {DType::f32, "F32", 4},     {DType::f16, "F16", 2},
                                {DType::bf16, "BF16", 2}, {DType::f8, "F8_E4M3", 1},  {DType::i64, "I64", 8},
                                {DType::i32, "I32", 4},   {DType::i16, "I16", 2},     {DType::i8, "I8", 1},
                                {DType::u8, "U8", 1},     {DType::boolean, "BOOL", 1}};

const DTypeInfo& info(DType dtype) {
  return *std::find_if(std::begin(dtypes), std::end(dtypes),
                       [&](const DTypeInfo& entry) { return entry.dtype == dtype; });
}

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 1023u;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
  const float value = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal
  return sign != 0 ? -value : value;
}

/// The value of every F8, by its bits.
const std::array<float, 256>& f8_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table{};
    for (size_t bits = 0; bits < table.size(); ++bits) table[bits] = to_float(F8{static_cast<uint8_t>(bits)});
    return table;
  }();
  return values;
}

template <class Stored, class T, class Convert>
void convert(const unsigned char* bytes, int64_t count, T* out, const Convert& to_number) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;  // the data of a file may be unaligned
    std::memcpy(&stored, bytes + static_cast<size_t>(i) * sizeof(stored), sizeof(stored));
    out[i] = static_cast<T>(to_number(stored));
  }
}

/// Elements [begin, end) of those that the file has.
template <class T>
void copy_stored(const FileTensor& tensor, int64_t begin, int64_t end, T* out) {
  const unsigned char* const bytes = tensor.bytes + begin * byte_size(tensor.dtype);
  const int64_t count = end - begin;
  const auto same = [](auto stored) { return stored; };
  switch (tensor.dtype) {
    case DType::f64:
      return convert<double>(bytes, count, out, same);
    case DType::f32:
      return convert<float>(bytes, count, out, same);
    case DType::f16:
      return convert<uint16_t>(bytes, count, out, half_to_float);
    case DType::bf16:
      return convert<uint16_t>(bytes, count, out, [](uint16_t bits) { return from_bits(uint32_t{bits} << 16); });
    case DType::f8:
      return convert<uint8_t>(bytes, count, out, [](uint8_t bits) { return f8_values()[bits]; });
    case DType::i64:
      return convert<int64_t>(bytes, count, out, same);
    case DType::i32:
      return convert<int32_t>(bytes, count, out, same);
    case DType::i16:
      return convert<int16_t>(bytes, count, out, same);
    case DType::i8:
      return convert<int8_t>(bytes, count, out, same);
    case DType::u8:
      return convert<uint8_t>(bytes, count, out, same);
    case DType::boolean:
      return convert<uint8_t>(bytes, count, out, [](uint8_t stored) { return stored != 0; });
  }
}

/// Takes a mapped file out of this process's memory as its elements are copied, 8 MB at a time, so that a model that is
/// loaded does not take it twice.
class Release {
 public:
  Release(const FileTensor& tensor, int64_t begin)
      : tensor_(tensor), step_((int64_t{8} << 20) / byte_size(tensor.dtype)), begin_(begin) {}
  /// Those before element `end` of the stored ones have been copied.
  void until(int64_t end) {
    if (tensor_.file == nullptr || end - begin_ < step_) return;
    const auto offset = [&](int64_t element) {
      return static_cast<size_t>(tensor_.bytes + element * byte_size(tensor_.dtype) - tensor_.file->data());
    };
    tensor_.file->release(offset(begin_), offset(end));
    begin_ = end;
  }
  /// The number of elements after which there is something to release.
  int64_t step() const { return step_; }

 private:
  const FileTensor& tensor_;
  int64_t step_, begin_;
};

template <class T>
void scale(const FileTensor& tensor, T* values, int64_t count) {
  if (tensor.factor == 1) return;
  for (int64_t i = 0; i < count; ++i) values[i] *= static_cast<T>(tensor.factor);
}

template <class T>
void copy_elements(const FileTensor& tensor, int64_t begin, int64_t end, T* out) {
  check(begin >= 0 && begin <= end && end <= tensor.size, "safetensors: elements [{}, {}) of {}", begin, end,
        tensor.size);
  if (!tensor.stored) {
    Release release(tensor, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t next = std::min(end, at + release.step());
      copy_stored(tensor, at, next, out + (at - begin));
      release.until(at = next);
    }
    return scale(tensor, out, end - begin);
  }
  const int64_t width = tensor.size / std::max<int64_t>(tensor.stored->rows(), 1);
  int64_t before = width > 0 ? tensor.stored->before(begin / width) : 0;  // stored rows in front of the current one
  Release release(tensor, before * width);
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / width, next = std::min(end, (row + 1) * width);
    if (tensor.stored->has(row)) {
      // Where the row's element 0 is among the stored ones, less where it is among all.
      const int64_t shift = (before++ - row) * width;
      copy_stored(tensor, at + shift, next + shift, out);
      scale(tensor, out, next - at);
      release.until(next + shift);
    } else {
      std::fill_n(out, next - at, T{0});
    }
    out += next - at;
    at = next;
  }
}

}  // namespace

std::optional<DType> dtype_called(const std::string& name) {
  for (const DTypeInfo& entry : dtypes)
    if (name == entry.name) return entry.dtype;
  return std::nullopt;
}
const char* to_string(DType dtype) { return info(dtype).name; }
int64_t byte_size(DType dtype) { return info(dtype).bytes; }

FileTensor FileTensor::without_zeros() const {
  FileTensor part = *this;
  if (!stored) return part;
  part.size = size / std::max<int64_t>(stored->rows(), 1) * stored->count();
  part.shape[0] = stored->count();
  part.stored = nullptr;
  return part;
}

void FileTensor::copy_part(int64_t begin, int64_t end, float* out) const { copy_elements(*this, begin, end, out); }
void FileTensor::copy_part(int64_t begin, int64_t end, double* out) const { copy_elements(*this, begin, end, out); }

}  // namespace capstan
