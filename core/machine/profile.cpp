// Open spans are a stack of frames. At every begin and end of a span, charge() adds the time since the last such moment
// to the innermost frame, so that time is counted once. A lane has its own profile on its thread; ProfiledLanes adds it
// at the end. tests/core/machine/test_profile.cpp.
#include "core/machine/profile.hpp"

#include <string_view>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

thread_local Profile* active_profile = nullptr;

int64_t nanoseconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

Profile* Profile::active() { return active_profile; }

int64_t Profile::nanoseconds() const {
  int64_t sum = 0;
  for (const ProfileRow& r : rows_) sum += r.nanoseconds;
  return sum;
}

ProfileRow& Profile::row(const char* name, Pass pass) {
  for (ProfileRow& r : rows_)
    if (r.pass == pass && std::string_view(r.name) == name) return r;
  return rows_.emplace_back(name, pass);
}

/// Time and FLOPs since the last call belong to the innermost span: every begin and end of a span calls charge().
void Profile::charge() {
  const Clock::time_point now = Clock::now();
  const int64_t flops = ProductSpan::flops_.load(std::memory_order_relaxed);
  if (!frames_.empty()) {
    frames_.back().nanoseconds += nanoseconds_of(now - mark_);
    if (!lane_) frames_.back().flops += flops - flops_mark_;
  }
  mark_ = now;
  flops_mark_ = flops;
}

void Profile::enter(const char* name, Pass pass) {
  charge();
  frames_.emplace_back(name, pass);
}

void Profile::leave() {
  charge();
  const Frame frame = frames_.back();
  frames_.pop_back();
  if (frame.name == nullptr) return frames_.back().add(frame);
  ProfileRow& named = row(frame.name, frame.pass);
  ++named.calls;
  named.add(frame);
}

void Profile::absorb(const Profile& lane) {
  for (const ProfileRow& from : lane.rows_) {
    ProfileRow& to = row(from.name, from.pass);
    to.calls += from.calls;
    to.add(from);
  }
}

ProfiledLanes::ProfiledLanes(int64_t lanes) : profile_(active_profile) {
  if (profile_ == nullptr) return;
  profile_->charge();
  lanes_.resize(static_cast<size_t>(lanes));
  active_profile = nullptr;
}

ProfiledLanes::~ProfiledLanes() {
  if (profile_ == nullptr) return;
  for (const Profile& lane : lanes_) profile_->absorb(lane);
  // The lanes have counted the time since they began, so this profile goes on from now.
  profile_->mark_ = Profile::Clock::now();
  profile_->flops_mark_ = ProductSpan::flops_.load(std::memory_order_relaxed);
  active_profile = profile_;
}

ProfiledLane::ProfiledLane(ProfiledLanes& lanes, int64_t lane) {
  if (lanes.profile_ == nullptr) return;
  lane_ = &lanes.lanes_[static_cast<size_t>(lane)];
  lane_->lane_ = true;
  active_profile = lane_;
  lane_->enter(Profile::outside, Pass::none);
}

ProfiledLane::~ProfiledLane() {
  if (lane_ == nullptr) return;
  lane_->leave();
  active_profile = nullptr;
}

ProfiledStep::ProfiledStep(Profile* profile) : profile_(profile) {
  if (profile_ == nullptr) return;
  check(!ProductSpan::counting_.exchange(true), "profile: another step is being profiled");
  active_profile = profile_;
  profile_->enter(Profile::outside, Pass::none);
}

ProfiledStep::~ProfiledStep() {
  if (profile_ == nullptr) return;
  profile_->leave();
  ++profile_->steps_;
  active_profile = nullptr;
  ProductSpan::counting_ = false;
}

void ProfileSpan::add_traffic(int64_t bytes) {
  if (profile_ != nullptr && !profile_->frames_.back().declared) profile_->frames_.back().bytes += bytes;
}

void ProfileSpan::name_innermost(const char* name, Pass pass, int64_t bytes) {
  Profile* const profile = Profile::active();
  if (profile == nullptr) return;
  Profile::Frame& frame = profile->frames_.back();
  if (frame.name == nullptr) {
    frame.name = name;
    frame.pass = pass;
    if (!frame.declared) frame.bytes += bytes;
  } else {
    ProfileRow& row = profile->row(name, pass);
    ++row.calls;
    row.bytes += bytes;
  }
}

void declare_traffic(int64_t bytes) {
  Profile* const profile = Profile::active();
  if (profile == nullptr) return;
  profile->frames_.back().bytes = bytes;
  profile->frames_.back().declared = true;
}

void ProductSpan::begin(int64_t flops) {
  Profile* const profile = Profile::active();
  const bool lane = profile != nullptr && profile->lane_;
  if (lane) {
    profile->frames_.back().flops += flops;
  } else {
    flops_.fetch_add(flops, std::memory_order_relaxed);
  }
  if ((in_parallel() && !lane) || profile == nullptr) return;
  profile_ = profile;
  ++profile_->product_depth_;
  start_ = Profile::Clock::now();
}

void ProductSpan::end() {
  if (--profile_->product_depth_ == 0)
    profile_->frames_.back().products += nanoseconds_of(Profile::Clock::now() - start_);
}

}  // namespace capstan
