// Forward declarations of everything that depends on `real`; no other header declares these names without defining
// them.
#pragma once

#include "core/real.hpp"

namespace capstan {
template <class T>
class ArrayOf;
class Shape;
}  // namespace capstan

CAPSTAN_BEGIN
using Array = ArrayOf<real>;
class Var;
class Tape;
class TapeScope;
class ParamStore;
class Scope;
struct Context;
class Mixer;
CAPSTAN_END
