// Saves and checks files of many equal numbers, for script/check faults.
//
//     saver save FILE NUMBER [TIMES]   saves files of NUMBER, NUMBER + 1, ...; marks each save for
//                                      strace by a system call before and after it
//     saver check FILE A B             whether FILE is whole and holds a number from A to B

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fastweights/io/safetensors.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr Eigen::Index count = 50'000;

void save(const char* path, float number) {
  fw::io::SafeTensorsWriter writer;
  writer.add("half", {count / 2}, std::vector<float>(count / 2, number));
  writer.add("whole", {count}, std::vector<float>(count, number));
  [[maybe_unused]] const auto begins = ::getppid();
  writer.write(path);
  [[maybe_unused]] const auto ends = ::getppid();
}

bool holds_one_number(const char* path, float least, float most) {
  const auto file = fw::io::SafeTensors::read(path);
  const std::vector<float> whole = file.values<float>("whole"), half = file.values<float>("half");
  const float number = whole.at(0);
  for (const auto* const values : {&whole, &half})
    for (const float x : *values)
      if (x != number) return false;
  return whole.size() == count && half.size() == count / 2 && number >= least && number <= most;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 3 ? argv[1] : "";
  try {
    if (command == "save") {
      const long times = argc > 4 ? std::atol(argv[4]) : 1;
      for (long i = 0; i < times; ++i) save(argv[2], static_cast<float>(std::atol(argv[3]) + i));
      return 0;
    }
    if (command == "check" && argc > 4)
      return holds_one_number(argv[2], static_cast<float>(std::atol(argv[3])),
                              static_cast<float>(std::atol(argv[4])))
                 ? 0
                 : 2;
  } catch (const fw::io::SafeTensorsError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  std::fprintf(stderr, "saver save FILE NUMBER [TIMES] | saver check FILE A B\n");
  return 1;
}
