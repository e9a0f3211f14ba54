// Where the time of training steps goes: calls, time, traffic and arithmetic of every op and pass.
//
// Spans measure ops, pullbacks and other named work. They nest, and time counts for the innermost span alone, so that
// nothing is counted twice and the rows add up to the steps exactly. With no active profile a span is one check of a
// pointer. For `capstan train --profile`; tests/core/machine/test_profile.cpp and tests/models/test_profile.cpp hold
// that every op has its span.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/base/no_copy.hpp"

namespace capstan {

/// The pass that a span belongs to; `none` for data, optimizer and the tape itself.
enum class Pass { none, forward, backward };

/// Time and work of a span, or of all spans of one name.
struct ProfileSums {
  int64_t nanoseconds = 0;  // time on the profiled thread without inner spans; for lanes, the sum over threads
  int64_t products = 0;     // the part of nanoseconds spent in matrix products outside of parallel regions
  int64_t bytes = 0;        // the least traffic possible: operands, results and gradients once each
  int64_t flops = 0;        // operations of matrix products, on all threads

  void add(const ProfileSums& other) {
    nanoseconds += other.nanoseconds;
    products += other.products;
    bytes += other.bytes;
    flops += other.flops;
  }
};

/// The spans of one name in one pass.
struct ProfileRow : ProfileSums {
  ProfileRow(const char* of, Pass in) : name(of), pass(in) {}
  const char* name;  // of an open span: null until it is known
  Pass pass;
  int64_t calls = 0;
};

/// What profiled steps have spent, by name and pass. Used by one thread at a time.
class Profile {
 public:
  /// The name of the time of a step that is in no span: the tape's own work and everything around the ops.
  static constexpr const char* outside = "tape and framework";

  /// The rows, in the order of their first appearance.
  const std::vector<ProfileRow>& rows() const { return rows_; }
  int64_t steps() const { return steps_; }
  /// The sum of the rows' nanoseconds: from the begin to the end of each step, where a step in lanes counts each lane's
  /// time instead of that of all together.
  int64_t nanoseconds() const;

  /// The profile whose step runs on this thread, or null.
  static Profile* active();

 private:
  friend class ProfiledStep;
  friend class ProfiledLanes;
  friend class ProfiledLane;
  friend class ProfileSpan;
  friend class ProductSpan;
  friend void declare_traffic(int64_t bytes);
  using Clock = std::chrono::steady_clock;

  /// An open span.
  struct Frame : ProfileRow {
    using ProfileRow::ProfileRow;
    bool declared = false;  // bytes come from declare_traffic
  };
  void enter(const char* name, Pass pass);
  void leave();
  /// Adds the time and FLOPs spent since the last call of charge() to the innermost span.
  void charge();
  /// Adds the rows of a lane.
  void absorb(const Profile& lane);
  /// The row of this name and pass, a new one if there is none.
  ProfileRow& row(const char* name, Pass pass);

  std::vector<ProfileRow> rows_;
  std::vector<Frame> frames_;  // the innermost last
  Clock::time_point mark_;     // when charge() was called last
  int64_t flops_mark_ = 0;     // ProductSpan::flops_ at the last charge()
  int product_depth_ = 0;      // products within products count their time once
  int64_t steps_ = 0;
  bool lane_ = false;  // all products of its thread are its own
};

/// Makes a profile the active one of its thread while it lives, and counts a step; does nothing for null. Throws
/// std::invalid_argument when another one is active anywhere.
class ProfiledStep : NoCopy {
 public:
  explicit ProfiledStep(Profile* profile);
  ~ProfiledStep();

 private:
  Profile* profile_;
};

/// While it lives, the profile of this thread's step rests, and lanes have profiles of their own, which are added to it
/// at the end. Does nothing where there is none.
class ProfiledLanes : NoCopy {
 public:
  explicit ProfiledLanes(int64_t lanes);
  ~ProfiledLanes();

 private:
  friend class ProfiledLane;
  Profile* profile_;
  std::vector<Profile> lanes_;
};

/// Profiles a lane on the lane's own thread.
class ProfiledLane : NoCopy {
 public:
  ProfiledLane(ProfiledLanes& lanes, int64_t lane);
  ~ProfiledLane();

 private:
  Profile* lane_ = nullptr;
};

/// Begins every op that computes its value itself; make_var gives the span its name. The time of a span without a name
/// counts for the span around it.
class ProfileSpan : NoCopy {
 public:
  ProfileSpan() : ProfileSpan(nullptr, Pass::none) {}
  /// `name` must outlive the profile: a string literal.
  ProfileSpan(const char* name, Pass pass, int64_t bytes = 0) : profile_(Profile::active()) {
    if (profile_ == nullptr) return;
    profile_->enter(name, pass);
    add_traffic(bytes);
  }
  ~ProfileSpan() {
    if (profile_ != nullptr) profile_->leave();
  }

  explicit operator bool() const { return profile_ != nullptr; }
  /// Bytes moved, unless declare_traffic said how many. The span must be the innermost one.
  void add_traffic(int64_t bytes);
  /// Names the innermost span, or counts a call without time where that one has a name already.
  static void name_innermost(const char* name, Pass pass, int64_t bytes);

 private:
  Profile* profile_;
};

/// For the few ops, and pullbacks, that touch more or less than their operands, results and gradients: what the
/// innermost span moves instead.
void declare_traffic(int64_t bytes);

/// Counts the 2 m n k operations of a matrix product, whichever thread computes it, and its time where it is not a part
/// of a parallel region.
class ProductSpan : NoCopy {
 public:
  ProductSpan(int64_t m, int64_t n, int64_t k) {
    if (counting_.load(std::memory_order_relaxed)) begin(2 * m * n * k);
  }
  ~ProductSpan() {
    if (profile_ != nullptr) end();
  }

 private:
  friend class Profile;
  friend class ProfiledStep;
  friend class ProfiledLanes;
  void begin(int64_t flops);
  void end();

  inline static std::atomic<bool> counting_{false};
  inline static std::atomic<int64_t> flops_{0};
  Profile* profile_ = nullptr;  // null where nothing is timed
  Profile::Clock::time_point start_;
};

}  // namespace capstan
