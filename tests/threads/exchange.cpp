#include <atomic>

#include "../../examples/audio_plugin/triple_buffer.hpp"
#include "together.hpp"

namespace {

// A matrix of equal numbers, so that a mixture of two shows.
bool is_whole(const MatrixXf& m) { return (m.array() == m(0, 0)).all(); }

}  // namespace

// A writer publishes 1, 2, 3, …; the reader must see whole matrices, in order, and the last one.
void check_exchange() {
  constexpr float last = 200000;
  TripleBuffer<MatrixXf> buffer(MatrixXf::Zero(8, 8));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (float i = 1; i <= last; ++i) {
      buffer.back().setConstant(i);
      buffer.publish();
    }
    done = true;
  });
  int broken = 0, seen = 0;
  float newest = 0;
  for (bool was_done = false; newest < last;) {
    if (!buffer.take()) {
      if (was_done) break;  // the last value was lost
      was_done = done;
      continue;
    }
    const MatrixXf& taken = buffer.front();
    broken += is_whole(taken) && taken(0, 0) > newest ? 0 : 1;
    newest = std::max(newest, taken(0, 0));
    ++seen;
  }
  writer.join();
  std::printf("%-72s %d of %d values broken\n", "the audio plug-in's exchange of states", broken,
              seen);
  failures += broken + (newest == last ? 0 : 1);
}
