// oneDNN's products of bf16 matrices. Making one ready takes longer than to compute it, so each thread keeps those it
// has made, by shape and strides. A build without oneDNN has functions that say no.
// tests/core/products/float_bf16.cpp compares with products of floats.
#include "core/products/onednn_bf16.hpp"

#ifdef CAPSTAN_ONEDNN

#include <array>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <utility>

namespace capstan {
namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::desc matrix(int64_t rows, int64_t columns, int64_t stride, bool transposed, memory::data_type type) {
  return {{rows, columns}, type, transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

memory without_data(const memory::desc& description) { return {description, engine(), nullptr}; }

/// A product ready to run on any matrices of its shape.
class Prepared {
 public:
  /// Prepares products with the sizes, strides and beta of p; alpha is 1, and beta 0 or 1 (gemm_backend.hpp).
  explicit Prepared(const Product<Bf16, float>& p)
      : Prepared(matrix(p.m, p.k, p.a.stride, p.a.transposed(), memory::data_type::bf16),
                 matrix(p.k, p.n, p.b.stride, p.b.transposed(), memory::data_type::bf16),
                 matrix(p.m, p.n, p.c_stride, false, memory::data_type::f32), p.beta != 0) {}

  void run(const Product<Bf16, float>& p, const dnnl::stream& stream) {
    a_.set_data_handle(const_cast<Bf16*>(p.a.data));
    b_.set_data_handle(const_cast<Bf16*>(p.b.data));
    c_.set_data_handle(p.c);
    product_.execute(stream, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
  }

 private:
  Prepared(const memory::desc& a, const memory::desc& b, const memory::desc& c, bool accumulate)
      : a_(without_data(a)), b_(without_data(b)), c_(without_data(c)) {
    dnnl::primitive_attr attributes;
    if (accumulate) {
      dnnl::post_ops add;
      add.append_sum();
      attributes.set_post_ops(add);
    }
    product_ = dnnl::matmul({dnnl::matmul::desc(a, b, c), attributes, engine()});
  }

  memory a_, b_, c_;
  dnnl::matmul product_;
};

/// A cache of prepared products, one per thread. Training meets the same few dozen shapes in every step. Texts of many
/// lengths bring ever new shapes, so a full cache forgets all of them.
class PreparedProducts {
 public:
  bool run(const Product<Bf16, float>& p) {
    std::optional<Prepared>& prepared = prepared_for(p);
    if (prepared) prepared->run(p, stream_);
    return prepared.has_value();
  }

 private:
  using Key = std::array<int64_t, 9>;
  static constexpr size_t most = 512;

  /// The prepared product of these sizes, which is made on first use; empty where oneDNN has no kernel for it. After
  /// any other failure nothing is kept: an empty entry would send later products another way, with other bits.
  std::optional<Prepared>& prepared_for(const Product<Bf16, float>& p) {
    const Key key{p.m, p.n, p.k, p.a.stride, p.a.transposed(), p.b.stride, p.b.transposed(), p.c_stride, p.beta != 0};
    const auto known = products_.find(key);
    if (known != products_.end()) return known->second;
    if (products_.size() == most) products_.clear();
    std::optional<Prepared> made;
    try {
      made.emplace(p);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
    return products_.emplace(key, std::move(made)).first->second;
  }

  std::map<Key, std::optional<Prepared>> products_;
  dnnl::stream stream_{engine()};
};

}  // namespace

bool onednn_uses_bf16_instructions() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

bool onednn_multiply(const Product<Bf16, float>& product) {
  thread_local PreparedProducts products;
  return products.run(product);
}

}  // namespace capstan

#else

namespace capstan {

bool onednn_uses_bf16_instructions() { return false; }
bool onednn_multiply(const Product<Bf16, float>&) { return false; }

}  // namespace capstan

#endif
