// Reverse-mode automatic differentiation on a tape.
//
// The tape is a vector of records in creation order, which is a topological order. An op calls make_var with its value
// and a pullback: a function from the gradient of the output to the gradients of the inputs. Pullbacks *return*
// gradients; the engine counts them, sums them over broadcast axes, checks their shapes, adds them up, and frees every
// record as it goes. Gradients that arrive at one value are added in the reverse order of the records, so a training
// step's bits depend on the order in which a model calls its ops. A tape belongs to the thread that made it.
// tests/core/autograd/test_tape.cpp holds the contract.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/autograd/var.hpp"
#include "core/base/no_copy.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// A pullback's answer for one input: nothing, a gradient (of the input's shape or one it broadcasts to), the gradient
/// of some rows of a table, or the note that the gradient has been added to the input's block already.
class Grad {
 public:
  Grad() = default;
  Grad(Array value) : value_(std::move(value)), kind_(Kind::value) {}  // NOLINT: pullbacks write {dx, dw}
  Grad(RowGrads rows) : rows_(std::move(rows)), kind_(Kind::rows) {}   // NOLINT: the same
  static Grad accumulated() {
    Grad grad;
    grad.kind_ = Kind::accumulated;
    return grad;
  }
  bool has_value() const { return kind_ == Kind::value; }
  bool has_rows() const { return kind_ == Kind::rows; }
  bool is_accumulated() const { return kind_ == Kind::accumulated; }
  const Array& value() const { return value_; }
  Array take() { return std::move(value_); }
  const RowGrads& rows() const { return rows_; }
  RowGrads take_rows() { return std::move(rows_); }

 private:
  enum class Kind { none, value, rows, accumulated };
  Array value_;
  RowGrads rows_;
  Kind kind_ = Kind::none;
};
using Grads = std::vector<Grad>;

/// Which inputs of a record need a gradient.
class Needs {
 public:
  explicit Needs(const std::vector<std::shared_ptr<GradSlot>>& inputs) : inputs_(inputs) {}
  bool operator[](size_t input) const { return inputs_[input] != nullptr; }
  /// The gradient block of a parameter, to add into (then answer Grad::accumulated());
  /// null where a gradient is to be returned instead.
  real* block(size_t input) const;

 private:
  const std::vector<std::shared_ptr<GradSlot>>& inputs_;
};

/// dy -> gradients of the inputs, in order. `dy` may be taken by value:
/// it is then the pullback's own to write into if dy.unique().
using Pullback = std::function<Grads(Array dy, const Needs& needs)>;
/// A pullback of several outputs; one that received no gradient has an empty array.
using MultiPullback = std::function<Grads(std::vector<Array> dys, const Needs& needs)>;

/// Makes the result of an op; the only way to make a Var that has a history. With no active tape, or no input that
/// needs a gradient, the pullback is dropped. `op` must outlive the tape: a string literal.
Var make_var(const char* op, Array value, const std::vector<Var>& inputs, Pullback pullback);
/// make_var() for an op with several outputs.
std::vector<Var> make_vars(const char* op, std::vector<Array> values, const std::vector<Var>& inputs,
                           MultiPullback pullback);

/// Would an op on these inputs be recorded? Lets a fused op skip what only its pullback needs.
bool recording(const std::vector<Var>& inputs);

/// Records ops and runs them backwards, on one thread. A TapeScope makes it the one that ops record on.
class Tape : NoCopy {
 public:
  Tape() = default;

  /// The tape that ops of this thread record on; null where there is none.
  static Tape* active();

  /// Gradients of `scale` * loss for all leaves, added to what they hold; the tape is empty afterwards. Throws
  /// std::invalid_argument unless the loss is a scalar on this tape, std::logic_error when a pullback breaks its
  /// contract (count or shape of gradients).
  void backward(const Var& loss, real scale = 1);
  /// Runs backward from given gradients of several outputs. Throws std::invalid_argument for an output that does not
  /// depend on anything recorded.
  void backward(const std::vector<Var>& outputs, std::vector<Array> grads);

  size_t size() const { return records_.size(); }

 private:
  friend class TapeScope;
  friend class TapePause;
  friend Var make_var(const char*, Array, const std::vector<Var>&, Pullback);
  friend Var recompute(const std::function<Var(const std::vector<Var>&)>&, const std::vector<Var>&);
  friend std::vector<Var> make_vars(const char*, std::vector<Array>, const std::vector<Var>&, MultiPullback);

  struct Record {
    const char* op;
    std::vector<std::shared_ptr<GradSlot>> inputs;  // null: needs none
    std::vector<std::shared_ptr<GradSlot>> outputs;
    MultiPullback pullback;
    int64_t input_bytes;  // for a profile
  };
  /// Makes the outputs of an op and, unless the tape is null, its record.
  static std::vector<Var> record(Tape* tape, const char* op, std::vector<Array> values, const std::vector<Var>& inputs,
                                 MultiPullback pullback);
  /// Pulls all records, from the last to the first.
  void run();
  /// Calls the pullback of a record that received a gradient, and delivers what it returns.
  void pull(Record record) const;
  static Grads call_pullback(const Record& record, std::vector<Array> dys);
  /// Adds the gradient of one input of a record to the gradient that the input has already.
  void deliver(const Record& record, size_t input, Grad grad) const;
  void deliver_rows(const Record& record, size_t input, RowGrads rows) const;

  std::vector<Record> records_;
};

/// A tape that is the active one of its thread while it lives.
class TapeScope : NoCopy {
 public:
  TapeScope();
  ~TapeScope();
  Tape& tape() { return tape_; }
  void backward(const Var& loss, real scale = 1) { tape_.backward(loss, scale); }

 private:
  Tape tape_;
  Tape* previous_;
};

/// No tape is active while it lives.
class TapePause : NoCopy {
 public:
  TapePause();
  ~TapePause();

 private:
  Tape* previous_;
};

/// Activation checkpointing: runs `body` without recording and runs it again in the pullback, so that only its inputs
/// are kept. `body` must be a pure function of its inputs and of parameters; randomness must come from counters. One
/// output. Chen et al. 2016, arXiv 1604.06174.
Var recompute(const std::function<Var(const std::vector<Var>&)>& body, const std::vector<Var>& inputs);

}  // namespace capstan::CAPSTAN_PRECISION
