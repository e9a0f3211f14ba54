// What must be the same for all ranks, or their results would not fit together: run/setup/rank_agreement compares
// configuration, data and program by it before a run begins. tests/train/test_communicator.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/config/settings.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Collective: one line for each rank whose facts are not those of rank 0, with the first that differs: "rank 1 (...)
/// has train.lr 0.1, rank 0 (...) has 0.2". Empty when all agree.
std::vector<std::string> disagreements(Communicator& ranks, const Settings& facts);

/// Collective: throws Error with these lines, `what` in front and `remedy` after them, unless all agree.
void require_same(Communicator& ranks, const std::string& what, const Settings& facts, const std::string& remedy);

/// Collective, after work that may have been stopped: the signal that the first of the ranks was sent that was sent
/// one. `own`: that of this rank, or 0.
int agreed_signal(Communicator& ranks, int own);

}  // namespace capstan
