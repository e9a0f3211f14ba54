// All primitive ops.
#pragma once

#include "core/ops/conv.hpp"
#include "core/ops/dropout.hpp"
#include "core/ops/index.hpp"
#include "core/ops/math.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "core/ops/softmax.hpp"
