// All primitive ops.
#pragma once

#include "core/ops_conv.hpp"
#include "core/ops_dropout.hpp"
#include "core/ops_index.hpp"
#include "core/ops_math.hpp"
#include "core/ops_matmul.hpp"
#include "core/ops_reduce.hpp"
#include "core/ops_shape.hpp"
#include "core/ops_softmax.hpp"
