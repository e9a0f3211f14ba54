// Records hold gradient slots, never values; an input that needs no gradient has no slot. Gradients go to one of three
// places (deliver, deliver_rows): a parameter's place in the block of the thread's lane, its table of row gradients, or
// the slot.
#include "core/autograd/tape.hpp"

#include <stdexcept>

#include "core/array/layout.hpp"
#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

thread_local Tape* active_tape = nullptr;

int64_t bytes_of(const Array& array) { return array.size() * static_cast<int64_t>(sizeof(real)); }

int64_t bytes_of(const std::vector<Var>& inputs) {
  int64_t sum = 0;
  for (const Var& input : inputs)
    if (input) sum += bytes_of(input.value());
  return sum;
}

int64_t bytes_of(const std::vector<Array>& arrays) {
  int64_t sum = 0;
  for (const Array& array : arrays) sum += bytes_of(array);
  return sum;
}

/// What a pullback writes; a block that is added into is read as well.
int64_t bytes_of(const Grads& grads, const std::vector<std::shared_ptr<GradSlot>>& inputs) {
  int64_t sum = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].has_value()) sum += bytes_of(grads[i].value());
    if (grads[i].has_rows()) sum += bytes_of(grads[i].rows().values());
    if (grads[i].is_accumulated()) sum += 2 * inputs[i]->shape.size() * static_cast<int64_t>(sizeof(real));
  }
  return sum;
}

/// Names the current op in the profile.
void name_op(const char* op, int64_t value_bytes, const std::vector<Var>& inputs) {
  if (Profile::active() != nullptr) ProfileSpan::name_innermost(op, Pass::forward, bytes_of(inputs) + value_bytes);
}

MultiPullback single(Pullback pullback) {
  return [pullback = std::move(pullback)](std::vector<Array> dys, const Needs& needs) {
    return pullback(std::move(dys.front()), needs);
  };
}

}  // namespace

real* Needs::block(size_t input) const {
  const auto& slot = inputs_[input];
  return slot != nullptr && slot->in_place() ? slot->place() : nullptr;
}

Tape* Tape::active() { return active_tape; }

bool recording(const std::vector<Var>& inputs) {
  if (active_tape == nullptr) return false;
  for (const Var& input : inputs)
    if (input.needs_grad()) return true;
  return false;
}

std::vector<Var> Tape::record(Tape* tape, const char* op, std::vector<Array> values, const std::vector<Var>& inputs,
                              MultiPullback pullback) {
  name_op(op, bytes_of(values), inputs);
  std::vector<Var> outputs;
  outputs.reserve(values.size());
  for (Array& value : values) outputs.push_back(tape != nullptr ? Var::leaf(std::move(value)) : Var(std::move(value)));
  if (tape == nullptr) return outputs;
  Record record{op, {}, {}, std::move(pullback), Profile::active() != nullptr ? bytes_of(inputs) : 0};
  for (const Var& input : inputs) record.inputs.push_back(input.slot());
  for (const Var& output : outputs) record.outputs.push_back(output.slot());
  tape->records_.push_back(std::move(record));
  return outputs;
}

std::vector<Var> make_vars(const char* op, std::vector<Array> values, const std::vector<Var>& inputs,
                           MultiPullback pullback) {
  stop_point();
  return Tape::record(recording(inputs) ? active_tape : nullptr, op, std::move(values), inputs, std::move(pullback));
}

Var make_var(const char* op, Array value, const std::vector<Var>& inputs, Pullback pullback) {
  stop_point();
  if (!recording(inputs)) {
    name_op(op, bytes_of(value), inputs);
    return Var(std::move(value));
  }
  return Tape::record(active_tape, op, {std::move(value)}, inputs, single(std::move(pullback))).front();
}

void Tape::backward(const Var& loss, real scale) {
  check(loss.size() == 1, "backward: the loss must be a scalar, got shape {}", loss.shape());
  backward(std::vector<Var>{loss}, {Array(loss.shape(), scale)});
}

void Tape::backward(const std::vector<Var>& outputs, std::vector<Array> grads) {
  check(outputs.size() == grads.size(), "backward: {} outputs but {} gradients", outputs.size(), grads.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    check(outputs[i].needs_grad(), "backward: output {} of shape {} does not depend on anything recorded", i,
          outputs[i].shape());
    deliver(Record{"backward", {outputs[i].slot()}, {}, nullptr, 0}, 0, std::move(grads[i]));
  }
  run();
}

void Tape::run() {
  // Ops inside pullbacks (recomputation) open their own tape; nothing may be recorded on this one meanwhile.
  const TapePause pause;
  while (!records_.empty()) {
    stop_point();
    Record record = std::move(records_.back());
    records_.pop_back();
    pull(std::move(record));
  }
}

void Tape::pull(Record record) const {
  std::vector<Array> dys;
  bool reached = false;
  for (const auto& output : record.outputs) {
    reached = reached || output->has_grad;
    dys.push_back(std::move(output->grad));
    output->grad = Array();
    output->has_grad = false;
  }
  if (!reached) return;
  Grads grads = call_pullback(record, std::move(dys));
  record.pullback = nullptr;  // frees what it saved before the gradients are added up
  if (grads.size() != record.inputs.size())
    throw std::logic_error(fmt::format("{}: the pullback returned {} gradients for {} inputs", record.op, grads.size(),
                                       record.inputs.size()));
  for (size_t input = 0; input < grads.size(); ++input) deliver(record, input, std::move(grads[input]));
}

Grads Tape::call_pullback(const Record& record, std::vector<Array> dys) {
  ProfileSpan span(record.op, Pass::backward);
  if (!span) return record.pullback(std::move(dys), Needs(record.inputs));
  span.add_traffic(record.input_bytes + bytes_of(dys));
  Grads grads = record.pullback(std::move(dys), Needs(record.inputs));
  if (grads.size() == record.inputs.size()) span.add_traffic(bytes_of(grads, record.inputs));
  return grads;
}

void Tape::deliver(const Record& record, size_t input, Grad grad) const {
  if (record.inputs[input] == nullptr) return;
  if (grad.has_rows()) return deliver_rows(record, input, grad.take_rows());
  if (!grad.has_value()) return;
  GradSlot& slot = *record.inputs[input];
  if (slot.table >= 0)
    throw std::logic_error(
        fmt::format("{}: the table of shape {} is updated by rows and needs RowGrads", record.op, slot.shape));
  Array value = grad.take();
  const bool sums = value.shape() != slot.shape, adds = slot.has_grad;
  const ProfileSpan span;
  if (span && (sums || adds)) {
    const int64_t sum = slot.shape.size() * static_cast<int64_t>(sizeof(real));
    ProfileSpan::name_innermost("sum of gradients", Pass::backward,
                                (sums ? bytes_of(value) + sum : 0) + (adds ? 3 * sum : 0));
  }
  if (sums) value = sum_to(value, slot.shape, record.op);
  if (slot.in_place()) {
    kernels::add_into(slot.place(), value.data(), value.size());
    return;
  }
  if (!slot.has_grad) {
    slot.grad = std::move(value);
  } else {
    // The kept gradient may be shared with another slot (add hands one array to both inputs): then it is copied first.
    if (!slot.grad.unique()) slot.grad = slot.grad.clone();
    kernels::add_into(slot.grad.mutable_data(), value.data(), value.size());
  }
  slot.has_grad = true;
}

void Tape::deliver_rows(const Record& record, size_t input, RowGrads rows) const {
  GradSlot& slot = *record.inputs[input];
  if (rows.empty()) return;
  if (slot.shape.rank() != 2 || rows.values().dim(1) != slot.shape[1] || rows.rows().front() < 0 ||
      rows.rows().back() >= slot.shape[0])
    throw std::logic_error(fmt::format("{}: the pullback returned rows {} to {} of width {} for a table of shape {}",
                                       record.op, rows.rows().front(), rows.rows().back(), rows.values().dim(1),
                                       slot.shape));
  const ProfileSpan span;
  if (slot.table >= 0) {
    if (span && !slot.rows().empty())
      ProfileSpan::name_innermost("sum of gradients", Pass::backward,
                                  2 * (bytes_of(rows.values()) + bytes_of(slot.rows().values())));
    return slot.rows().add(std::move(rows));
  }
  // The table is updated as a whole, or is no parameter: the rows are added to a dense gradient.
  if (!slot.has_grad) slot.grad = Array::zeros(slot.shape);
  if (!slot.in_place() && !slot.grad.unique()) slot.grad = slot.grad.clone();
  real* const out = slot.in_place() ? slot.place() : slot.grad.mutable_data();
  const int64_t width = rows.values().dim(1);
  for (int64_t i = 0; i < rows.count(); ++i)
    kernels::add_into(out + rows.rows()[static_cast<size_t>(i)] * width, rows.values().data() + i * width, width);
  if (!slot.in_place()) slot.has_grad = true;
}

TapeScope::TapeScope() : previous_(active_tape) { active_tape = &tape_; }
TapeScope::~TapeScope() { active_tape = previous_; }

TapePause::TapePause() : previous_(active_tape) { active_tape = nullptr; }
TapePause::~TapePause() { active_tape = previous_; }

Var recompute(const std::function<Var(const std::vector<Var>&)>& body, const std::vector<Var>& inputs) {
  const ProfileSpan span;
  std::vector<Var> detached;
  for (const Var& input : inputs) detached.emplace_back(input.value());
  Array value;
  {
    const TapePause pause;
    value = body(detached).value();
  }
  declare_traffic(0);  // inner ops count their bytes
  if (active_tape == nullptr) return Var(std::move(value));
  // Recorded even when no input needs a gradient: the pullback reaches parameters that are not among the inputs.
  const auto pullback = [body, detached](const Array& dy, const Needs& needs) {
    std::vector<Var> leaves;
    for (size_t i = 0; i < detached.size(); ++i)
      leaves.push_back(needs[i] ? Var::leaf(detached[i].value()) : detached[i]);
    TapeScope scope;
    const Var output = body(leaves);
    if (output.needs_grad()) scope.tape().backward(std::vector<Var>{output}, {dy});
    declare_traffic(0);
    Grads grads(leaves.size());
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].has_grad()) grads[i] = leaves[i].grad();
    return grads;
  };
  return Tape::record(active_tape, "recompute", {std::move(value)}, inputs, single(pullback)).front();
}

}  // namespace capstan::CAPSTAN_PRECISION
