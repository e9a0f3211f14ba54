// Word vectors that exist, as the start of an embedding: train.init_vectors. Training calls it once, before the first
// step. tests/cli/training/test_word_vectors.cpp holds what is read and refused.
#pragma once

#include <string>
#include <vector>

#include "run/setup/run_config.hpp"
#include "train/loop/trainer.hpp"

namespace capstan {

/// Fills the rows of embed.weight whose words are in the file: the text format of word2vec and fastText (.vec, with a
/// first line "COUNT WIDTH") or of GloVe (without), also .gz and .zst. The file is read as a stream, and what is kept
/// of it are the rows of the vocabulary. Returns lines for the log. Throws Error with file and line for a line that is
/// no vector of the model's width, a value that is not finite and a file with fewer lines than it says, and where none
/// of the words is in it.
std::vector<std::string> fill_word_vectors(const RunConfig& config, const Tokenizer& tokenizer, const RunParts& parts,
                                           const LogLine& log);

/// Adds a problem unless train.init_vectors names a file, or is not needed because the run has a checkpoint.
void check_init_vectors(const RunConfig& config, Problems& problems);

}  // namespace capstan
