#include "core/io/regular_file.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

TEST_CASE("what is no regular file is refused, and nothing waits for it") {
  const TemporaryFolder place;
  const auto error_of = [](const std::string& path) { return message_of<Error>([&] { RegularFile{path}; }); };
  const std::string folder = place.path("folder");
  std::filesystem::create_directory(folder);
  const std::string pipe = folder + "/pipe", socket_path = folder + "/socket", text = folder + "/text";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(error_of(pipe) == pipe + ": is a pipe; a file is needed here");
  CHECK(error_of(socket_path) == socket_path + ": is not a file; a file is needed here");
  CHECK(error_of(folder) == folder + ": is a folder; a file is needed here");
  CHECK(error_of("/dev/zero") == "/dev/zero: is a device; a file is needed here");
  CHECK(error_of(folder + "/none").find("no such file; check the path") != std::string::npos);
  close(descriptor);
  write_file(text, "content");
  RegularFile file(text);
  CHECK(file.size() == 7);
  std::string read(20, '\0');
  CHECK(file.read(read.data(), 3) == 3);
  CHECK(file.read(read.data() + 3, 17) == 4);
  CHECK(read.substr(0, 7) == "content");
}
