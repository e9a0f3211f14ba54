// One folder per class: which files are texts, and what is said of the others.
#include "core/base/error.hpp"
#include "labelled_support.hpp"

using namespace capstan;

TEST_CASE("one folder per class: every file is a text of its folder's class") {
  const TemporaryFolder folder;
  folder.write("train/pos/1_9.txt", "good\nfilm");
  folder.write("train/neg/0_2.txt", "bad");
  folder.write("train/neg/2_1.txt", "worse");
  folder.write("train/unsup/3_0.txt", "who knows");
  folder.write("test/neg/0_1.txt", "poor");
  LabelledSourceConfig config = config_of({folder.path("train")});
  config.test = {folder.path("test")};
  config.format = format_of_folders;

  const ClassificationData all = load_labelled(config);
  CHECK(all.classes == std::vector<std::string>{"neg", "pos", "unsup"});
  CHECK(all.train.size() == 4);

  config.classes = {"pos", "neg"};
  const ClassificationData two = load_labelled(config);
  REQUIRE(two.train.size() == 3);
  CHECK(text_of(two, two.train, 0) == "bad");
  CHECK(two.train.label(0) == 1);
  CHECK(text_of(two, two.train, 2) == "good\nfilm");
  CHECK(two.train.label(2) == 0);
  CHECK(two.test.class_counts(2) == std::vector<int64_t>{0, 1});

  config.tokenizer = CharTokenizerConfig{};
  CHECK(load_labelled(config).train.size() == 3);
  folder.write("train/pos/4_9.txt", "bad \xff");
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "train/pos/4_9.txt:1:5: byte 0xff"));
  config.on_error = OnError::skip;
  CHECK(load_labelled(config).train.size() == 3);
}

TEST_CASE("one folder per class: what does not fit is named") {
  const TemporaryFolder folder;
  folder.write("train/pos/1.txt", "good");
  folder.write("train/loose.txt", "whose?");
  const auto message = [&](const std::string& path, const std::vector<std::string>& classes) {
    LabelledSourceConfig config = config_of({path});
    config.format = format_of_folders;
    config.classes = classes;
    return message_of<Error>([&] { load_labelled(config); });
  };
  CHECK(contains(message(folder.path("train/pos/1.txt"), {}), "1.txt: is not in the folder of a class"));
  CHECK(contains(message(folder.path("train/pos"), {}), "1.txt: is not in the folder of a class"));
  CHECK(contains(message(folder.path("train"), {}), "all 1 examples have the label 'pos'"));
  CHECK(contains(message(folder.path("train"), {"good", "bad"}), "holds no folder called good or bad"));
}

TEST_CASE("one folder per class: files beside the folders are left out, with their count unless classes are named") {
  const TemporaryFolder folder;
  folder.write("train/pos/1.txt", "good");
  folder.write("train/neg/1.txt", "bad");
  folder.write("train/unsup/1.txt", "what");
  folder.write("train/labeledBow.feat", "9 0:9 1:1");
  folder.write("train/urls_pos.txt", "http://");
  LabelledSourceConfig config = config_of({folder.path("train")});
  config.format = format_of_folders;
  std::string said;
  const auto log = [&](const std::string& line) { said += line + "\n"; };
  CHECK(load_labelled(config, nullptr, true, log).classes == Fields{"neg", "pos", "unsup"});
  CHECK(contains(said, "data.train: left out 2 files beside the folders of the classes: "));
  said.clear();
  config.classes = {"neg", "pos"};
  CHECK(load_labelled(config, nullptr, true, log).train.size() == 2);
  CHECK(contains(said, "left out folders that data.classes does not name: unsup (1 files)"));
  CHECK_FALSE(contains(said, "beside the folders"));
}

TEST_CASE("one folder per class: the parts of a data set are not taken for classes") {
  const TemporaryFolder folder;
  for (const char* const file : {"train/pos/1.txt", "train/neg/1.txt", "train/unsup/1.txt", "test/pos/1.txt"})
    folder.write(std::string("set/") + file, "text");
  LabelledSourceConfig config = config_of({folder.path("set")});
  config.format = format_of_folders;
  CHECK(load_labelled(config).classes == std::vector<std::string>{"test", "train"});  // one folder in common
  folder.write("set/test/neg/1.txt", "text");
  const std::string message = message_of<Error>([&] { load_labelled(config); });
  check_contains(message, {"its folders test, train are parts of a data set, with the classes (neg, pos) one level",
                           "such as " + folder.path("set") + "/train"});
  config.classes = {"train", "test"};
  CHECK(load_labelled(config).train.size() == 5);
}
