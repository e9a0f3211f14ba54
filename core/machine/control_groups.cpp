// /proc/self/cgroup names the groups of this process, below the mount of each version. In a container the names may be
// those of the host: then no file is found on the way, except at the outermost group, which is the container's own.
#include "core/machine/control_groups.hpp"

#include <fstream>

namespace capstan {

void for_each_control_group(const std::string& root, const std::string& controller,
                            const std::function<void(const std::string& folder, const std::string& name)>& visit) {
  const auto visit_all = [&](const std::string& mount, std::string group) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    for (;;) {
      visit(mount + group, group.empty() ? "/" : group);
      if (group.empty()) return;
      group.erase(group.rfind('/'));
    }
  };
  // Lines of the form number:controllers:group; the one of version 2 has no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1), mount = root + "/sys/fs/cgroup";
    if (controllers == ",,") visit_all(mount, group);
    if (controllers.find("," + controller + ",") != std::string::npos) visit_all(mount + "/" + controller, group);
  }
}

}  // namespace capstan
