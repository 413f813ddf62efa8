// Weights in a header that script/embed_weights wrote, in a program without files and exceptions
// (-DFASTWEIGHTS_FILES=0 -fno-exceptions -fno-rtti). Loads a layer, and computes what PyTorch did.
#include <cstdio>
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <vector>

#include "../support/pytorch_network.hpp"
#include "pytorch_linear.hpp"

#ifdef _GLIBCXX_FILESYSTEM
#error "a header of files is included in spite of FASTWEIGHTS_FILES=0"
#endif

using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;

// A state to bytes, and back from them.
bool state_survives() {
  const fw::DeltaRule<float, 3, 4> memory;
  auto state = fw::initial_state(memory), loaded = state;
  state.W.setConstant(0.1f);
  state.W(3, 2) = -2;
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  const std::vector<std::byte> bytes = writer.bytes();
  fw::io::load_state(memory, loaded, SafeTensors::view(bytes));
  return loaded.W == state.W;
}

int main() {
  const float error = pytorch_error(SafeTensors::view(pytorch_linear()));
  std::printf("largest error %.1e\n", double{error});
  return error <= 1e-6f && state_survives() ? 0 : 1;
}
