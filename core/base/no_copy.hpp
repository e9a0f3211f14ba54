// For classes whose objects stand for something that cannot be had twice: a file, a lock, a scope.
#pragma once

namespace capstan {

/// Classes with this base can be neither copied nor moved.
class NoCopy {
 public:
  NoCopy(const NoCopy&) = delete;
  NoCopy& operator=(const NoCopy&) = delete;

 protected:
  NoCopy() = default;
  ~NoCopy() = default;
};

}  // namespace capstan
