// All operations, for programs and for composed forms (composed.cpp in the folders of nn/systems). g is the gradient of
// the output; negative axes count from the end; an axis, range, index or size that does not fit throws
// std::invalid_argument. tests/core/ops/test_ops.cpp holds the values, gradcheck_ops.cpp beside it the gradients: a new
// op gets a row in both.
#pragma once

#include "core/autograd/tape.hpp"
#include "core/ops/conv.hpp"
#include "core/ops/dropout.hpp"
#include "core/ops/index.hpp"
#include "core/ops/math.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "core/ops/softmax.hpp"
